package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/salvage"
)

// wrapUp keeps what the round has left and stores its end, however long the
// bus is away. When the supervisor stops first, the record stays for the next
// start.
func (t *tender) wrapUp(ctx context.Context, rec record) error {
	t.keepRecord(rec)
	t.seeToLeftovers(ctx, &rec)
	ctx, cancel := lasting(ctx, t.s.settle)
	defer cancel()
	for wait := briefly; ; wait = min(2*wait, 30*time.Second) {
		err := t.store(ctx, rec)
		var denied *bus.Denied
		switch {
		case err == nil:
			t.forget(rec)
			return nil
		case conflicts(err):
			wait = briefly / 2
			continue
		case errors.As(err, &denied), errors.Is(err, bus.ErrClosed), ctx.Err() != nil:
			return fmt.Errorf("store the end of round %s: %w; it waits on disk", rec.Round, err)
		}
		t.log.Warn("the end of a round waits", "round", rec.Round, "error", err)
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("store the end of round %s: %w; it waits on disk", rec.Round, err)
		}
	}
}

// lasting is a context that outlives another one by a while.
func lasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			end()
		case <-life.Done():
		}
	})
	return life, func() {
		stop()
		end()
	}
}

func (t *tender) keepRecord(rec record) {
	if err := t.journal.Put(rec, !t.s.env.Bus.Connected()); err != nil {
		t.log.Error("the end of a round is in memory only until the bus has it", "round", rec.Round, "error", err)
	}
}

// store says of a round what the log does not know yet.
func (t *tender) store(ctx context.Context, rec record) error {
	r, err := t.known(ctx, rec.Round)
	if errors.Is(err, loops.ErrUnknown) {
		return nil // its start was never stored, so it never began
	}
	if err != nil {
		return err
	}
	if r.Status == loop.Running {
		rec.Ended.Started = r.StartedSeq
		if err := t.sayRound(ctx, "round.ended", rec.Round, r.LastSeq, rec.Ended); err != nil {
			return err
		}
	}
	switch {
	case r.Settled():
	case rec.Salvaged != nil:
		return t.sayRound(ctx, "work.salvaged", rec.Round, r.WorkSeq, rec.Salvaged)
	case rec.Failed != nil:
		return t.sayRound(ctx, "work.salvage_failed", rec.Round, r.WorkSeq, rec.Failed)
	}
	return nil
}

// known is what the log holds of a round.
func (t *tender) known(ctx context.Context, round string) (loop.Round, error) {
	p, _, err := t.keeper.Project(ctx)
	if err != nil || p.Round.ID == round {
		return p.Round, err
	}
	return t.s.read.Round(ctx, round)
}

// settleLeft says what became of rounds of an earlier life.
func (t *tender) settleLeft(ctx context.Context) error {
	for len(t.left) > 0 {
		rec := t.left[0]
		r, err := t.known(ctx, rec.Round)
		switch {
		case errors.Is(err, loops.ErrUnknown):
			t.forget(rec) // nothing was executed before its start was stored
			t.left = t.left[1:]
			continue
		case err != nil:
			return err
		}
		if rec.Ended == nil {
			rec.Ended = interrupted(r.StartedSeq)
		}
		if err := t.wrapUp(ctx, rec); err != nil {
			return err
		}
		t.left = t.left[1:]
	}
	return nil
}

// seeToLeftovers keeps uncommitted changes once, even while the bus is away.
func (t *tender) seeToLeftovers(ctx context.Context, rec *record) {
	if rec.Looked || rec.Ended.Error != "" && rec.Ended.DurationMS == 0 {
		return // it was done, or nothing ever ran
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(t.s.cfg.SalvageLimitS)*time.Second)
	defer cancel()
	saved, err := salvage.Save(limited, salvage.Order{
		Dir: t.cfg.WorkDir, Project: t.name, Round: rec.Round, Now: time.Now(), Git: t.git,
		Message: fmt.Sprintf("banksman: leftovers of round %s (%s)", rec.Round, rec.Ended.Outcome),
	})
	var failed *salvage.Failure
	switch {
	case errors.As(err, &failed):
		t.log.Error("the changes of a round are not kept", "round", rec.Round, "code", failed.Code, "error", err)
		rec.Failed = &events.WorkSalvageFailed{Code: failed.Code, Reason: err.Error()}
	case err != nil:
		rec.Failed = &events.WorkSalvageFailed{Code: salvage.CodeGit, Reason: err.Error()}
	case saved.Ref != "":
		rec.Salvaged = &events.WorkSalvaged{
			Ref: saved.Ref, Commit: saved.Commit, Base: saved.Base, Files: saved.Files, Bytes: saved.Bytes, Nested: saved.Nested, Missed: saved.Missed,
		}
	}
	if rec.Looked = true; rec.Salvaged != nil || rec.Failed != nil { // to look again where there was nothing costs nothing
		t.keepRecord(*rec)
	}
}

// git runs git where the agent itself ran: the repository's configuration is
// the agent's to write, and may name programs.
func (t *tender) git(ctx context.Context, c salvage.Command) (int, error) {
	found, path, err := proc.Lookup("git", c.Dir, os.Getenv("PATH"))
	if err != nil {
		return -1, err
	}
	spec := proc.Spec{
		Argv: append([]string{"git"}, c.Args...), Path: path, Found: found, Dir: c.Dir, Env: c.Env, Stdin: c.Stdin,
		Stdout: c.Stdout, Stderr: c.Stderr, Grace: time.Duration(t.s.cfg.GraceS) * time.Second, Umask: t.s.cfg.Umask,
	}
	if err := t.cover(&spec); err != nil {
		return -1, err
	}
	spec.Expose = nil
	p, err := t.s.crew.Start(ctx, spec)
	if err != nil {
		return -1, err
	}
	outcome, err := p.Wait()
	switch {
	case ctx.Err() != nil:
		return -1, context.Cause(ctx)
	case err != nil:
		return -1, err
	case outcome.Signal != "":
		return -1, fmt.Errorf("a signal ended it: %s", outcome.Signal)
	}
	return outcome.ExitCode, nil
}
