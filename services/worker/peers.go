package worker

import (
	"context"
	"encoding/json/v2"
	"strings"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/view"
)

// forgetAfter bounds what is remembered of sessions that are gone.
const forgetAfter = time.Hour

// peers is what this worker has heard of the others of its pool, by its own
// monotonic clock.
type peers struct {
	mu        sync.Mutex
	connected time.Time            // since when without a break; zero while the bus is away
	voices    map[string]time.Time // last heartbeat by session
	known     map[uint64]time.Time // when an attempt was first seen running, by its start
	suspects  map[string]time.Time // jobs that heartbeats named, with the last time
}

func newPeers() *peers {
	return &peers{voices: map[string]time.Time{}, known: map[uint64]time.Time{}, suspects: map[string]time.Time{}}
}

// connection notes that the bus came or went.
func (p *peers) connection(up bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !up:
		p.connected = time.Time{}
	case p.connected.IsZero():
		p.connected = time.Now()
	}
}

// heard notes a heartbeat <pool>.<actor>.<session>. What it claims is only a
// hint where to look.
func (p *peers) heard(tail string, data []byte) {
	t := strings.Split(tail, ".")
	if len(t) != 3 {
		return
	}
	var said pulse
	_ = json.Unmarshal(data, &said) // a heartbeat that cannot be read is still one
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.voices[t[2]] = now
	for _, u := range said.Running[:min(len(said.Running), 256)] {
		p.suspects[u.Job] = now
	}
}

// silence is how long nothing was heard of an attempt that is seen running
// now; 0 while this worker itself is cut off.
func (p *peers) silence(a lifecycle.Attempt, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.connected.IsZero() {
		return 0
	}
	if _, ok := p.known[a.StartedSeq]; !ok {
		p.known[a.StartedSeq] = now
	}
	return silentFor(now, p.connected, p.voices[a.Session], p.known[a.StartedSeq])
}

// list returns the jobs that heartbeats have named and forgets what is old.
func (p *peers) list(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for job, at := range p.suspects {
		out = append(out, job)
		if now.Sub(at) > forgetAfter {
			delete(p.suspects, job)
		}
	}
	for session, at := range p.voices {
		if now.Sub(at) > forgetAfter {
			delete(p.voices, session)
		}
	}
	for started, at := range p.known {
		if now.Sub(at) > 2*forgetAfter {
			delete(p.known, started)
		}
	}
	return out
}

// ended forgets a job that does not run any more.
func (p *peers) ended(job string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.suspects, job)
}

// watchPeers looks once a lease for attempts of workers that fell silent.
func (s *shift) watchPeers(ctx context.Context) {
	tick := time.NewTicker(time.Duration(s.cfg.LeaseS) * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for job := range s.candidates(ctx) {
				s.lapsePeer(ctx, job)
			}
		}
	}
}

// candidates are jobs that may run elsewhere in the pool: what the index says
// and what heartbeats have said.
func (s *shift) candidates(ctx context.Context) map[string]bool {
	out := map[string]bool{}
	for _, job := range s.peers.list(time.Now()) {
		out[job] = true
	}
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var running view.List
	err := s.env.Bus.Ask(asking, events.PrefixQuery+".jobs.list", map[string]any{
		"pool": s.cfg.Pool, "status": []lifecycle.Status{lifecycle.Running}, "limit": 500,
	}, &running)
	if err != nil && ctx.Err() == nil {
		s.log.Debug("the index did not say which jobs run", "error", err)
	}
	for _, j := range running.Jobs {
		out[j.Job] = true
	}
	return out
}

// lapsePeer lets a job's attempt lapse if its worker was silent for longer
// than its lease, by a third for what clocks and queues may add.
func (s *shift) lapsePeer(ctx context.Context, id string) {
	j, err := s.job(ctx, id)
	if err != nil {
		return // the next round asks again
	}
	a := j.Current()
	if j.Status != lifecycle.Running || a == nil || j.Pool != s.me.pool {
		s.peers.ended(id)
		return
	}
	if a.Session == s.me.session {
		return
	}
	lease := time.Duration(a.Started.LeaseS) * time.Second
	silent := s.peers.silence(*a, time.Now())
	if silent <= lease+lease/3 {
		return
	}
	_, err = s.append(ctx, "job.lapsed", id, j.LastSeq, &events.JobLapsed{
		Started: a.StartedSeq, SilentS: int(silent.Seconds()), Why: "lease",
	})
	switch {
	case err == nil:
		s.log.Warn("the attempt of a silent worker lapsed", "job", id, "worker", a.Worker, "session", a.Session, "silent", silent)
		s.peers.ended(id)
		s.later(ctx, id, time.Time{}) // a retry-safe job may have attempts left
	case !conflicts(err) && ctx.Err() == nil:
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
