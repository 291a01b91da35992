package leases

import (
	"encoding/json/v2"
	"strings"
	"sync"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
)

const (
	// forgetAfter bounds what is remembered of sessions that are gone.
	forgetAfter = time.Hour
	// maxNamed bounds what is kept of one heartbeat.
	maxNamed = 256
)

// Pulse is what a worker's heartbeat says.
type Pulse struct {
	Slots   int        `json:"slots"`
	Running []Underway `json:"running"`
}

// Underway is one attempt that runs.
type Underway struct {
	Job     string `json:"job"`
	Started uint64 `json:"started"`
}

// Ear is what somebody has heard of workers.
type Ear struct {
	now func() time.Time

	mu        sync.Mutex
	connected time.Time            // since when without a break; zero while the bus is away
	voices    map[string]voice     // by session
	known     map[uint64]time.Time // when an attempt was first seen running, by its start
}

// voice is a session's last heartbeat.
type voice struct {
	at      time.Time
	pool    string
	running []Underway
}

// NewEar makes an ear that has heard nothing and is not connected. Now is
// time.Now, whose monotonic reading is what counts.
func NewEar(now func() time.Time) *Ear {
	return &Ear{now: now, voices: map[string]voice{}, known: map[uint64]time.Time{}}
}

// Connection notes that the bus came or went.
func (e *Ear) Connection(up bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !up:
		e.connected = time.Time{}
	case e.connected.IsZero():
		e.connected = e.now()
	}
}

// Heard notes a heartbeat <pool>.<actor>.<session>. What it claims is only a hint
// where to look.
func (e *Ear) Heard(tail string, data []byte) {
	t := strings.Split(tail, ".")
	if len(t) != 3 {
		return
	}
	var said Pulse
	_ = json.Unmarshal(data, &said) // a heartbeat that cannot be read is still one
	e.mu.Lock()
	defer e.mu.Unlock()
	e.voices[t[2]] = voice{at: e.now(), pool: t[0], running: said.Running[:min(len(said.Running), maxNamed)]}
}

// Overdue says for how long nothing was heard of a job's running attempt, and
// whether that is longer than it was granted.
func (e *Ear) Overdue(j lifecycle.Job) (silent time.Duration, overdue bool) {
	a := j.Current()
	if j.Status != lifecycle.Running || a == nil {
		return 0, false
	}
	silent = e.silence(*a)
	return silent, silent > patience(*a)
}

// Deserted says whether an attempt is overdue and no other worker of its pool was
// heard in that time, who would see it.
func (e *Ear) Deserted(j lifecycle.Job) (silent time.Duration, deserted bool) {
	silent, overdue := e.Overdue(j)
	if !overdue {
		return silent, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	since := e.now().Add(-patience(*j.Current()))
	for _, v := range e.voices {
		if v.pool == j.Pool && v.at.After(since) {
			return silent, false
		}
	}
	return silent, true
}

// patience is how long an attempt may be silent: its lease, and a third for what
// queues may add.
func patience(a lifecycle.Attempt) time.Duration {
	lease := time.Duration(a.Started.LeaseS) * time.Second
	return lease + lease/3
}

// silence is how long nothing was heard of an attempt that is seen running now; 0
// while the listener itself is cut off.
func (e *Ear) silence(a lifecycle.Attempt) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.connected.IsZero() {
		return 0
	}
	now := e.now()
	if _, ok := e.known[a.StartedSeq]; !ok {
		e.known[a.StartedSeq] = now
	}
	latest := e.connected
	for _, t := range []time.Time{e.voices[a.Session].at, e.known[a.StartedSeq]} {
		if t.After(latest) {
			latest = t
		}
	}
	return now.Sub(latest)
}

// Silenced returns the jobs that sessions had named which were not heard for a
// while, and forgets what is old.
func (e *Ear) Silenced(during time.Duration) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	since := e.now().Add(-during)
	var out []string
	for session, v := range e.voices {
		if v.at.After(since) {
			continue
		}
		for _, u := range v.running {
			out = append(out, u.Job)
		}
		if v.at.Before(since.Add(-forgetAfter)) {
			delete(e.voices, session)
		}
	}
	for started, at := range e.known {
		if at.Before(since.Add(-2 * forgetAfter)) {
			delete(e.known, started)
		}
	}
	return out
}
