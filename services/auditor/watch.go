package auditor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/tlog"
)

// lookRest is the least time between two looks at the stream, so that a busy site does
// not ask for every seal.
const lookRest = 100 * time.Millisecond

// watcher looks at the stream's state and settings: after every seal, and from time to
// time when nothing is sealed. In between it reads the stream again, page by page, and
// compares it with the log. What it finds is what following the stream cannot show:
// events that are gone although they were read, a lost tail, another stream of the same
// name, a setting that was made weaker, a bit that was flipped on the disk.
type watcher struct {
	a       *auditor
	tick    *time.Ticker
	daily   *time.Ticker
	lines   chan bool         // the connection comes and goes
	mark    int64             // size of the head when the line broke, 0 for none
	created time.Time         // of the stream, as the first look saw it
	told    map[string]uint64 // code and detail of what was said: the acknowledgements before it
	scrub   scrub
	counted uint64 // lost events that the stream's state shows and no scrub could name
}

// watch looks until the context ends. After each outage it also fetches the last
// event that was sealed before: a server that came back with less, and was written to
// since, is found by that.
func (a *auditor) watch(ctx context.Context) error {
	w := watcher{
		a: a, lines: make(chan bool, 16), told: map[string]uint64{},
		tick: time.NewTicker(time.Duration(a.config.CheckS) * time.Second), daily: time.NewTicker(time.Duration(a.config.ScrubH) * time.Hour),
	}
	defer w.tick.Stop()
	defer w.daily.Stop()
	defer a.stream.Notify(func(connected bool) {
		a.state.change(func(s *status) { s.looked = false })
		select {
		case w.lines <- connected:
		default: // so much coming and going ends in another look anyway
		}
	})()
	if err := w.scrub.begin(a); err != nil {
		return err
	}
	for ctx.Err() == nil {
		s, _, _ := a.state.get()
		if err := w.look(ctx); err != nil {
			return err
		}
		if w.mark > 0 {
			if err := a.compareBefore(ctx, w.mark); err != nil {
				return err
			}
			w.mark = 0
			if err := w.scrub.begin(a); err != nil {
				return err
			}
		}
		a.looked(ctx)
		if err := w.rest(ctx, s.head.Size); err != nil {
			return err
		}
	}
	return nil
}

// looked notes that the stream is the audited one as far as a look can show.
func (a *auditor) looked(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	a.state.change(func(s *status) { s.looked = true })
	a.wake()
}

// wake has the fold tell the board.
func (a *auditor) wake() {
	select {
	case a.rouse <- struct{}{}:
	default:
	}
}

