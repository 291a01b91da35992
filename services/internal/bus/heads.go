package bus

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/banksman/banksman/services/internal/grants"
)

// Heads is the bucket of the newest heads that may be signed, one per audit log. It lies
// on the server's disk in an account of its own, into which only the auditor reaches, and
// a value is replaced only by who names its revision.
type Heads struct{ conn *Conn }

// Heads returns the bucket.
func (c *Conn) Heads() *Heads { return &Heads{c} }

// headSubject is where the head of a log lies.
func headSubject(log string) string { return "$KV." + grants.HeadsBucket + "." + log }

// Get returns the head of a log and its revision, 0 for none.
func (h *Heads) Get(ctx context.Context, log string) (value []byte, revision uint64, err error) {
	subject := grants.HeadsPrefix + ".DIRECT.GET." + grants.HeadsStream + "." + headSubject(log)
	r, err := h.conn.ask(ctx, "read the head of log "+log, &nats.Msg{Subject: subject})
	if err != nil {
		return nil, 0, err
	}
	st, end, err := readAnswer(subject, r, false)
	if err != nil || end {
		return nil, 0, err
	}
	return st.Data, st.Seq, nil
}

// Swap replaces the value of a revision, 0 for none, and returns the new revision. It
// tries until the bus answers or ctx ends: then the outcome is unknown ([ErrOutage]). A
// [*Conflict] may be the work of an earlier attempt of the same call whose answer was lost,
// so that a value has to tell by itself whose it is.
func (h *Heads) Swap(ctx context.Context, log string, revision uint64, value []byte) (uint64, error) {
	m := &nats.Msg{Subject: headSubject(log), Data: value, Header: nats.Header{
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(revision, 10)},
		jetstream.ExpectedStreamHeader:      {grants.HeadsStream},
	}}
	r, err := h.conn.ask(ctx, "swap the head of log "+log, m)
	if err != nil {
		return 0, err
	}
	var ack pubAck
	if err := json.Unmarshal(r.Data, &ack); err != nil {
		return 0, fmt.Errorf("read the acknowledgement of the head of log %s: %w", log, err)
	}
	switch e := ack.Error; {
	case e == nil && (ack.Stream != grants.HeadsStream || ack.Seq == 0):
		return 0, fmt.Errorf("swap the head of log %s: stored by stream %q, want %s; check the streams of the bus", log, ack.Stream, grants.HeadsStream)
	case e == nil:
		return ack.Seq, nil
	case e.Code == codeWrongLast, e.Code == codeWrongLastRace:
		return 0, &Conflict{Filter: m.Subject, Expect: revision, Last: trailingNumber(e.Reason)}
	default:
		return 0, e.refusal(m.Subject)
	}
}
