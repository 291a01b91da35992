package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// History returns all events of one job in order.
//
// Its cost does not depend on how much the stream holds. The server finds the
// last event of each of the job's subjects by index; what lies between is
// found by following each event's expectation, which the server has checked
// against the event before. Where a writer left that out, the stream is
// searched instead.
func (c *Conn) History(ctx context.Context, job string) ([]events.Stored, error) {
	out, err := c.linked(ctx, events.Filter("job", job))
	if errors.Is(err, errUnlinked) {
		out, err = c.searched(ctx, events.Filter("job", job))
	}
	if err != nil {
		return nil, fmt.Errorf("read the history of job %s: %w", job, err)
	}
	return out, nil
}

// errUnlinked says that the events do not name their predecessors.
var errUnlinked = errors.New("events are not linked")

// linked collects by index and links, and proves that nothing is missing: from
// the last event the links lead through every event to the beginning.
func (c *Conn) linked(ctx context.Context, filter string) ([]events.Stored, error) {
	known := map[uint64]events.Stored{}
	last := uint64(0)
	page, _, err := c.whole(ctx, grants.Stream, getRequest{Lasts: []string{filter}})
	if err != nil {
		return nil, err
	}
	for _, st := range page {
		known[st.Seq] = st
		last = max(last, st.Seq)
	}
	var out []events.Stored
	for seq := last; seq > 0; {
		st, ok := known[seq]
		if !ok {
			page, err := c.page(ctx, grants.Stream, getRequest{Seq: seq})
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				return nil, errUnlinked
			}
			st = page[0]
		}
		delete(known, seq)
		out = append(out, st)
		expect, ok := Predecessor(st, filter)
		if !ok || expect >= seq {
			return nil, errUnlinked
		}
		seq = expect
	}
	if len(known) > 0 {
		return nil, errUnlinked
	}
	slices.Reverse(out)
	return out, nil
}

// Predecessor is the sequence before an event under its own filter, 0 for none, as
// its writer named it and the server has checked; ok is false where the writer left
// that out.
func Predecessor(st events.Stored, filter string) (seq uint64, ok bool) {
	s, err := events.ParseSubject(st.Subject)
	if err != nil || s.Filter() != filter {
		return 0, false
	}
	expect, under := st.Header[events.HeaderExpect], st.Header[events.HeaderExpectFilter]
	if len(expect) != 1 || len(under) != 1 || under[0] != filter {
		return 0, false
	}
	seq, err = strconv.ParseUint(expect[0], 10, 64)
	return seq, err == nil
}

// newerMessages is how many events Newer takes; a job seldom has as many subjects.
const newerMessages = 32

// Newer returns the last event of each subject under the filters that was stored
// after a sequence, in order, and the sequence through which that is all there was.
// Through is 0 when the answer is not whole, because there is too much or because
// the stream holds nothing under the filters: then the caller reads the stream.
func (c *Conn) Newer(ctx context.Context, after uint64, filters ...string) (page []events.Stored, through uint64, err error) {
	page, through, err = c.whole(ctx, grants.Stream, getRequest{Lasts: filters, Seq: after + 1, Batch: newerMessages})
	if errors.Is(err, errUnlinked) || err == nil && len(page) >= newerMessages {
		return nil, 0, nil
	}
	return page, through, err
}

// whole is page for an answer that is of use only when it is complete.
func (c *Conn) whole(ctx context.Context, stream string, req getRequest) (page []events.Stored, through uint64, err error) {
	for {
		if err := c.waitUp(ctx); err != nil {
			return nil, 0, unanswered("read stream "+stream, err)
		}
		page, through, err := c.get(ctx, stream, req)
		var refused *Refused
		switch {
		case err == nil:
			return page, through, nil
		case errors.As(err, &refused): // more subjects than the server gives at once
			return nil, 0, errUnlinked
		case !transient(err):
			return nil, 0, unanswered("read stream "+stream, err)
		}
		if cause := pause(ctx, retryPause); cause != nil {
			return nil, 0, outage("read stream "+stream, cause)
		}
	}
}

// searched reads everything under the filter, from the beginning.
func (c *Conn) searched(ctx context.Context, filter string) ([]events.Stored, error) {
	var out []events.Stored
	next := uint64(1)
	for {
		page, err := c.Read(ctx, next, filter, pageMessages)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return out, nil
		}
		out = append(out, page...)
		next = slices.MaxFunc(page, func(a, b events.Stored) int { return cmp.Compare(a.Seq, b.Seq) }).Seq + 1
	}
}
