package supervisor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/redact"
	"github.com/banksman/banksman/services/internal/site"
)

// round begins a round, runs it to its end and says what became of it. From
// before its start is published it is on disk.
func (t *tender) round(ctx context.Context, p loop.Project) error {
	agent, err := prepare(t.cfg, os.Getenv("PATH"))
	if err != nil {
		return err
	}
	newest, err := t.s.read.Newest(ctx, t.name)
	if err != nil {
		return err
	}
	start := t.start(p, newest+1, agent)
	rec := record{Project: t.name, Round: events.RoundID(t.name, start.Number), Marker: rand.Text()}
	if err := t.journal.Put(rec, true); err != nil {
		return err
	}
	seq, err := t.s.env.Append.Append(ctx, events.For("round.started", t.name, rec.Round, t.s.me.actor), 0, start)
	if err != nil {
		if !errors.Is(err, bus.ErrOutage) { // it is known not to be stored
			t.forget(rec)
		} else {
			t.left = append(t.left, rec)
		}
		return err
	}
	if p, err = t.confirm(ctx, rec.Round, seq); err != nil {
		t.left = append(t.left, rec)
		return err
	}
	if p.Round.StartedSeq != seq {
		t.log.Warn("the start of a round does not count; nothing was executed", "round", rec.Round)
		t.forget(rec)
		return nil
	}
	rec.Ended = t.perform(ctx, rec, agent, seq)
	return t.finish(ctx, rec)
}

// finish wraps a round up, or remembers that it is still to be done.
func (t *tender) finish(ctx context.Context, rec record) error {
	err := t.wrapUp(ctx, rec)
	if err != nil {
		t.left = append(t.left, rec)
	}
	return err
}

// start describes a round that is about to begin.
func (t *tender) start(p loop.Project, number int, agent call) *events.RoundStarted {
	sum := sha256.Sum256(agent.prompt)
	return &events.RoundStarted{
		Claim: p.Loop.Holder.Seq, Number: number, Turn: p.NextTurn(), Program: filepath.Base(t.cfg.Agent[0]),
		PromptSHA256: hex.EncodeToString(sum[:]), PromptBytes: int64(len(agent.prompt)),
		TimeLimitS: t.cfg.RoundTimeLimitS, UnsafeSharedUser: !t.s.cfg.Hide,
	}
}

// confirm reads the round's start back as it was stored. It gives up only
// when the supervisor stops.
func (t *tender) confirm(ctx context.Context, round string, seq uint64) (loop.Project, error) {
	for {
		p, through, err := t.keeper.Project(ctx)
		if err == nil && through < seq {
			err = fmt.Errorf("read the start of round %s: a replica of the stream lags behind", round)
		}
		if err == nil || ctx.Err() != nil {
			return p, err
		}
		if pause(ctx, briefly) != nil {
			return p, context.Cause(ctx)
		}
	}
}

// perform executes the agent and returns how it ended.
func (t *tender) perform(ctx context.Context, rec record, agent call, started uint64) *events.RoundEnded {
	t.pruneLogs()
	env, err := t.environment(rec.Round)
	if err != nil {
		t.revoke(rec.Round)
		return notExecuted(started, err)
	}
	rules, err := redact.New(redact.Telltales(env)...).Own(t.s.env.Site.SecretPatterns...)
	if err != nil {
		t.revoke(rec.Round)
		return notExecuted(started, err)
	}
	book, err := openScroll(t.journal.log(rec.Round), t.s.cfg.MaxLogBytes, rules)
	if err != nil {
		t.revoke(rec.Round)
		return notExecuted(started, err)
	}
	life, endLife := context.WithCancel(context.WithoutCancel(ctx))
	var publishing sync.WaitGroup
	publishing.Go(func() { t.publish(life, book, rec.Round) })
	seen := &witness{}
	end := t.execute(ctx, rec, started, proc.Spec{
		Argv: agent.argv, Path: agent.real, Found: agent.found, Dir: t.cfg.WorkDir, Env: env, Stdin: agent.stdin,
		Stdout: io.MultiWriter(book.stdout(), seen), Stderr: book.stderr(), TimeLimit: time.Duration(t.cfg.RoundTimeLimitS) * time.Second,
		Grace: time.Duration(t.s.cfg.GraceS) * time.Second, Marker: rec.Marker, Umask: t.s.cfg.Umask,
	})
	t.revoke(rec.Round)
	end.Failure = seen.failure(end.ExitCode)
	end.Stdout, end.Stderr = book.close()
	timer := time.AfterFunc(t.s.settle, endLife)
	publishing.Wait()
	timer.Stop()
	endLife()
	if err := book.fault(); err != nil {
		t.log.Error("the log of a round is cut", "round", rec.Round, "error", err)
	}
	return end
}

