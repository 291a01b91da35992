package auditor

import (
	"context"
	"time"

	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/tlog"
)

// watch looks at the stream's state from time to time: deleted events and a lost tail
// show there although nothing new arrives. After each outage it also fetches the last
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
	tick := time.NewTicker(time.Duration(a.config.CheckS) * time.Second)
	defer tick.Stop()
	var mark int64 // size of the head when the line broke, 0 for none
	for {
		if err := a.look(ctx); err != nil {
			return err
		}
		if mark > 0 {
			if err := a.compareBefore(ctx, mark); err != nil {
				return err
			}
			mark = 0
		}
		select {
		case <-tick.C:
		case connected := <-lines:
			if s, _, _ := a.state.get(); !connected && mark == 0 {
				mark = s.head.Size
			}
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
func (a *auditor) look(ctx context.Context) error {
	seen, _, _ := a.state.get()
	now, err := a.stream.StreamState(ctx)
	if err != nil {
		return err
	}
	if now.Last < seen.seen {
		return fault(faultRollback, "the stream ends at sequence %d, %d was read before", now.Last, seen.seen)
	}
	if lost := now.Last - now.Messages; now.Last >= now.Messages && lost > seen.missing {
		return a.missing(ctx, now, lost)
	}
	return nil
}

// missing decides what a hole in the stream means. One that was not read yet becomes a
// gap when it is; only what is gone although it was read is a fault.
func (a *auditor) missing(ctx context.Context, now bus.State, lost uint64) error {
	for {
		s, _, advanced := a.state.get()
		switch {
		case s.missing >= lost:
			return nil
		case s.covered >= now.Last:
			return fault(faultStream, "%d of its %d events are gone, %d of them were so when they were read: %v", lost, now.Last, s.missing, now.Check())
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return nil
		}
	}
}
