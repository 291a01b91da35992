package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
)

const (
	// askWithin bounds one question to the bus, so that the loop goes on.
	askWithin = 10 * time.Second
	// keepEvery is how often the memory is written to disk.
	keepEvery = time.Minute
	// unheardFor is the pause after an event of its own that nobody believes.
	unheardFor = time.Minute
	// maxAppends bounds what is said between two readings of the stream.
	maxAppends = 100
)

// watch is one run of the monitor. Its loop owns everything but what mu
// guards.
type watch struct {
	cfg       Config
	env       *host.Env
	clock     clock
	path      string
	detectors []Detector

	mu     sync.Mutex
	memory *memory // changed by the loop alone, with mu held

	due    bool            // something may have to be said
	target uint64          // the stream's end when that was noticed, 0 when not asked yet
	said   map[uint64]bool // what was appended and not read yet
	// unheard is until when nothing is said, because nobody believes it:
	// saying it again at once would fill the stream.
	unheard time.Time

	kept   uint64
	keptAt time.Time
}

func newWatch(cfg Config, env *host.Env, c clock) *watch {
	return &watch{cfg: cfg, env: env, clock: c, path: statePath(env), detectors: detectors(cfg), memory: newMemory(), due: true, said: map[uint64]bool{}}
}

// recall takes up what an earlier run has put away, if it is of this stream.
func (w *watch) recall(ctx context.Context) error {
	origin := w.env.Bus.Origin()
	m, err := load(w.path, origin, w.cfg, w.detectors)
	var last uint64
	if err == nil {
		if last, err = w.env.Bus.LastSeq(ctx); err != nil {
			return err
		}
		if m.Seq > last {
			err = fmt.Errorf("it knows event %d, the stream ends with %d", m.Seq, last)
		}
	}
	if err != nil {
		if !missing(err) {
			w.env.Log.Warn("the stream is read from its first event, because what was put away is of no use", "reason", err)
		}
		w.detectors = detectors(w.cfg)
		return nil
	}
	w.memory, w.kept, w.keptAt = m, m.Seq, w.clock.now()
	return nil
}

// keep puts the memory away.
func (w *watch) keep() {
	if w.memory.Seq == w.kept {
		return
	}
	if err := save(w.path, w.env.Bus.Origin(), w.cfg, w.memory, w.detectors); err != nil {
		w.env.Log.Warn("the next start will read more of the stream", "error", err)
	}
	w.kept, w.keptAt = w.memory.Seq, w.clock.now()
}

// take folds an event and shows it to the detectors.
func (w *watch) take(ctx context.Context, st events.Stored) {
	s, err := events.ParseSubject(st.Subject)
	if err == nil && s.Family == "trust" {
		w.refresh(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || !watches(s) {
		w.memory.pass(st.Seq)
		return
	}
	w.due = true
	own := w.said[st.Seq]
	delete(w.said, st.Seq)
	e, err := w.memory.take(w.env.Standing.Book(), st)
	switch {
	case err == nil:
		for _, d := range w.detectors {
			d.Observe(e)
		}
	case own:
		w.unheard = w.clock.now().Add(unheardFor)
		w.env.Log.Error("the monitor's own event changes nothing", "seq", st.Seq, "subject", st.Subject, "reason", err)
	default:
		w.env.Log.Debug("an event changes nothing", "seq", st.Seq, "subject", st.Subject, "reason", err)
	}
}

// refresh reads the trust file that has just been stored. Without it later
// events would be judged by an older one, so it is tried until it works.
func (w *watch) refresh(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.env.Standing.Refresh(ctx)
		if err == nil {
			return
		}
		w.env.Log.Warn("the trust file could not be read", "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// settle says what has to be said, once everything was read that had been
// stored when the need arose. What fails is tried again with the next event or
// tick. The error is one that trying again does not mend.
func (w *watch) settle(ctx context.Context) error {
	if !w.due {
		return nil
	}
	now := w.clock.now()
	if now.Before(w.unheard) {
		w.env.Report(false, "the monitor's own events are not believed; see the log")
		return nil
	}
	if w.target == 0 {
		ask, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		last, err := w.env.Bus.LastSeq(ask)
		if err != nil {
			return nil // the bus is away; the next event or tick asks again
		}
		w.target = last
	}
	if w.memory.Seq < w.target {
		return nil // more comes at once
	}
	w.due, w.target = false, 0
	say := append(reconcile(w.memory, w.detectors, now), stops(w.memory, w.cfg, now)...)
	for _, s := range say[:min(len(say), maxAppends)] {
		if err := w.say(ctx, s); err != nil {
			w.due = true
			var denied *bus.Denied
			if errors.As(err, &denied) {
				return err
			}
			if ctx.Err() == nil {
				w.env.Log.Warn("an event could not be stored; it is decided anew", "kind", s.kind, "id", s.id, "error", err)
			}
			break
		}
	}
	w.tell()
	if len(say) == 0 && now.Sub(w.keptAt) >= keepEvery {
		w.keep()
	}
	return nil
}

// say appends one event behind what was read about its id.
func (w *watch) say(ctx context.Context, s saying) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	subject := events.For(s.kind, s.scope, s.id, w.env.Actor)
	if s.first { // it may have been forgotten since its last episode
		st, _, err := w.env.Bus.Last(ctx, subject.Filter())
		if err != nil {
			return err
		}
		if st.Seq > w.memory.Seq {
			w.due = true // somebody was faster, and what they said comes
			return nil
		}
		s.expect = st.Seq
	}
	seq, err := w.env.Append.Append(ctx, subject, s.expect, s.payload)
	var conflict *bus.Conflict
	if errors.As(err, &conflict) {
		w.due = true
		return nil
	}
	if err == nil {
		w.said[seq] = true
	}
	return err
}

// tell writes the board.
func (w *watch) tell() {
	critical, open := 0, w.memory.open()
	for _, a := range open {
		if a.Severity == events.SeverityCritical {
			critical++
		}
	}
	reason := ""
	if len(open) > 0 {
		reason = fmt.Sprintf("%d alerts are open, %d of them critical", len(open), critical)
	}
	w.env.Report(true, reason)
}

// onConnection says on the board that nothing is watched meanwhile.
func (w *watch) onConnection(connected bool) {
	if !connected {
		w.env.Report(false, "the bus is away since "+w.clock.now().UTC().Format(time.RFC3339)+"; nothing is found meanwhile")
	}
}
