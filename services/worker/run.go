package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/leases"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/redact"
	"github.com/banksman/banksman/services/internal/secretref"
)

// Reasons for which a worker ends what it runs.
const (
	reasonStopped = "worker stopped"
	reasonHurried = "worker stopped at once" // whoever stops it will not wait, nor have it run elsewhere
	reasonFenced  = "the worker could not confirm its heartbeats, so another one may run the job again"
)

// resolvers is how many proposals are looked up at once.
const resolvers = 4

// settleFor is how long a stopping worker tries to store results; afterwards
// they wait on disk for its next start.
const settleFor = 5 * time.Second

// shift is one run of the worker, from connecting to the last job's end.
type shift struct {
	cfg     Config
	env     *host.Env
	me      identity
	log     *slog.Logger
	journal journal
	crew    *proc.Crew
	account *account // whom jobs run as; nil for the worker's own user
	secrets *secretref.Set
	rules   *redact.Rules // without values
	clock   clock
	offers  chan events.Stored // declines of the pool
	single  bool               // takes one job and stops
	ran     string             // the job that it took, then
	seals   *sealWatch
	peers   *leases.Ear
	slots   *slots
	work    sync.WaitGroup

	taking  context.Context // the run's own; nothing new is taken after its end
	life    context.Context // outlives it by the drain
	endLife context.CancelCauseFunc

	mu      sync.Mutex // guards the rest
	busy    map[string]bool
	running map[*attempt]bool
	fewer   chan struct{} // closed and replaced when an attempt leaves running
	waiting map[string]wait
	away    time.Time // since when the bus is away, zero while it is there
	phase   string    // why nothing new is taken, empty while it is
}

func newShift(cfg Config, env *host.Env, j journal) *shift {
	s := &shift{
		cfg: cfg, env: env, log: env.Log, journal: j, crew: &proc.Crew{},
		me:    identity{actor: env.Actor, session: env.Append.Session(), pool: cfg.Pool},
		seals: newSealWatch(), peers: leases.NewEar(time.Now), slots: newSlots(cfg.Slots),
		busy: map[string]bool{}, running: map[*attempt]bool{}, fewer: make(chan struct{}), waiting: map[string]wait{},
		offers: make(chan events.Stored, maxOffers), phase: "starting", rules: redact.New(),
	}
	return s
}

// run is the shift.
func (s *shift) run(ctx context.Context) error {
	signalled := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.taking = ctx
	s.life, s.endLife = context.WithCancelCause(context.WithoutCancel(ctx))
	defer s.endLife(nil)
	defer s.crew.Close()

	var err error
	if s.account, err = lookUpAccount(s.cfg.User); err != nil {
		return err
	}
	if err := s.openSecrets(ctx); err != nil {
		return err
	}
	left := s.sweep()
	unlisten, err := s.listen(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer unlisten()
	started, err := s.env.Append.Append(ctx, s.subject("worker.started", s.me.session), 0, &events.WorkerStarted{
		Slots: s.cfg.Slots, Version: s.env.Version, UnsafeSharedUser: !s.cfg.Hide,
	})
	if err != nil {
		return unlessEnded(ctx, err)
	}
	s.enterPhase("")
	err = s.labour(ctx, signalled, stop, left)
	reason := "signal"
	switch cause := context.Cause(ctx); {
	case err != nil:
		reason = err.Error()
	case errors.Is(cause, errDrained), errors.Is(cause, errOnce):
		reason = cause.Error()
	}
	s.leave(started, reason)
	return err
}

// enterPhase says on the board why nothing new is taken, or that it is.
func (s *shift) enterPhase(phase string) {
	s.mu.Lock()
	s.phase = phase
	s.mu.Unlock()
	s.tell()
}

// labour runs every loop and returns after the last one.
func (s *shift) labour(ctx, signalled context.Context, stop context.CancelCauseFunc, left []record) error {
	var loops, beats sync.WaitGroup
	var once sync.Once
	var first error
	fail := func(err error) {
		if err != nil {
			once.Do(func() { first = err })
			stop(err)
		}
	}
	beating, endBeats := context.WithCancel(s.life)
	beats.Go(func() { s.beat(beating) })
	beats.Go(func() { s.heed(beating) })
	if s.single {
		loops.Go(func() {
			fail(s.takeOne(ctx))
			stop(errOnce)
		})
	} else {
		loops.Go(func() { fail(s.env.Bus.Consume(ctx, "resolve-"+s.cfg.Pool, resolvers, s.onProposed)) })
		loops.Go(func() { fail(s.env.Bus.Consume(ctx, "run-"+s.cfg.Pool, s.cfg.Slots, s.onApproved)) })
		loops.Go(func() { s.askReady(ctx) })
		loops.Go(func() { s.takeOffers(ctx) })
	}
	loops.Go(func() {
		select {
		case <-s.env.Drain:
			stop(errDrained)
		case <-ctx.Done():
		}
	})
	loops.Go(func() { s.watchPeers(ctx) })
	loops.Go(func() { s.observe(ctx) })
	loops.Go(func() { s.clear(ctx, left) })
	drained := make(chan struct{})
	var drain sync.WaitGroup
	drain.Go(func() { s.drain(ctx, signalled, drained) })
	loops.Wait()
	s.work.Wait()
	close(drained)
	drain.Wait()
	endBeats()
	beats.Wait()
	return first
}

// drain bounds what happens after ctx ended: jobs may end by themselves, then
// they are ended, then their results may still be stored. One that was asked to
// drain, and not signalled, waits for its jobs however long they take.
func (s *shift) drain(ctx, signalled context.Context, drained <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-drained:
		return
	}
	if errors.Is(context.Cause(ctx), errDrained) {
		s.enterPhase("draining; takes nothing new and waits for running jobs")
		s.quiet(forEver, drained, signalled.Done())
	}
	s.enterPhase("stopping; waits for running jobs")
	if !s.quiet(time.Duration(s.cfg.DrainS)*time.Second, drained, s.env.Hurry) {
		reason := reasonStopped
		select {
		case <-s.env.Hurry:
			reason = reasonHurried
		default:
		}
		s.cancelAll(reason)
		s.quiet(time.Duration(s.cfg.GraceS)*time.Second+settleFor, drained, nil)
	}
	select {
	case <-drained:
	case <-time.After(settleFor):
	}
	s.endLife(errors.New(reasonStopped))
}

