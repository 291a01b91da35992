package worker

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/proc"
)

// attempt is one start of one job on this worker.
type attempt struct {
	rec  record
	seen sight

	// The shift's lock guards these until the claim is confirmed; afterwards
	// they never change.
	job     lifecycle.Job
	started uint64 // sequence of job.started, the fence; 0 while it is claimed

	word proc.Moment // the last word of this worker that the bus is known to have had when it was claimed

	mu     sync.Mutex
	proc   *proc.Process     // nil until it runs
	until  proc.Moment       // when it has to be gone, as far as it was extended
	ending string            // why it is to be ended, empty while it is not
	asked  lifecycle.Request // the request to cancel it, where ending is reasonAsked
}

// end asks the attempt's tree to go.
func (a *attempt) end(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending == "" {
		a.ending = reason
	}
	if a.proc != nil {
		a.proc.Cancel(a.ending)
	}
}

// extend lets the attempt's tree live on.
func (a *attempt) extend(until proc.Moment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until = max(a.until, until)
	if a.proc != nil {
		a.proc.Extend(a.until)
	}
}

// runs hands over the process; what was asked for before reaches it.
func (a *attempt) runs(p *proc.Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.proc = p
	if a.until != 0 {
		p.Extend(a.until)
	}
	if a.ending != "" {
		p.Cancel(a.ending)
	}
}

// claim judges a job, no earlier than at sequence seen, and claims its next
// attempt. No attempt and no error mean that there is nothing to do here.
func (s *shift) claim(ctx context.Context, id string, seen uint64) (*attempt, error) {
	for {
		j, err := s.jobAt(ctx, id, seen)
		if err != nil || j.Proposal == nil {
			return nil, err
		}
		if why := mayStart(j, s.me, s.clock.now()); why != "" {
			s.log.Debug("job not started", "job", id, "why", why)
			s.done(id)
			return nil, nil
		}
		sealed, err := s.awaitSeal(ctx, id, j.LastApproval())
		if err != nil {
			return nil, err
		}
		found, fault, err := s.check(ctx, j, sealed)
		if err != nil {
			return nil, err
		}
		if fault != nil {
			err = s.turnAway(ctx, j, *fault)
			if conflicts(err, &seen) {
				continue
			}
			return nil, err
		}
		a, err := s.start(ctx, j, found, sealed)
		if conflicts(err, &seen) {
			continue
		}
		return a, err
	}
}

// check looks once more whether exactly what was approved would run. The seal
// is judged again under the trust file that the policy was read with.
func (s *shift) check(ctx context.Context, j lifecycle.Job, sealed seal) (sight, *change, error) {
	p, err := s.env.Standing.Policy(ctx)
	if err != nil {
		return sight{}, nil, err
	}
	if _, err := s.believe(sealed.stored); err != nil {
		return sight{}, nil, fmt.Errorf("start job %s: the seal that covers its approval: %w", j.ID, err)
	}
	d := p.Assess(request(j, j.Resolution.Cwd, j.Resolution.Program.Path, s.clock.now()))
	if fault := permitted(j, d); fault != nil {
		return sight{}, fault, nil
	}
	if fault, err := s.byGrant(ctx, j, d); fault != nil || err != nil {
		return sight{}, fault, err
	}
	seen, fault := look(j, p, s.cfg.search(), s.clock.now())
	s.cfg.surround(&seen.resolved)
	if fault != nil {
		if s.me.actor == j.ResolvedBy {
			*fault = gone(*fault)
		}
		return seen, fault, nil
	}
	return seen, differs(j.Resolution, &seen.resolved), nil
}

// turnAway says why the job does not start here.
func (s *shift) turnAway(ctx context.Context, j lifecycle.Job, fault change) error {
	payload := refuse(j, s.me, fault)
	kind := events.Kind("job.declined")
	if _, dead := payload.(*events.JobDeadLettered); dead {
		kind = "job.dead_lettered"
	}
	if _, err := s.append(ctx, kind, j.ID, j.LastSeq, payload); err != nil {
		return err
	}
	s.log.Warn("job not started", "job", j.ID, "code", fault.code, "reason", fault.reason)
	return nil
}

