package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/view"
)

// watchPeers looks once a lease for attempts of workers that fell silent.
func (s *shift) watchPeers(ctx context.Context) {
	lease := time.Duration(s.cfg.LeaseS) * time.Second
	tick := time.NewTicker(lease)
	defer tick.Stop()
	rights, _ := grants.Of(events.RoleWorker)
	mayAsk := slices.Contains(rights.Asks, "jobs.list")
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		candidates := s.peers.Silenced(lease)
		if mayAsk {
			var running []string
			running, mayAsk = s.askRunning(ctx)
			candidates = append(candidates, running...)
		}
		slices.Sort(candidates)
		for _, job := range slices.Compact(candidates) {
			s.lapsePeer(ctx, job)
		}
	}
}

// askRunning asks the index which jobs of the pool run. It returns false when
// this worker may not ask; heartbeats then are its only source.
func (s *shift) askRunning(ctx context.Context) (ids []string, mayAsk bool) {
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var running view.List
	err := s.env.Bus.Ask(asking, events.PrefixQuery+".jobs.list", map[string]any{
		"pool": s.cfg.Pool, "status": []lifecycle.Status{lifecycle.Running}, "limit": 500,
	}, &running)
	var denied *bus.Denied
	if errors.As(err, &denied) {
		s.log.Warn("this worker sees silent peers by their last heartbeats only", "error", err)
		return nil, false
	}
	if err != nil && ctx.Err() == nil {
		s.log.Debug("the index did not say which jobs run", "error", err)
	}
	for _, j := range running.Jobs {
		ids = append(ids, j.Job)
	}
	return ids, true
}

// lapsePeer lets a job's attempt lapse if its worker was silent for too long.
func (s *shift) lapsePeer(ctx context.Context, id string) {
	j, err := s.job(ctx, id)
	if err != nil {
		return // the next round asks again
	}
	a := j.Current()
	if j.Status != lifecycle.Running || a == nil || j.Pool != s.me.pool {
		return
	}
	if a.Session == s.me.session {
		return
	}
	silent, overdue := s.peers.Overdue(j)
	if !overdue {
		return
	}
	_, err = s.append(ctx, "job.lapsed", id, j.LastSeq, &events.JobLapsed{
		Started: a.StartedSeq, SilentS: int(silent.Seconds()), Why: "lease",
	})
	switch {
	case err == nil:
		s.log.Warn("the attempt of a silent worker lapsed", "job", id, "worker", a.Worker, "session", a.Session, "silent", silent)
		s.later(ctx, id, time.Time{}) // a retry-safe job may have attempts left
	case !conflicts(err, new(uint64)) && ctx.Err() == nil:
		s.log.Warn("a silent worker's attempt could not be lapsed", "job", id, "error", err)
	}
}

// lapseSubjects are all lapses in the pool.
func (s *shift) lapseSubjects() string {
	return events.PrefixStored + ".job." + s.cfg.Pool + ".*.lapsed.*"
}

// onLapse ends a running attempt when a peer has let its claim lapse and the
// job may therefore be started again. An attempt whose job is lost runs on,
// since nobody else will start it.
func (s *shift) onLapse(ctx context.Context, st events.Stored) {
	subject, err := events.ParseSubject(st.Subject)
	if err != nil {
		return
	}
	s.mu.Lock()
	var mine *attempt
	for a := range s.running {
		if a.started != 0 && a.job.ID == subject.ID {
			mine = a
		}
	}
	s.mu.Unlock()
	if mine == nil {
		return
	}
	j, err := s.job(ctx, subject.ID) // the copy proves nothing, the fold does
	if err == nil && j.ID != "" && fenceOf(j, mine.started) == fenceShut {
		s.log.Warn("ending a job whose claim lapsed", "job", j.ID)
		mine.end(reasonFenced)
	}
}
