package auditor

import (
	"context"
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/tlog"
)

// lookRest is the least time between two looks at the stream, so that a busy site does
// not ask for every seal.
const lookRest = 100 * time.Millisecond

// watcher looks at the stream's state and settings: after every seal, and from time to
// time when nothing is sealed. What it finds is what following the stream cannot show:
// events that are gone although they were read, a lost tail, another stream of the same
// name, a setting that was made weaker.
type watcher struct {
	a       *auditor
	created time.Time         // of the stream, as the first look saw it
	told    map[string]uint64 // code and detail of what was said: the acknowledgements before it
	lost    uint64            // events lost after they were read that were told
}

// watch looks until the context ends. After each outage it also fetches the last
// event that was sealed before: a server that came back with less, and was written to
// since, is found by that.
func (a *auditor) watch(ctx context.Context) error {
	lines := make(chan bool, 16)
	defer a.stream.Notify(func(connected bool) {
		select {
		case lines <- connected:
		default: // so much coming and going ends in another look anyway
		}
	})()
	w := watcher{a: a, told: map[string]uint64{}}
	tick := time.NewTicker(time.Duration(a.config.CheckS) * time.Second)
	defer tick.Stop()
	var mark int64 // size of the head when the line broke, 0 for none
	for {
		s, _, advanced := a.state.get()
		looked := s.head.Size
		if err := w.look(ctx); err != nil {
			return err
		}
		if mark > 0 {
			if err := a.compareBefore(ctx, mark); err != nil {
				return err
			}
			mark = 0
		}
		rested := time.After(lookRest)
	wait:
		for {
			select {
			case <-tick.C:
				break wait
			case connected := <-lines:
				if s, _, _ := a.state.get(); !connected && mark == 0 {
					mark = s.head.Size
				}
				break wait
			case <-advanced:
				s, _, advanced = a.state.get()
				if s.head.Size == looked {
					continue
				}
				select {
				case <-rested:
					break wait
				case <-ctx.Done():
					return nil
				}
			case <-ctx.Done():
				return nil
			}
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
		return w.missing(ctx, now, lost)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// known is how many events are known to be missing.
func (w *watcher) known(s status) uint64 { return s.missing + s.dropped + max(s.lost, w.lost) }

// tell says a fault once: not while it waits for an acknowledgement, and not before
// what was said has been read.
func (w *watcher) tell(f events.AuditFaultFound) {
	s, _, _ := w.a.state.get()
	key := f.Code + " " + f.Detail
	for _, o := range s.open {
		if o.Code == f.Code && o.detail == printable(f.Detail) {
			w.told[key] = s.acks
			return
		}
	}
	if acks, told := w.told[key]; told && acks == s.acks {
		return
	}
	w.told[key] = s.acks
	w.a.slog.Error("integrity fault; dispatch is closed", "code", f.Code, "detail", f.Detail)
	w.a.outbox.fault(f)
}

// missing decides what a hole in the stream means. One that was not read yet becomes a
// gap when it is; what is gone although it was read is a fault, after which the log
// goes on: it holds what was lost.
func (w *watcher) missing(ctx context.Context, now bus.State, lost uint64) error {
	for {
		s, _, advanced := w.a.state.get()
		switch {
		case w.known(s) >= lost:
			return nil
		case s.covered >= now.Last:
			if f := w.a.recreated(now); f != nil {
				return f
			}
			w.lost = lost - s.missing - s.dropped
			w.tell(events.AuditFaultFound{Code: faultStream, Missing: lost, Detail: fmt.Sprintf(
				"%d of the stream's %d events are gone, %d of them were so when they were read; the log holds the others", lost, now.Last, s.missing)})
			return nil
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return nil
		}
	}
}
