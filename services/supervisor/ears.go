package supervisor

import (
	"strings"
	"sync"
	"time"
)

// forgetAfter bounds what is remembered of sessions that are gone.
const forgetAfter = time.Hour

// ears are what this supervisor has heard of others, by its own monotonic
// clock.
type ears struct {
	deaf bool // heartbeats are not permitted; set before anything else runs

	mu     sync.Mutex
	since  time.Time // connected without a break since then; zero while the bus is away
	gone   time.Time // when the connection was lost; zero while it is there
	voices map[string]time.Time
}

func newEars() *ears { return &ears{voices: map[string]time.Time{}} }

// connection notes that the bus came or went.
func (e *ears) connection(up bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !up && e.gone.IsZero():
		e.since, e.gone = time.Time{}, time.Now()
	case up && e.since.IsZero():
		e.since, e.gone = time.Now(), time.Time{}
	}
}

// away is since when the bus is away, zero while it is there.
func (e *ears) away() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gone
}

// heard notes a heartbeat <scope>.<actor>.<session>.
func (e *ears) heard(tail string, _ []byte) {
	t := strings.Split(tail, ".")
	if len(t) != 3 {
		return
	}
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.voices[t[2]] = now
	for session, at := range e.voices {
		if now.Sub(at) > forgetAfter {
			delete(e.voices, session)
		}
	}
}

// silent is how long a session was not heard although it could have been;
// negative when nobody can know.
func (e *ears) silent(session string) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.deaf || e.since.IsZero() {
		return -1
	}
	heard := e.since
	if at := e.voices[session]; at.After(heard) {
		heard = at
	}
	return time.Since(heard)
}
