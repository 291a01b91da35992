package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// Live hands over copies of events under a filter such as "bm.audit.>" as they
// are stored. Copies may be lost with the connection and are not proof of
// anything; whoever must see everything uses [Conn.Follow].
func (c *Conn) Live(ctx context.Context, filter string, handle func(events.Stored)) (stop func(), err error) {
	subject := events.PrefixLive + "." + filter
	return c.subscribe(ctx, subject, func(m *nats.Msg) {
		st, err := readStored(m, addedToLive)
		if err == nil && m.Subject != events.PrefixLive+"."+st.Subject {
			err = fmt.Errorf("it claims to be %s", st.Subject)
		}
		if err != nil {
			c.log.Warn("a live copy cannot be read", "subject", m.Subject, "error", err)
			return
		}
		handle(st)
	})
}

// listen calls rouse for each message on a live subject.
func (c *Conn) listen(ctx context.Context, subject string, rouse func()) (stop func(), err error) {
	return c.subscribe(ctx, subject, func(*nats.Msg) { rouse() })
}

// Heartbeat publishes bml.hb.<subjectTail>, where the tail is
// <scope>.<actor>.<session>. Nobody confirms it.
func (c *Conn) Heartbeat(subjectTail string, data []byte) error {
	subject := grants.HeartbeatPrefix + "." + subjectTail
	if err := c.nc.Publish(subject, data); err != nil {
		return fmt.Errorf("send heartbeat %s: %w", subject, err)
	}
	return nil
}

// Heartbeats hands over heartbeats whose tail matches filter, such as
// "default.>", until stop is called.
func (c *Conn) Heartbeats(ctx context.Context, filter string, handle func(subjectTail string, data []byte)) (stop func(), err error) {
	return c.subscribe(ctx, grants.HeartbeatPrefix+"."+filter, func(m *nats.Msg) {
		handle(strings.TrimPrefix(m.Subject, grants.HeartbeatPrefix+"."), m.Data)
	})
}

// subscribe returns when the server has the subscription, or with *Denied.
// The subscription comes back with the connection. After stop has returned no
// message is handed over any more.
func (c *Conn) subscribe(ctx context.Context, subject string, handle func(*nats.Msg)) (stop func(), err error) {
	what := "subscribe to " + subject
	for {
		if err := c.waitUp(ctx); err != nil {
			return nil, unanswered(what, err)
		}
		sub, err := c.nc.SubscribeSync(subject)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		err = c.established(ctx, subject)
		if err == nil {
			return c.pump(sub, handle), nil
		}
		_ = sub.Unsubscribe()
		if !transient(err) {
			return nil, unanswered(what, err)
		}
	}
}

// established waits until the server has answered everything before, which
// includes a complaint about a subscription to this subject.
func (c *Conn) established(ctx context.Context, subject string) error {
	attempt, done := c.fly(ctx, subject, attemptTimeout)
	defer done()
	if err := c.nc.FlushWithContext(attempt); err != nil {
		return c.outcome(attempt, err)
	}
	last := c.nc.LastError()
	if errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), "ubscription to \""+subject+"\"") {
		return c.denied(subject, last.Error())
	}
	return nil
}

// pump hands a subscription's messages over on one goroutine, which stop ends
// and waits for.
func (c *Conn) pump(sub *nats.Subscription, handle func(*nats.Msg)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			m, err := sub.NextMsgWithContext(ctx)
			switch {
			case err == nil:
				handle(m)
			case ctx.Err() != nil, errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrBadSubscription):
				return
			case errors.Is(err, nats.ErrSlowConsumer):
				c.log.Warn("live messages were lost because they came faster than they were taken", "subject", sub.Subject)
			default:
				if pause(ctx, time.Second) != nil { // a denial after a reload
					return
				}
			}
		}
	}()
	return func() {
		cancel()
		_ = sub.Unsubscribe()
		<-ended
	}
}
