package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/jobs"
)

const (
	// keepEvery is shorter than the ack_wait of the queues.
	keepEvery = 10 * time.Second
	// againAfter is how soon a delivery comes back that could not be judged.
	againAfter = 2 * time.Second
	// readyEvery is how often the index is asked for jobs that no delivery
	// has brought. It is asked more often after a start and a reconnect, when
	// queues still hold what somebody had in hand who is gone.
	readyEvery = 30 * time.Second
	// crowdEvery is how often a worker without a free slot looks who else waits.
	crowdEvery = 5 * time.Second
	// askFor bounds one question to the index.
	askFor = 5 * time.Second
)

// onProposed looks one proposal up.
func (s *shift) onProposed(ctx context.Context, d *bus.Delivery) {
	err := s.resolve(ctx, d)
	switch {
	case err == nil:
		s.ack(ctx, d)
	case ctx.Err() != nil:
		d.Nak(0)
	default:
		s.log.Warn("a proposal could not be looked up; it is tried again", "subject", d.Stored.Subject, "error", err)
		d.Nak(againAfter)
	}
}

// resolve reports what would run, or that nothing would here.
func (s *shift) resolve(ctx context.Context, d *bus.Delivery) error {
	subject, err := events.ParseSubject(d.Stored.Subject)
	if err != nil {
		return nil // no event of ours; the auditor reports it
	}
	return s.resolveJob(ctx, subject.ID, d.Stored.Seq)
}

// resolveJob looks one job up, no earlier than at sequence seen.
func (s *shift) resolveJob(ctx context.Context, id string, seen uint64) error {
	for {
		j, err := s.jobAt(ctx, id, seen)
		if err != nil || j.Proposal == nil || mayResolve(j, s.me) != "" {
			return err
		}
		p, err := s.env.Standing.Policy(ctx)
		if err != nil {
			return err
		}
		found, fault := look(j, p, s.cfg.search(), s.clock.now())
		s.cfg.surround(&found.resolved)
		if fault != nil {
			_, err = s.append(ctx, "job.declined", j.ID, j.LastSeq, &events.JobDeclined{Code: fault.code, Reason: fault.reason})
		} else {
			_, err = s.append(ctx, "job.resolved", j.ID, j.LastSeq, &found.resolved)
		}
		if !conflicts(err, &seen) {
			return err
		}
	}
}

// onApproved runs one approved job.
func (s *shift) onApproved(ctx context.Context, d *bus.Delivery) {
	subject, err := events.ParseSubject(d.Stored.Subject)
	if err != nil {
		s.ack(ctx, d)
		return
	}
	release := s.keep(ctx, d)
	defer release()
	settled := false
	err = s.take(ctx, subject.ID, d.Stored.Seq, func() {
		settled = true
		s.work.Go(func() { // the job does not wait for the queue
			release()
			s.ack(s.life, d)
		})
	})
	release()
	switch {
	case settled:
	case err == nil:
		s.ack(ctx, d)
	case ctx.Err() != nil:
		d.Nak(0)
	default:
		s.log.Warn("an approved job could not be judged; it is tried again", "job", subject.ID, "error", err)
		d.Nak(againAfter)
	}
}

// keep holds a delivery until release, which waits for the last word.
func (s *shift) keep(ctx context.Context, d *bus.Delivery) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(keepEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := d.InProgress(ctx); err != nil && ctx.Err() == nil {
					s.log.Debug("a delivery could not be held; it may come again", "error", err)
				}
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (s *shift) ack(ctx context.Context, d *bus.Delivery) {
	if err := d.Ack(ctx); err != nil && ctx.Err() == nil {
		s.log.Debug("a delivery could not be acknowledged; it comes again", "subject", d.Stored.Subject, "error", err)
	}
}

// take brings one job as far as it goes on this worker, looking at it no
// earlier than at sequence seen. It calls settled once the job is claimed; an
// error before that means that it was not judged.
func (s *shift) take(ctx context.Context, id string, seen uint64, settled func()) error {
	if !s.enter(id) {
		return nil // another goroutine of this process has it in hand
	}
	defer s.exit(id)
	who, err := s.slot(ctx, id, seen)
	if err != nil {
		return err
	}
	defer func() { s.slots.give(who) }()
	a, err := s.claim(ctx, id, seen)
	if err != nil || a == nil {
		return err
	}
	if who == "" {
		who = a.job.Proposal.Proposer.String()
		s.slots.name(who)
	}
	settled()
	s.perform(a)
	return nil
}

// slot takes a slot for a job and says in whose name, empty where that did not
// matter.
func (s *shift) slot(ctx context.Context, id string, seen uint64) (who string, err error) {
	if s.slots.try() {
		return "", nil
	}
	j, err := s.jobAt(ctx, id, seen)
	if err != nil {
		return "", err
	}
	who = "nobody" // the claim says that there is no such job
	if j.Proposal != nil {
		who = j.Proposal.Proposer.String()
	}
	return who, s.slots.take(ctx, who)
}

func (s *shift) enter(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[id] {
		return false
	}
	s.busy[id] = true
	return true
}

func (s *shift) exit(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, id)
}

