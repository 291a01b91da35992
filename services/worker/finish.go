package worker

import (
	"context"
	"errors"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/proc"
)

// finish stores an attempt's end, however long the bus is away, and forgets
// the attempt. When ctx ends first the record stays for the next start.
// Expect is the job's last sequence if it is known, else 0.
func (s *shift) finish(ctx context.Context, r record, expect uint64) {
	kind, started, payload := r.end()
	seen := expect
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		if expect == 0 {
			state, last, err := s.fence(ctx, r.Job, started, seen)
			switch {
			case err != nil:
				if ctx.Err() != nil {
					return
				}
				s.log.Warn("the result of a job waits", "job", r.Job, "error", err)
			case state == fenceOpen, state == fenceLate && r.Finished != nil:
				expect = last
			default:
				if state != fenceStored {
					s.log.Warn("the log accepts no result of an attempt any more", "job", r.Job, "attempt", r.Attempt, "kind", kind)
				}
				s.forget(r)
				return
			}
		}
		if expect != 0 {
			_, err := s.append(ctx, kind, r.Job, expect, payload)
			switch {
			case err == nil:
				s.forget(r)
				s.again(r)
				return
			case conflicts(err, &seen):
				expect = 0
				continue
			case ctx.Err() != nil || errors.Is(err, bus.ErrClosed):
				return
			}
			expect = 0
			s.log.Error("the result of a job cannot be stored; it is tried again", "job", r.Job, "error", err)
		}
		if sleep(ctx, pause) != nil {
			return
		}
	}
}

// end returns what to publish.
func (r record) end() (kind events.Kind, started uint64, payload any) {
	if r.Cancelled != nil {
		return "job.cancelled", r.Cancelled.Started, r.Cancelled
	}
	return "job.finished", r.Finished.Started, r.Finished
}

// again takes the job up when its next attempt is due. The index would name it
// later.
func (s *shift) again(r record) {
	if at := dueAt(r.Finished); !at.IsZero() {
		s.later(s.taking, r.Job, at)
	}
}

func (s *shift) fence(ctx context.Context, job string, started, seen uint64) (fence, uint64, error) {
	j, err := s.jobAt(ctx, job, seen)
	if err != nil {
		return fenceShut, 0, err
	}
	return fenceOf(j, started), j.LastSeq, nil
}

// sweep ends whatever attempts of an earlier life have left running, before
// anything new starts, and returns these attempts.
func (s *shift) sweep() []record {
	left, err := s.journal.Leftovers()
	if err != nil {
		s.log.Error("attempts of an earlier run cannot be read; look at their files", "error", err)
	}
	for _, r := range left {
		killed, err := proc.SweepMarker(r.Marker)
		if err != nil {
			s.log.Error("processes of an earlier attempt could not be ended", "job", r.Job, "error", err)
		}
		if len(killed) > 0 {
			s.log.Warn("ended processes that an earlier run had left", "job", r.Job, "pids", killed)
		}
		own := s.room(r)
		s.stopContainer(context.WithoutCancel(s.life), r.Job, own)
		s.leaveNothing(own)
	}
	return left
}

// clear says what became of attempts of an earlier life: their result, or that
// they lapsed. It begins with no further one after ctx ended; what it has begun
// it may still end.
func (s *shift) clear(ctx context.Context, left []record) {
	for _, r := range left {
		if ctx.Err() != nil || !s.clearOutput(s.life, r) {
			return
		}
		if r.ended() {
			s.finish(s.life, r, 0)
			continue
		}
		s.lapseOwn(s.life, r)
	}
}

// clearOutput publishes what was spooled; false means that ctx ended.
func (s *shift) clearOutput(ctx context.Context, r record) bool {
	rec, err := leftRecorder(s.journal.spool(r))
	if err != nil {
		s.log.Error("output of an earlier attempt is lost", "job", r.Job, "error", err)
		return true
	}
	defer rec.discard()
	rec.publish(ctx, s.log, func(ctx context.Context, c chunk) error { return s.putOutput(ctx, r, c) })
	return rec.empty()
}

// lapseOwn lets an attempt lapse that died with this worker's earlier life. A
// claim that never reached the log leaves nothing to say.
func (s *shift) lapseOwn(ctx context.Context, r record) {
	var seen uint64
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		j, err := s.jobAt(ctx, r.Job, seen)
		if err == nil {
			a := holds(j, s.me.actor, r.Session, r.Attempt)
			if a == nil || fenceOf(j, a.StartedSeq) != fenceOpen {
				s.forget(r)
				return
			}
			silent := max(0, time.Since(a.StartedAt))
			_, err = s.append(ctx, "job.lapsed", r.Job, j.LastSeq, &events.JobLapsed{
				Started: a.StartedSeq, SilentS: int(silent.Seconds()), Why: "restart",
			})
			if conflicts(err, &seen) {
				continue
			}
		}
		if err == nil {
			s.forget(r)
			s.later(s.taking, r.Job, time.Time{}) // a retry-safe job may have attempts left
			return
		}
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("a lapsed attempt could not be reported; it is tried again", "job", r.Job, "error", err)
		if sleep(ctx, pause) != nil {
			return
		}
	}
}
