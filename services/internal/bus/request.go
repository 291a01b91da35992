package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// attemptTimeout is how long one attempt may stay without an answer. An fsync
// on a busy disk takes long, so it is generous; a lost connection and a denied
// subject end the attempt at once anyway.
const attemptTimeout = 5 * time.Second

// flight is one exchange that waits for an answer.
type flight struct {
	subject string
	cancel  context.CancelCauseFunc
}

// fly registers an exchange, so that a denial of its subject or the loss of
// the connection ends it with that cause.
func (c *Conn) fly(ctx context.Context, subject string, timeout time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timed, stop := context.WithTimeoutCause(ctx, timeout, errSilent)
	f := &flight{subject: subject, cancel: cancel}
	c.mu.Lock()
	c.flights[f] = struct{}{}
	c.mu.Unlock()
	return timed, func() {
		c.mu.Lock()
		delete(c.flights, f)
		c.mu.Unlock()
		stop()
		cancel(nil)
	}
}

// cut ends every exchange.
func (c *Conn) cut(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.flights {
		f.cancel(cause)
	}
}

// deny ends the exchanges that the server's complaint is about. The server
// sends it to the connection, not to the caller, who would wait in vain.
func (c *Conn) deny(complaint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.flights {
		if strings.Contains(complaint, "ublish to \""+f.subject+"\"") {
			f.cancel(c.denied(f.subject, complaint))
			return
		}
	}
	c.log.Error("the bus denied a subject", "actor", c.cfg.Actor, "complaint", complaint)
}

func (c *Conn) denied(subject, complaint string) *Denied {
	return &Denied{Actor: c.cfg.Actor, Subject: subject, Reason: strings.TrimPrefix(complaint, "nats: ")}
}

// request makes one attempt to get one answer. Errors: errUnsent,
// errNoResponders (nothing happened); errSilent, errCut (outcome unknown);
// *Denied, ErrClosed; or why ctx ended.
func (c *Conn) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	attempt, done := c.fly(ctx, m.Subject, attemptTimeout)
	defer done()
	r, err := c.nc.RequestMsgWithContext(attempt, m)
	if err == nil {
		return r, nil
	}
	return nil, c.outcome(attempt, err)
}

// outcome names why an attempt failed.
func (c *Conn) outcome(attempt context.Context, err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return errNoResponders
	case errors.Is(err, nats.ErrConnectionClosed):
		return ErrClosed
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionReconnecting),
		errors.Is(err, nats.ErrDisconnected):
		return errUnsent
	case attempt.Err() != nil:
		return ended(context.Cause(attempt))
	case errors.Is(err, nats.ErrTimeout):
		return errSilent
	}
	return err
}

// ended is why an attempt was given up. A caller may end its context for a reason
// of its own; that is a cancellation like any other, and what was sent may have
// arrived.
func ended(cause error) error {
	var denied *Denied
	if transient(cause) || errors.As(cause, &denied) || errors.Is(cause, ErrClosed) ||
		errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("%w: %w", context.Canceled, cause)
}

// transient says whether another attempt may fare better.
func transient(err error) bool {
	return errors.Is(err, errUnsent) || errors.Is(err, errNoResponders) || errors.Is(err, errSilent) || errors.Is(err, errCut)
}

// ask repeats a request that is harmless to repeat until it is answered.
func (c *Conn) ask(ctx context.Context, what string, m *nats.Msg) (*nats.Msg, error) {
	for {
		if err := c.waitUp(ctx); err != nil {
			return nil, unanswered(what, err)
		}
		r, err := c.request(ctx, m)
		if err == nil {
			return r, nil
		}
		if !transient(err) {
			return nil, unanswered(what, err)
		}
		if cause := pause(ctx, retryPause); cause != nil {
			return nil, outage(what, cause)
		}
	}
}

// retryPause keeps a client from spinning while a server starts.
const retryPause = 50 * time.Millisecond

// unanswered wraps the end of the caller's patience as an outage and leaves
// other errors as they are.
func unanswered(what string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return outage(what, err)
	}
	return err
}
