package worker

import (
	"context"
	"encoding/json/v2"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/view"
)

const (
	// forgetAfter bounds what is remembered of sessions that are gone.
	forgetAfter = time.Hour
	// maxNamed bounds what is kept of one heartbeat.
	maxNamed = 256
)

// peers is what this worker has heard of the others of its pool, by its own
// monotonic clock.
type peers struct {
	mu        sync.Mutex
	connected time.Time            // since when without a break; zero while the bus is away
	voices    map[string]voice     // by session
	known     map[uint64]time.Time // when an attempt was first seen running, by its start
}

// voice is a session's last heartbeat.
type voice struct {
	at      time.Time
	running []underway
}

func newPeers() *peers {
	return &peers{voices: map[string]voice{}, known: map[uint64]time.Time{}}
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.voices[t[2]] = voice{at: time.Now(), running: said.Running[:min(len(said.Running), maxNamed)]}
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
	return silentFor(now, p.connected, p.voices[a.Session].at, p.known[a.StartedSeq])
}

// silenced returns the jobs that sessions had named which were not heard
// since, and forgets what is old.
func (p *peers) silenced(since time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for session, v := range p.voices {
		if v.at.After(since) {
			continue
		}
		for _, u := range v.running {
			out = append(out, u.Job)
		}
		if v.at.Before(since.Add(-forgetAfter)) {
			delete(p.voices, session)
		}
	}
	for started, at := range p.known {
		if at.Before(since.Add(-2 * forgetAfter)) {
			delete(p.known, started)
		}
	}
	return out
}

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
		candidates := s.peers.silenced(time.Now().Add(-lease))
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

// lapsePeer lets a job's attempt lapse if its worker was silent for longer
// than its lease, by a third for what clocks and queues may add.
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
