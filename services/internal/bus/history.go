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
	page, err := c.whole(ctx, grants.Stream, getRequest{Lasts: []string{filter}})
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
		expect, ok := predecessor(st, filter)
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

// predecessor is the sequence before an event under its own filter.
func predecessor(st events.Stored, filter string) (seq uint64, ok bool) {
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

// whole is page for an answer that is of use only when it is complete.
func (c *Conn) whole(ctx context.Context, stream string, req getRequest) ([]events.Stored, error) {
	for {
		if err := c.waitUp(ctx); err != nil {
			return nil, unanswered("read stream "+stream, err)
		}
		page, err := c.get(ctx, stream, req)
		var refused *Refused
		switch {
		case err == nil:
			return page, nil
		case errors.As(err, &refused): // more subjects than the server gives at once
			return nil, errUnlinked
		case !transient(err):
			return nil, unanswered("read stream "+stream, err)
		}
		if cause := pause(ctx, retryPause); cause != nil {
			return nil, outage("read stream "+stream, cause)
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
