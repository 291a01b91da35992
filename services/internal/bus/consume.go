package bus

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// Delivery is one event taken from a queue. A delivery is a hint: it may come
// again, also after it was acknowledged, and only the log says what is true.
type Delivery struct {
	Stored events.Stored
	// Redelivered counts how often it was delivered before.
	Redelivered int

	conn  *Conn
	reply string
}

// Ack takes the event off the queue and waits until the server has said so.
func (d *Delivery) Ack(ctx context.Context) error { return d.say(ctx, "+ACK") }

// InProgress asks for another ack_wait and waits until the server has said
// yes.
func (d *Delivery) InProgress(ctx context.Context) error { return d.say(ctx, "+WPI") }

// Nak gives the event back, to be delivered again after a delay.
func (d *Delivery) Nak(delay time.Duration) {
	body := fmt.Appendf(nil, `-NAK {"delay": %d}`, max(delay, 0).Nanoseconds())
	if err := d.conn.nc.Publish(d.reply, body); err != nil {
		d.conn.log.Warn("a delivery could not be given back; it comes again by itself", "seq", d.Stored.Seq, "error", err)
	}
}

// say repeats a word until the server has heard it, for sayWait at most. An
// acknowledgement is good across reconnects.
func (d *Delivery) say(ctx context.Context, word string) error {
	ctx, cancel := context.WithTimeout(ctx, sayWait)
	defer cancel()
	what := fmt.Sprintf("answer the delivery of %d with %s", d.Stored.Seq, word)
	_, err := d.conn.ask(ctx, what, &nats.Msg{Subject: d.reply, Data: []byte(word)})
	return err
}

// sayWait is well under the ack_wait of the queues.
const sayWait = 10 * time.Second

// A pull stays open for pullWait; the server shows that it has not forgotten
// it every pullBeat.
const (
	pullWait   = 30 * time.Second
	pullBeat   = 5 * time.Second
	pullSilent = 2*pullBeat + time.Second
)

// Consume takes events from a durable and hands them over, at most maxInFlight
// at a time. It goes on over reconnects, server restarts and the re-creation
// of the durable. When ctx ends it takes no more, gives back what comes still,
// and returns after the last handler has returned: nil, or *Denied.
func (c *Conn) Consume(ctx context.Context, durable string, maxInFlight int, handle func(context.Context, *Delivery)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for range max(maxInFlight, 1) {
		group.Go(func() {
			if err := c.takeAll(ctx, durable, handle); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	var denied *Denied
	if cause := context.Cause(ctx); errors.As(cause, &denied) || errors.Is(cause, ErrClosed) {
		return fmt.Errorf("take from queue %s: %w", durable, cause)
	}
	return nil
}

// takeAll is one slot: it takes one event after the other. The error is one
// that no waiting will mend.
func (c *Conn) takeAll(ctx context.Context, durable string, handle func(context.Context, *Delivery)) error {
	for ctx.Err() == nil {
		if err := c.waitUp(ctx); err != nil {
			return lasting(err)
		}
		d, err := c.take(ctx, durable)
		switch {
		case d != nil:
			handle(ctx, d)
		case err == nil:
		case lasting(err) != nil:
			return err
		default:
			_ = pause(ctx, 4*retryPause)
		}
	}
	return nil
}

// lasting returns err if waiting does not help.
func lasting(err error) error {
	var denied *Denied
	if errors.As(err, &denied) || errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// take makes one pull for one event. Neither a delivery nor an error means
// that there was none for a while. Each pull has an inbox of its own, whose
// end tells the server that the pull is void.
func (c *Conn) take(ctx context.Context, durable string) (*Delivery, error) {
	subject := c.api + "CONSUMER.MSG.NEXT." + grants.Stream + "." + durable
	body, err := json.Marshal(map[string]int64{"batch": 1, "expires": pullWait.Nanoseconds(), "idle_heartbeat": pullBeat.Nanoseconds()},
		json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, c.outcome(ctx, err)
	}
	if err := c.nc.PublishRequest(subject, inbox, body); err != nil {
		_ = sub.Unsubscribe()
		return nil, c.outcome(ctx, err)
	}
	for {
		attempt, done := c.fly(ctx, subject, pullSilent)
		m, err := sub.NextMsgWithContext(attempt)
		if err != nil {
			err = c.outcome(attempt, err)
		}
		done()
		if err != nil {
			c.giveBack(sub)
			return nil, err
		}
		status := m.Header.Get("Status")
		if status == "" || len(m.Data) > 0 {
			_ = sub.Unsubscribe()
			return c.delivery(m)
		}
		switch status {
		case "100": // still waiting
			continue
		case "404", "408": // nothing came
			_ = sub.Unsubscribe()
			return nil, nil
		}
		_ = sub.Unsubscribe()
		return nil, errNoResponders // no such durable, deleted, or a server going down
	}
}

// giveBack ends a pull and returns what the server had sent already, which
// would otherwise wait for its ack_wait.
func (c *Conn) giveBack(sub *nats.Subscription) {
	if !c.nc.IsConnected() || sub.Drain() != nil {
		_ = sub.Unsubscribe()
		return
	}
	for {
		m, err := sub.NextMsg(time.Second)
		if err != nil {
			return
		}
		if d, err := c.delivery(m); err == nil && m.Header.Get("Status") == "" {
			d.Nak(0)
		}
	}
}

// delivery reads what the acknowledgement subject says:
// $JS.ACK.<stream>.<durable>.<delivered>.<seq>.<n>.<ns>.<pending>, in newer
// servers with domain and account before the stream.
func (c *Conn) delivery(m *nats.Msg) (*Delivery, error) {
	t := strings.Split(m.Reply, ".")
	if len(t) >= 11 {
		t = append(t[:2:2], t[4:]...)
	}
	if len(t) < 9 || t[0] != "$JS" || t[1] != "ACK" {
		return nil, fmt.Errorf("read a delivery: %q is no acknowledgement subject", m.Reply)
	}
	delivered, err1 := strconv.Atoi(t[4])
	seq, err2 := strconv.ParseUint(t[5], 10, 64)
	nanos, err3 := strconv.ParseInt(t[7], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("read a delivery: acknowledgement subject %q: %w", m.Reply, err)
	}
	return &Delivery{
		Stored:      events.Stored{Seq: seq, Time: time.Unix(0, nanos).UTC(), Subject: m.Subject, Header: m.Header, Data: m.Data},
		Redelivered: delivered - 1,
		conn:        c,
		reply:       m.Reply,
	}, nil
}
