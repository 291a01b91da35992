package bus

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// Signer signs events for one actor.
type Signer interface {
	// Key is the public key as the trust file shows it.
	Key() string
	// Sign returns the 64 bytes of RFC 8032.
	Sign(text []byte) []byte
}

// Appender appends events of one actor in one session. Its events are numbered
// without holes: a refused append uses no number, and while the outcome of one
// append is unknown no other is made.
type Appender struct {
	conn    *Conn
	signer  Signer
	session string
	turn    chan struct{} // holds one token; whoever has it owns the fields below

	n       uint64          // number of the last stored event
	pending *events.Message // sent, outcome unknown
}

// Appender starts a session.
func (c *Conn) Appender(s Signer) *Appender {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	a := &Appender{conn: c, signer: s, session: hex.EncodeToString(b[:]), turn: make(chan struct{}, 1)}
	a.turn <- struct{}{}
	return a
}

// Session is the session's name, 20 hexadecimal digits.
func (a *Appender) Session() string { return a.session }

// Append stores one event and returns its sequence. Expect is the last
// sequence that the caller has seen under s.Filter(), 0 for none.
//
// Errors: [*Conflict], [ErrFull], [*Denied], [*Refused] mean that it was not
// stored. [ErrOutage] means that ctx ended first; if the event went out, the
// next Append finds out what became of it before it does anything else.
func (a *Appender) Append(ctx context.Context, s events.Subject, expect uint64, payload any) (uint64, error) {
	select {
	case <-a.turn:
		defer func() { a.turn <- struct{}{} }()
	case <-ctx.Done():
		return 0, outage("append "+s.String(), context.Cause(ctx))
	}
	if err := a.settle(ctx); err != nil {
		return 0, err
	}
	id := events.ID{Actor: a.conn.cfg.Actor, Session: a.session, N: a.n + 1}
	m, err := events.New(a.conn.cfg.Origin, s, id, time.Now(), expect, payload)
	if err != nil {
		return 0, err
	}
	m.Sign(a.conn.cfg.Origin, a.signer.Key(), a.signer.Sign)
	return a.send(ctx, m, false)
}

// settle finds out what became of the append whose outcome is unknown.
func (a *Appender) settle(ctx context.Context) error {
	if a.pending == nil {
		return nil
	}
	_, err := a.send(ctx, *a.pending, true)
	if a.pending != nil {
		return fmt.Errorf("settle the append before this one: %w", err)
	}
	return nil
}

// send delivers and keeps the books.
func (a *Appender) send(ctx context.Context, m events.Message, doubt bool) (uint64, error) {
	seq, unknown, err := a.conn.deliver(ctx, m, doubt)
	a.pending = nil
	switch {
	case unknown:
		a.pending = &m
	case err == nil:
		a.n++
	}
	return seq, err
}

// AppendRaw stores an event that somebody else has signed. It may be called
// again with the same bytes: an event that is already there is found, not
// stored twice.
func (c *Conn) AppendRaw(ctx context.Context, m events.Message) (uint64, error) {
	seq, _, err := c.deliver(ctx, m, true)
	return seq, err
}

// deliver sends the same bytes until it is known whether they are stored.
// Doubt says that they may be already; unknown, that they may be and ctx ended.
func (c *Conn) deliver(ctx context.Context, m events.Message, doubt bool) (seq uint64, unknown bool, err error) {
	what := "append " + m.Subject.String()
	for {
		if err := c.waitUp(ctx); err != nil {
			return 0, doubt, unanswered(what, err)
		}
		seq, err := c.publish(ctx, m)
		switch {
		case err == nil:
			return seq, false, nil
		case errors.Is(err, errUnsent):
		case errors.Is(err, errNoResponders), transient(err):
			// While the server takes up a new trust file it may say that nobody
			// responds to a message that it has stored.
			doubt = true
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrClosed):
			return 0, true, unanswered(what, err) // it went out, and nobody waited for the answer
		case !doubt:
			return 0, false, err
		default:
			return c.settled(ctx, m, err)
		}
		if cause := pause(ctx, retryPause); cause != nil {
			return 0, doubt, outage(what, cause)
		}
	}
}

