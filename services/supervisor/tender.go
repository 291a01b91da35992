package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/proc"
)

const (
	// againAfter is how soon something is tried again that failed for a
	// reason outside the log.
	againAfter = 5 * time.Second
	// briefly is the first pause after a fault of the bus.
	briefly = 200 * time.Millisecond
)

// tender looks after one project. Its goroutine owns everything but what mu
// guards.
type tender struct {
	s       *shift
	name    string
	cfg     Project
	log     *slog.Logger
	journal journal
	keeper  *loops.Keeper
	wake    chan struct{} // one token: look at the log
	folder  *os.File      // locked work folder, nil while it is not
	left    []record      // rounds of an earlier life

	mu     sync.Mutex
	holder bool   // the project is held by this session
	reason string // why it does not run, empty while it does or rests
}

func newTender(s *shift, name string, cfg Project) *tender {
	return &tender{
		s: s, name: name, cfg: cfg, log: s.log.With("project", name), wake: make(chan struct{}, 1),
		keeper: &loops.Keeper{Reader: s.read, Name: name},
	}
}

// open reads what an earlier life has left and ends what still runs of it,
// before anything new starts.
func (t *tender) open() error {
	var err error
	if t.journal, err = openJournal(stateDir(t.s.env, t.s.me.actor, t.name)); err != nil {
		return err
	}
	if t.left, err = t.journal.Leftovers(); err != nil {
		t.log.Error("rounds of an earlier run cannot be read; look at their files", "error", err)
	}
	for _, r := range t.left {
		killed, err := proc.SweepMarker(r.Marker)
		if err != nil {
			t.log.Error("processes of an earlier round could not be ended", "round", r.Round, "error", err)
		}
		if len(killed) > 0 {
			t.log.Warn("ended processes that an earlier run had left", "round", r.Round, "pids", killed)
		}
		t.revoke(r.Round)
	}
	return nil
}

func (t *tender) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run looks after the project until ctx ends, then lets go of it.
func (t *tender) run(ctx context.Context) error {
	defer func() {
		if t.folder != nil {
			t.folder.Close()
		}
	}()
	for ctx.Err() == nil {
		pause, err := t.advance(ctx)
		var denied *bus.Denied
		switch {
		case errors.As(err, &denied), errors.Is(err, bus.ErrClosed):
			t.release(ctx)
			return unlessEnded(ctx, err)
		case conflicts(err):
			pause = 0
		case err != nil && ctx.Err() == nil:
			t.log.Warn("the project waits", "error", err)
			t.waitsFor(err.Error())
			pause = againAfter
		}
		t.sleep(ctx, pause)
	}
	t.release(ctx)
	return nil
}

// sleep waits for news, for a while, or for the end. A negative pause waits
// for news alone.
func (t *tender) sleep(ctx context.Context, pause time.Duration) {
	if pause == 0 {
		return
	}
	var due <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-t.wake:
	case <-due:
	case <-ctx.Done():
	}
}

// advance does the next thing that the project needs and says how long to
// rest before the one after it.
func (t *tender) advance(ctx context.Context) (pause time.Duration, err error) {
	if t.folder == nil {
		if t.folder, err = lockFolder(t.cfg.WorkDir); err != nil {
			return 0, err
		}
	}
	p, _, err := t.keeper.Project(ctx)
	if err != nil {
		return 0, err
	}
	t.noteHolder(p.Loop.Holder.Is(t.s.me.actor, t.s.me.session))
	if t.holds() && len(t.left) > 0 {
		return 0, t.settleLeft(ctx)
	}
	now := time.Now()
	st := next(p, t.s.me, t.cfg, facts{now: now, silent: t.s.ears.silent(p.Loop.Holder.Session)})
	t.waitsFor(st.reason)
	if st.do != doWait {
		return 0, t.do(ctx, st.do, p)
	}
	if st.until.IsZero() {
		return -1, nil
	}
	return max(time.Millisecond, st.until.Sub(now)), nil
}

// do carries a step out.
func (t *tender) do(ctx context.Context, what doing, p loop.Project) error {
	switch what {
	case doClaim:
		return t.say(ctx, "loop.claimed", p.Loop.LastSeq, &events.LoopClaimed{
			Host: t.s.me.host, WorkDir: t.cfg.WorkDir, LeaseS: t.s.cfg.LeaseS, MaxRounds: t.cfg.MaxRounds, Version: t.s.env.Version,
		})
	case doInterrupt:
		return t.finish(ctx, record{Project: t.name, Round: p.Round.ID, Ended: interrupted(p.Round.StartedSeq)})
	case doSee:
		return t.say(ctx, "stop.seen", p.Stop.LastSeq, &events.StopSeen{Ordered: p.Stop.Seq})
	case doSettle:
		kind, payload := settled(p)
		return t.say(ctx, kind, p.Stop.LastSeq, payload)
	case doConfirm:
		return t.say(ctx, "stop.confirmed", p.Stop.LastSeq, &events.StopConfirmed{Ordered: p.Stop.Seq})
	case doHalt:
		return t.say(ctx, "loop.halted", p.Loop.LastSeq, halt(p, t.cfg))
	}
	return t.round(ctx, p)
}

// say stores something about the project.
func (t *tender) say(ctx context.Context, kind events.Kind, expect uint64, payload any) error {
	_, err := t.s.env.Append.Append(ctx, events.For(kind, t.name, t.name, t.s.me.actor), expect, payload)
	return err
}

// sayRound stores something about a round.
func (t *tender) sayRound(ctx context.Context, kind events.Kind, round string, expect uint64, payload any) error {
	_, err := t.s.env.Append.Append(ctx, events.For(kind, t.name, round, t.s.me.actor), expect, payload)
	return err
}

// release gives the project back when the supervisor stops. A bus that is
// away misses it; the next session of this place takes the project all the
// same.
func (t *tender) release(ctx context.Context) {
	if !t.holds() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.s.settle)
	defer cancel()
	for {
		p, _, err := t.keeper.Project(ctx)
		if err == nil && p.Loop.Holder.Is(t.s.me.actor, t.s.me.session) {
			err = t.say(ctx, "loop.released", p.Loop.LastSeq, &events.LoopReleased{Claim: p.Loop.Holder.Seq, Reason: reasonStopped})
		}
		if conflicts(err) {
			continue
		}
		if err != nil {
			t.log.Warn("the project could not be released; its next supervisor takes it", "error", err)
		}
		t.noteHolder(false)
		return
	}
}

func (t *tender) noteHolder(holds bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holder = holds
}

func (t *tender) holds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holder
}

// waitsFor shows on the board what the project waits for.
func (t *tender) waitsFor(reason string) {
	t.mu.Lock()
	changed := t.reason != reason
	t.reason = reason
	t.mu.Unlock()
	if changed {
		t.s.tell()
	}
}

func (t *tender) waits() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reason
}

func conflicts(err error) bool {
	var c *bus.Conflict
	return errors.As(err, &c)
}
