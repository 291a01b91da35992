package auditor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/tlog"
)

const (
	// scrubPage is how many events are compared at a time.
	scrubPage = 256
	// scrubRest lies between two pages: comparing is never in a hurry and leaves most
	// of a processor to others.
	scrubRest = 20 * time.Millisecond
	// maxLost bounds how many separate losses one comparison names.
	maxLost = 20
)

// scrub is a comparison of the stream with the log, from the first event on. A server
// may lose a message to a flipped bit and go on counting it: only reading shows.
type scrub struct {
	active bool
	at     time.Time // of the next page
	leaf   int64     // next to be compared
	leaves int64     // of the log when it began
	found  uint64    // lost events that it has named
	lost   []Gap     // not named yet, the last may grow
}

// begin starts over.
func (s *scrub) begin(a *auditor) error {
	leaves := a.log.Size()
	*s = scrub{active: true, at: time.Now(), leaf: 1, leaves: leaves}
	return logFault(a.log.Flush())
}

// due fires when the next page is; never while nothing is to be compared.
func (s *scrub) due() <-chan time.Time {
	if !s.active {
		return nil
	}
	return time.After(time.Until(s.at))
}

// step compares one page.
func (w *watcher) step(ctx context.Context) error {
	s := &w.scrub
	s.at = time.Now().Add(scrubRest)
	var from uint64
	for ; s.leaf < s.leaves; s.leaf++ {
		e, _, err := w.a.reader.Entry(s.leaf)
		if err != nil {
			return logFault(err)
		}
		if e.Kind == tlog.KindEvent {
			from = e.Seq
			break
		}
	}
	if s.leaf >= s.leaves {
		return w.compared(ctx)
	}
	page, err := w.a.stream.Read(ctx, from, everything, scrubPage)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for _, st := range page {
		if err := w.upTo(st.Seq); err != nil {
			return err
		}
		if s.leaf >= s.leaves {
			break
		}
		if e, _, err := w.a.reader.Entry(s.leaf); err != nil {
			return logFault(err)
		} else if e.Seq != st.Seq {
			continue // it lies in a gap of the log, which nothing heals
		}
		if err := w.same(ctx, st); err != nil {
			return err
		}
		s.leaf++
	}
	if len(page) == 0 { // nothing is left of what follows
		if err := w.upTo(1 << 63); err != nil {
			return err
		}
	}
	return nil
}

// upTo takes the leaves before a sequence, which the stream does not hold any more.
func (w *watcher) upTo(seq uint64) error {
	s := &w.scrub
	for ; s.leaf < s.leaves; s.leaf++ {
		e, _, err := w.a.reader.Entry(s.leaf)
		if err != nil {
			return logFault(err)
		}
		if e.Kind != tlog.KindEvent {
			continue
		}
		if e.Seq >= seq {
			return nil
		}
		w.lose(e.Seq)
	}
	return nil
}

// lose notes a sequence that is gone, unless it is known to be.
func (w *watcher) lose(seq uint64) {
	known, _, _ := w.a.state.get()
	if slices.ContainsFunc(known.lost, func(g Gap) bool { return g.From <= seq && seq <= g.To }) {
		return
	}
	s := &w.scrub
	if n := len(s.lost); n > 0 && (s.lost[n-1].To+1 == seq || n >= maxLost) {
		s.lost[n-1].To = seq
	} else {
		s.lost = append(s.lost, Gap{From: seq, To: seq})
	}
	s.found++
}

// same compares a message with the leaf that is next.
func (w *watcher) same(ctx context.Context, st events.Stored) error {
	err := w.a.reader.Matches(w.scrub.leaf, recordOf(st), metaOf(st))
	if errors.Is(err, tlog.ErrDiffers) {
		return w.a.blame(ctx, fault(faultFork, "sequence %d of the stream is not the event that was audited", st.Seq))
	}
	return logFault(err)
}

// compared names what was lost.
func (w *watcher) compared(ctx context.Context) error {
	s := &w.scrub
	s.active = false
	if len(s.lost) == 0 {
		return nil
	}
	now, err := w.a.stream.StreamState(ctx)
	if err != nil {
		return err
	}
	if f := w.a.recreated(now); f != nil {
		return f
	}
	if last := s.lost[len(s.lost)-1].To; now.Last < last {
		return fault(faultRollback, "the stream ends at sequence %d, %d was read before", now.Last, last)
	}
	for _, g := range s.lost {
		w.tell(events.AuditFaultFound{Code: faultStream, From: g.From, To: g.To, Detail: fmt.Sprintf(
			"the stream has lost events %d to %d after they were read; the log holds them", g.From, g.To)})
	}
	return nil
}