// execute runs the program to its end while the log is watched.
func (t *tender) execute(ctx context.Context, rec record, started uint64, spec proc.Spec) *events.RoundEnded {
	if err := t.cover(&spec); err != nil {
		return notExecuted(started, err)
	}
	p, err := t.s.crew.Start(context.WithoutCancel(ctx), spec)
	if err != nil {
		return notExecuted(started, err)
	}
	t.log.Info("round began", "round", rec.Round, "pid", p.PID())
	t.waitsFor("")
	alive, over := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { t.watch(ctx, alive, rec.Round, p) })
	outcome, err := p.Wait()
	over()
	watching.Wait()
	return ended(started, outcome, err)
}

// cover hides banksman's folder from a program, all but the way to the
// proposer.
func (t *tender) cover(spec *proc.Spec) error {
	if !t.s.cfg.Hide {
		return nil
	}
	door := filepath.Dir(t.s.env.Layout.ProposerSocket())
	if err := os.MkdirAll(door, 0o700); err != nil {
		return fmt.Errorf("make the folder of the proposer's socket: %w", err)
	}
	spec.Hide, spec.Expose = t.s.env.Layout.Private(), []string{door}
	return nil
}

// watch ends the running round when the log or the supervisor says so. It
// returns when the process has ended; alive ends then, so that nothing waits
// for the bus any more. The log is read beside the supervisor's own stop, which
// a bus that is away must not hold up.
func (t *tender) watch(ctx, alive context.Context, round string, p *proc.Process) {
	var once sync.Once
	end := func(reason string) {
		once.Do(func() { t.log.Warn("ending a running round", "round", round, "reason", reason) })
		p.Cancel(reason) // only the first one counts
	}
	var looking sync.WaitGroup
	looking.Go(func() { t.keepLooking(alive, round, end) })
	defer looking.Wait()
	select {
	case <-p.Done():
		return
	case <-ctx.Done():
	}
	timer := time.NewTimer(time.Duration(t.s.cfg.DrainS) * time.Second)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-timer.C:
		end(reasonStopped)
	}
}

// keepLooking looks at the log until the round is over.
func (t *tender) keepLooking(alive context.Context, round string, end func(reason string)) {
	again := time.NewTicker(againAfter)
	defer again.Stop()
	for {
		t.look(alive, round, end)
		select {
		case <-alive.Done():
			return
		case <-t.wake:
		case <-again.C:
		}
	}
}

// look reads the log once while a round runs; it ends the round where it must,
// then acknowledges an order. A bus that is away says nothing, and the round
// goes on.
func (t *tender) look(ctx context.Context, round string, end func(reason string)) {
	ctx, cancel := context.WithTimeout(ctx, againAfter)
	defer cancel()
	state, _, err := t.keeper.Project(ctx)
	if err != nil {
		return
	}
	v := judge(state, t.s.me, round)
	if v.end != "" {
		end(v.end)
	}
	if v.see {
		err := t.say(ctx, "stop.seen", state.Stop.LastSeq, &events.StopSeen{Ordered: state.Stop.Seq, Round: round})
		if err != nil && ctx.Err() == nil {
			t.log.Warn("a stop order could not be acknowledged; it is tried again", "error", err)
			t.rouse()
		}
	}
}

// environment is what the agent gets: nothing but what the configuration
// passes, and its way to the proposer.
func (t *tender) environment(round string) ([]string, error) {
	token := keys.NewToken()
	t.revoke(round)
	if err := keys.WriteSecret(t.s.env.Layout.Token("agent", round), []byte(token+"\n")); err != nil {
		return nil, fmt.Errorf("give the agent its token: %w", err)
	}
	env := map[string]string{"PWD": t.cfg.WorkDir}
	for _, names := range [][]string{t.s.cfg.EnvPass, t.cfg.EnvPass} {
		for _, name := range names {
			if value, ok := os.LookupEnv(name); ok {
				env[name] = value
			}
		}
	}
	for name, value := range t.cfg.Env {
		env[name] = value
	}
	env[site.EnvSocket], env[site.EnvToken] = t.s.env.Layout.ProposerSocket(), token
	env["BANKSMAN_ROUND"], env["BANKSMAN_PROJECT"] = round, t.name
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	return out, nil
}

// revoke takes a round's token back.
func (t *tender) revoke(round string) {
	if err := os.Remove(t.s.env.Layout.Token("agent", round)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.log.Error("the token of a round could not be taken back; remove its file", "round", round, "error", err)
	}
}

func (t *tender) forget(r record) {
	if err := t.journal.Drop(r); err != nil {
		t.log.Warn("a round's file could not be removed; the next start looks at it again", "error", err)
	}
}

// pause waits, or says why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