// start claims the attempt. From before the claim until its end is stored, or
// until it is known that the claim was not, the attempt is on disk.
func (s *shift) start(ctx context.Context, j lifecycle.Job, seen sight, sealed seal) (*attempt, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	claimed := claim(j, seen.resolved.Policy, sealed.through, s.cfg.LeaseS)
	if len(s.cfg.ExecPrefix) > 0 {
		claimed.Bound = proc.BoundChecked
	}
	claimed.Walls = s.walls()
	a := &attempt{job: j, seen: seen, rec: record{
		Job: j.ID, Pool: j.Pool, Attempt: claimed.Attempt, Session: s.me.session, Marker: cryptorand.Text(),
	}}
	if err := s.journal.Put(a.rec, true); err != nil {
		s.waits(j.ID, "cannot record attempts, so that nothing starts ("+cause(err)+")", time.Now())
		return nil, err
	}
	s.done(j.ID)
	s.hold(a)
	a.word = proc.Boottime()
	seq, err := s.append(s.life, "job.started", j.ID, j.LastSeq, claimed)
	if err != nil {
		s.release(a)
		if !errors.Is(err, bus.ErrOutage) && !errors.Is(err, bus.ErrClosed) { // it is known not to be stored
			s.forget(a.rec)
		}
		return nil, err
	}
	counts, err := s.confirm(a, seq)
	if err != nil || !counts {
		s.release(a)
	}
	switch {
	case err != nil:
		return nil, err
	case !counts:
		s.forget(a.rec)
		return nil, nil
	}
	return a, nil
}

// hold puts the attempt on the list of what runs.
func (s *shift) hold(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[a] = true
}

// release takes it off.
func (s *shift) release(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, a)
	close(s.fewer)
	s.fewer = make(chan struct{})
}

// confirm folds the worker's own claim as the stream has stored it: only the
// stream's time says whether the approval was still good. It returns false for
// a claim that the fold refuses or that has lapsed meanwhile, and an error only
// when the worker stops. An answer that took long is asked for once more behind a
// heartbeat; a retry-safe attempt is by then too late instead.
func (s *shift) confirm(a *attempt, started uint64) (counts bool, err error) {
	for {
		page, err := s.env.Bus.Read(s.life, started, events.Filter("job", a.job.ID), afterClaim)
		known := err == nil && len(page) > 0 && page[0].Seq == started
		late := proc.Boottime() >= s.lease().until(a.word).Add(-s.lease().notice())
		if known && (!late || retrySafe(a)) {
			s.clock.note(page[0].Time)
			return s.counts(a, started, page), nil
		}
		if !retrySafe(a) {
			a.word = proc.Boottime()
			s.pulse()
		}
		if known {
			continue
		}
		// A replica of the stream may lag behind the acknowledgement.
		if sleep(s.life, againAfter/10) != nil {
			return false, fmt.Errorf("read the start of job %s: %w", a.job.ID, errors.Join(err, context.Cause(s.life)))
		}
	}
}

// afterClaim bounds what is read of what came after a claim; a lapse comes first.
const afterClaim = 8