// quiet waits until no process of a job is left, at most for a while and not once
// enough is closed.
func (s *shift) quiet(limit time.Duration, drained, enough <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		s.mu.Lock()
		n, fewer := len(s.running), s.fewer
		s.mu.Unlock()
		if n == 0 {
			return true
		}
		select {
		case <-fewer:
		case <-drained:
			return true
		case <-timer.C:
			return false
		case <-enough:
			return false
		}
	}
}

// leave says farewell; a bus that is away misses it.
func (s *shift) leave(started uint64, reason string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), settleFor)
	defer cancel()
	_, err := s.env.Append.Append(ctx, s.subject("worker.stopped", s.me.session), started, &events.WorkerStopped{Reason: reason})
	if err != nil {
		s.log.Warn("the worker's leave could not be stored", "error", err)
	}
}

// listen subscribes to seals, heartbeats and the state of the connection.
func (s *shift) listen(ctx context.Context) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	if err := s.env.Standing.Refresh(ctx); err != nil {
		return nil, err
	}
	unsubscribe, err := s.env.Bus.Live(ctx, sealSubjects, func(st events.Stored) {
		s.clock.note(st.Time)
		s.offerSeal(ctx, st)
	})
	if err != nil {
		return nil, err
	}
	stops = append(stops, unsubscribe)
	unsubscribe, err = s.env.Bus.Heartbeats(ctx, s.cfg.Pool+".>", s.peers.Heard)
	if err != nil {
		stop()
		return nil, err
	}
	stops = append(stops, unsubscribe)
	unsubscribe, err = s.env.Bus.Live(ctx, s.lapseSubjects(), func(st events.Stored) { s.onLapse(ctx, st) })
	if err != nil {
		stop()
		return nil, err
	}
	stops = append(stops, unsubscribe)
	unsubscribe, err = s.env.Bus.Live(ctx, s.declineSubjects(), s.onDecline)
	if err != nil {
		stop()
		return nil, err
	}
	stops = append(stops, unsubscribe, s.env.Bus.Notify(s.onConnection))
	unsubscribe, err = s.answerPreviews(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	stops = append(stops, unsubscribe)
	s.onConnection(s.env.Bus.Connected())
	if err := s.readSeal(ctx); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// onConnection keeps what depends on an unbroken connection.
func (s *shift) onConnection(connected bool) {
	s.mu.Lock()
	s.away = time.Time{}
	if !connected {
		s.away = time.Now()
	}
	s.mu.Unlock()
	s.seals.connection()
	s.peers.Connection(connected)
	s.tell()
}

// subject is where this worker says something.
func (s *shift) subject(kind events.Kind, id string) events.Subject {
	return events.For(kind, s.cfg.Pool, id, s.me.actor)
}

// append says something about a job at the position that was folded.
func (s *shift) append(ctx context.Context, kind events.Kind, job string, expect uint64, payload any) (uint64, error) {
	return s.env.Append.Append(ctx, s.subject(kind, job), expect, payload)
}

// unlessEnded drops an error that only says that the run is over.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// environment is what a job gets: nothing but what the configuration passes,
// its own variables and the search path.
func (s *shift) environment(own map[string]string) []string {
	env := map[string]string{}
	for _, name := range s.cfg.EnvPass {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	env["PATH"] = s.cfg.search()
	for name, value := range own {
		env[name] = value
	}
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	return out
}