// rest waits until there is a reason to look again: a head of another size than was
// looked at, the time, or the connection. Meanwhile it compares pages of the stream.
func (w *watcher) rest(ctx context.Context, size int64) error {
	rested := time.NewTimer(lookRest)
	defer rested.Stop()
	for free := false; ; {
		s, _, moved := w.a.state.get()
		if !free {
			moved = nil
		} else if s.head.Size != size {
			return nil
		}
		select {
		case <-rested.C:
			free = true
		case <-moved:
		case <-w.scrub.due():
			if err := w.step(ctx); err != nil {
				return err
			}
		case <-w.daily.C:
			if err := w.scrub.begin(w.a); err != nil {
				return err
			}
		case <-w.tick.C:
			return nil
		case connected := <-w.lines:
			if !connected && w.mark == 0 {
				w.mark = s.head.Size
			}
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// compareBefore fetches the last event of the first so many leaves and compares it.
func (a *auditor) compareBefore(ctx context.Context, leaves int64) error {
	for leaf := leaves - 1; leaf > 0; leaf-- {
		e, _, err := a.reader.Entry(leaf)
		if err != nil {
			return err
		}
		if e.Kind == tlog.KindEvent {
			return a.compare(ctx, leaf, e.Seq)
		}
	}
	return nil
}

// look compares the stream's state with what was read from it. What was seen is taken
// first, so that a stream that grows meanwhile is no fault.
func (w *watcher) look(ctx context.Context) error {
	seen, _, _ := w.a.state.get()
	now, err := w.a.stream.StreamState(ctx)
	if errors.Is(err, bus.ErrNoStream) {
		return fault(faultRecreated, "the stream of %s was deleted", stamp(w.created))
	}
	if err != nil {
		return err
	}
	if w.created.IsZero() {
		w.created = now.Created
	}
	switch {
	case !now.Created.Equal(w.created) && now.Last >= seen.seen && w.a.thinned(now, seen):
		if err := w.a.compareCarried(ctx); err != nil {
			return err
		}
		w.created = now.Created
	case !now.Created.Equal(w.created):
		return fault(faultRecreated, "the stream of %s was deleted, this one was made at %s", stamp(w.created), stamp(now.Created))
	case now.Last < seen.seen:
		return w.a.blame(ctx, fault(faultRollback, "the stream ends at sequence %d, %d was read before", now.Last, seen.seen))
	}
	weak := ""
	if now.Weak != nil {
		weak = now.Weak.Error()
	}
	if weak != seen.weak {
		w.a.state.change(func(s *status) { s.weak = weak })
	}
	if weak != "" {
		w.tell(events.AuditFaultFound{Code: faultWeak, Detail: weak})
	}
	if now.MaxBytes > 0 {
		own := w.a.log.Bytes() * 100 / now.MaxBytes
		percent := int64(now.Bytes) * 100 / now.MaxBytes
		if percent != seen.percent || own != seen.own {
			w.a.state.change(func(s *status) { s.percent, s.own = percent, own })
		}
	}
	if lost := now.Last - now.Messages; now.Last >= now.Messages && lost > w.known(seen) {
		return w.missing(ctx, now.Last, lost)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// known is how many events are known to be missing.
func (w *watcher) known(s status) uint64 {
	n := s.missing + s.dropped + w.counted
	for _, g := range s.lost {
		n += g.To - g.From + 1
	}
	return n
}

// missing decides what a hole in the stream means. One that was not read yet becomes a
// gap when it is; what is gone although it was read is looked for at once.
func (w *watcher) missing(ctx context.Context, last, lost uint64) error {
	for {
		s, _, advanced := w.a.state.get()
		switch {
		case w.known(s) >= lost:
			return nil
		case s.covered >= last:
			return w.search(ctx, lost)
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return nil
		}
	}
}

// search reads the whole stream again without a rest. If all that was audited is there,
// the state's count is all there is to say.
func (w *watcher) search(ctx context.Context, lost uint64) error {
	if err := w.scrub.begin(w.a); err != nil {
		return err
	}
	for w.scrub.active && ctx.Err() == nil {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	named := w.scrub.found
	if s, _, _ := w.a.state.get(); ctx.Err() == nil && w.known(s)+named < lost {
		w.counted += lost - w.known(s) - named
		w.tell(events.AuditFaultFound{Code: faultStream, Detail: fmt.Sprintf("the stream counts %d lost events, more than are known; the log holds all that was read", lost)})
	}
	return nil
}

// tell says a fault once: not while it waits for an acknowledgement, and not before
// what was said has been read.
func (w *watcher) tell(f events.AuditFaultFound) {
	s, _, _ := w.a.state.get()
	f.Detail = printable(f.Detail)
	key, found := f.Code+" "+f.Detail, openFault{FaultName: events.FaultName{Code: f.Code}, detail: f.Detail, from: f.From}
	if slices.ContainsFunc(s.open, found.same) {
		w.told[key] = s.acks
		return
	}
	if acks, told := w.told[key]; told && acks == s.acks {
		return
	}
	w.told[key] = s.acks
	w.a.slog.Error("integrity fault; dispatch is closed", "code", f.Code, "detail", f.Detail)
	w.a.state.change(func(s *status) { s.told = append(slices.Clip(s.told), found) })
	w.a.outbox.fault(f)
	w.a.wake()
}