// settled turns a refusal into success when the refusal was caused by an
// earlier attempt of the same event.
func (c *Conn) settled(ctx context.Context, m events.Message, refusal error) (seq uint64, unknown bool, err error) {
	seq, found, err := c.find(ctx, m)
	switch {
	case err != nil:
		return 0, true, err
	case found:
		return seq, false, nil
	}
	return 0, false, refusal
}

// find looks for a message among what was stored on its subject since the
// position it expected.
func (c *Conn) find(ctx context.Context, m events.Message) (seq uint64, found bool, err error) {
	next := m.Expect + 1
	for {
		page, err := c.Read(ctx, next, m.Subject.String(), pageMessages)
		if err != nil || len(page) == 0 {
			return 0, false, err
		}
		for _, st := range page {
			if sameEvent(st, m) {
				return st.Seq, true, nil
			}
			next = st.Seq + 1
		}
	}
}

// sameEvent compares names and signatures, so that nobody can take an event's
// place by guessing its id.
func sameEvent(st events.Stored, m events.Message) bool {
	for _, h := range []string{events.HeaderID, events.HeaderSignature} {
		if strings.Join(st.Header[h], "\n") != strings.Join(m.Header[h], "\n") {
			return false
		}
	}
	return true
}

// pubAck is JetStream's answer to a publish.
type pubAck struct {
	Stream    string    `json:"stream"`
	Seq       uint64    `json:"seq"`
	Duplicate bool      `json:"duplicate"`
	Error     *apiError `json:"error"`
}

// apiError is JetStream's error.
type apiError struct {
	Status int    `json:"code"`
	Code   int    `json:"err_code"`
	Reason string `json:"description"`
}

// JetStream's error codes that mean something here.
const (
	codeWrongLast       = 10071 // names the last sequence
	codeWrongLastRace   = 10164 // a concurrent writer was first
	codeStoreFailed     = 10077 // among others: a limit of the stream
	codeNoStream        = 10059
	codeAccountStorage  = 10002
	codeMemoryResources = 10028
	codeStorageExceeded = 10047
	statusUnavailable   = 503
)

// publish makes one attempt.
func (c *Conn) publish(ctx context.Context, m events.Message) (uint64, error) {
	r, err := c.request(ctx, &nats.Msg{Subject: m.Subject.String(), Header: m.Header, Data: m.Data})
	if err != nil {
		return 0, err
	}
	return readAck(m, r.Data)
}

// readAck reads JetStream's answer.
func readAck(m events.Message, data []byte) (uint64, error) {
	var ack pubAck
	if err := json.Unmarshal(data, &ack); err != nil {
		return 0, fmt.Errorf("read the acknowledgement of %s: %w", m.Subject, err)
	}
	switch e := ack.Error; {
	case e == nil && ack.Duplicate:
		return 0, ErrDuplicate
	case e == nil && (ack.Stream != grants.Stream || ack.Seq == 0):
		return 0, fmt.Errorf("append %s: stored by stream %q, want %s; check the streams of the bus", m.Subject, ack.Stream, grants.Stream)
	case e == nil:
		return ack.Seq, nil
	case e.Code == codeWrongLast, e.Code == codeWrongLastRace:
		return 0, &Conflict{Filter: m.Subject.Filter(), Expect: m.Expect, Last: trailingNumber(e.Reason)}
	default:
		return 0, e.refusal(m.Subject.String())
	}
}

// refusal sorts the other errors.
func (e *apiError) refusal(subject string) error {
	switch {
	case e.Code == codeStoreFailed && strings.Contains(e.Reason, "maximum bytes"),
		e.Code == codeStoreFailed && strings.Contains(e.Reason, "maximum messages exceeded"),
		e.Code == codeAccountStorage, e.Code == codeMemoryResources, e.Code == codeStorageExceeded:
		return fmt.Errorf("append %s: %w", subject, ErrFull)
	case e.Status == statusUnavailable && e.Code != codeStoreFailed:
		return errNoResponders
	}
	return &Refused{Subject: subject, Status: e.Status, Code: e.Code, Reason: e.Reason}
}

// trailingNumber reads "wrong last sequence: 61".
func trailingNumber(reason string) uint64 {
	_, text, _ := strings.Cut(reason, ": ")
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}