// askReady asks the index for jobs that wait for a start or a look, now, from
// time to time, and whenever the connection has come back: a lost delivery strands
// nothing.
func (s *shift) askReady(ctx context.Context) {
	back := make(chan struct{}, 1)
	stop := s.env.Bus.Notify(func(connected bool) {
		if connected {
			select {
			case back <- struct{}{}:
			default:
			}
		}
	})
	defer stop()
	for pause := againAfter; ; pause = min(2*pause, readyEvery) {
		s.takeReady(ctx)
		s.resolveWaiting(ctx)
		wait := pause
		if s.slots.crowded() {
			s.takeOthers(ctx)
			wait = min(wait, crowdEvery)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-back:
			timer.Stop()
			pause = againAfter / 2 // doubled next
		}
	}
}

// takeReady starts what the index names.
func (s *shift) takeReady(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var answer struct {
		Jobs []string `json:"jobs"`
	}
	err := s.env.Bus.Ask(asking, events.PrefixQuery+".ready."+s.cfg.Pool, map[string]int{"limit": 2 * s.cfg.Slots}, &answer)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Debug("the index did not say which jobs are ready", "error", err)
		}
		return
	}
	for _, id := range answer.Jobs {
		s.later(ctx, id, time.Time{})
	}
}

// takeOthers lets the oldest job of each proposer wait for its turn here that has
// none waiting: the queue gives jobs away in their order, and the jobs of one
// proposer may fill it.
func (s *shift) takeOthers(ctx context.Context) {
	jobs, err := s.list(ctx, lifecycle.Approved)
	if err != nil {
		return
	}
	waiting := s.slots.waiting()
	for _, j := range jobs {
		if !waiting[j.Proposer] {
			waiting[j.Proposer] = true
			s.later(ctx, j.Job, time.Time{})
		}
	}
}

// later takes a job at a moment of the stream's time, unless ctx ends before.
func (s *shift) later(ctx context.Context, id string, at time.Time) {
	s.work.Go(func() {
		if sleep(ctx, s.clock.until(at)) != nil {
			return
		}
		if err := s.take(ctx, id, 0, func() {}); err != nil && ctx.Err() == nil {
			s.log.Warn("a ready job could not be judged; the index names it again", "job", id, "error", err)
		}
	})
}

// job folds a job; one that the stream does not hold is the zero job.
func (s *shift) job(ctx context.Context, id string) (lifecycle.Job, error) {
	j, err := s.env.Standing.Job(ctx, id)
	if errors.Is(err, jobs.ErrUnknown) || err == nil && j.ID != id {
		return lifecycle.Job{}, nil // also an id that was no single token
	}
	return j, err
}

// errLagging is a replica of the stream that does not hold yet what is known to
// be stored.
var errLagging = errors.New("the stream does not show yet what it has stored; the job is looked at again")

// jobAt folds a job that has an event at sequence seen, waiting a little for a
// replica that lags behind.
func (s *shift) jobAt(ctx context.Context, id string, seen uint64) (lifecycle.Job, error) {
	for range 20 {
		j, err := s.job(ctx, id)
		if err != nil || j.LastSeq >= seen {
			return j, err
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return j, err
		}
	}
	return lifecycle.Job{}, fmt.Errorf("read job %s at %d: %w", id, seen, errLagging)
}

// conflicts says whether somebody else has written first, and notes how far a
// reader has to see before it decides anew.
func conflicts(err error, seen *uint64) bool {
	var c *bus.Conflict
	if !errors.As(err, &c) {
		return false
	}
	*seen = max(*seen, c.Last)
	return true
}