// counts applies the stored claim, and what has come after it, to the job that it
// was made for.
func (s *shift) counts(a *attempt, started uint64, page []events.Stored) bool {
	j, finding := jobs.Apply(a.job, s.env.Standing.Book(), page[0])
	for _, st := range page[1:] {
		j, _ = jobs.Apply(j, s.env.Standing.Book(), st)
	}
	held := holds(j, s.me.actor, s.me.session, a.rec.Attempt)
	if held == nil || held.StartedSeq != started || j.Status != lifecycle.Running {
		s.log.Warn("the claim of a job does not count; nothing was executed", "job", a.job.ID, "finding", finding)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a.job, a.started = j, started
	return true
}

func (s *shift) forget(r record) {
	if err := s.journal.Drop(r, spoolSuffix); err != nil {
		s.log.Warn("an attempt's file could not be removed; the next start looks at it again", "error", err)
	}
}

// perform executes a claimed attempt and publishes its end.
func (s *shift) perform(a *attempt) {
	kit := s.outfit(s.life, a.job.Proposal.Env)
	rec := newRecorder(s.journal.spool(a.rec), kept(s.cfg.MaxOutputBytes, a.seen.decision.MaxOutput_bytes), time.Now(), kit.rules)
	var publishing sync.WaitGroup
	begun := a.rec
	publishing.Go(func() {
		rec.publish(s.life, s.log, func(ctx context.Context, c chunk) error { return s.putOutput(ctx, begun, c) })
	})
	result := s.execute(a, kit, rec)
	s.cfg.plan(&result, a.rec.Attempt, a.job.AttemptsAllowed(), s.clock.now(), rand.Int64N)
	var fault error
	if result.finished.Stdout, result.finished.Stderr, fault = rec.close(); fault != nil {
		s.log.Error("output of a job was cut because it could not be spooled", "job", a.job.ID, "error", fault)
	}
	// The result names all that was kept, and may outlive this process.
	if err := rec.persist(); err != nil {
		s.log.Error("output of a job is in memory only until the bus has it", "job", a.job.ID, "error", err)
	}
	a.rec.Finished, a.rec.Cancelled = result.payload(a.started, s.me.actor)
	if err := s.journal.Put(a.rec, !s.env.Bus.Connected()); err != nil {
		s.log.Error("the result of a job is in memory only until the bus has it", "job", a.job.ID, "error", err)
	}
	s.release(a)
	publishing.Wait()
	if !rec.empty() {
		if err := rec.rest(); err != nil {
			s.log.Error("output of a job is lost", "job", a.job.ID, "error", err)
		}
		return // the worker stops; its next start publishes the rest
	}
	rec.discard()
	s.finish(s.life, a.rec, a.job.LastSeq)
}

// kept is how much of each output stream is stored: what the worker keeps, or the
// policy's ceiling where there is one and it is lower.
func kept(own int64, ceiling int) int64 {
	if ceiling > 0 {
		own = min(own, int64(ceiling))
	}
	return own
}

// execute runs the program to its end.
func (s *shift) execute(a *attempt, kit kit, rec *recorder) result {
	if kit.err != nil {
		return notStarted(kit.err)
	}
	own, err := s.furnish(a.rec)
	if err != nil {
		return notStarted(err)
	}
	defer s.leaveNothing(own)
	spec := s.spec(a, rec)
	spec.Env = s.settle(kit.env, a.job.Proposal.Env, own)
	if err := errors.Join(s.enclose(&spec, own), s.wrap(&spec, a.seen.found, own)); err != nil {
		return notStarted(err)
	}
	p, err := s.crew.Start(s.life, spec)
	if err != nil {
		return notStarted(err)
	}
	a.runs(p)
	outcome, err := p.Wait()
	stopped := s.stopContainer(context.WithoutCancel(s.life), a.job.ID, own)
	a.mu.Lock()
	ending, asked := a.ending, a.asked
	a.mu.Unlock()
	r := ended(outcome, err, ending)
	if !stopped {
		r.finished.Survivors++
	}
	r.asked = asked
	return r
}

// spec is the attempt for package proc.
func (s *shift) spec(a *attempt, rec *recorder) proc.Spec {
	p, r := a.job.Proposal, a.job.Resolution
	spec := proc.Spec{
		Argv: p.Argv, Path: r.Program.Path, Found: a.seen.found, ExpectSHA256: r.Program.SHA256,
		Dir: r.Cwd, Stdout: rec.stdout(), Stderr: rec.stderr(),
		TimeLimit: time.Duration(min(p.TimeoutS, s.cfg.MaxTimeoutS)) * time.Second,
		Grace:     time.Duration(s.cfg.GraceS) * time.Second,
		Marker:    a.rec.Marker,
		StartBy:   s.lease().until(a.word),
	}
	if retrySafe(a) {
		spec.Until, spec.Notice = spec.StartBy, s.lease().notice()
	}
	s.confine(&spec)
	for _, f := range r.Files {
		spec.Files = append(spec.Files, proc.FileDigest{Path: f.Path, SHA256: f.SHA256})
	}
	return spec
}

// putOutput stores one chunk, however long the bus is away. Only the end of
// ctx is an error; a chunk that the bus refuses for good is given up.
func (s *shift) putOutput(ctx context.Context, r record, c chunk) error {
	subject := bus.OutputSubject(r.Pool, r.Job, r.Attempt, c.n, s.me.actor)
	for pause := againAfter / 10; ; pause = min(2*pause, againAfter) {
		err := s.env.Bus.PutOutput(ctx, subject, c.stream, c.atMS, c.data)
		var denied *bus.Denied
		var refused *bus.Refused
		switch {
		case err == nil:
			return nil
		case errors.As(err, &denied), errors.As(err, &refused):
			s.log.Error("the bus refuses output of a job; the chunk is lost", "job", r.Job, "chunk", c.n, "error", err)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// sleep waits, or says why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
