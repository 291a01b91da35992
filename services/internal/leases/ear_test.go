package leases

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
)

// running is a job of a pool whose attempt has a lease of 15 s.
func running(pool string) lifecycle.Job {
	return lifecycle.Job{ID: "job", Pool: pool, Status: lifecycle.Running, Attempts: []lifecycle.Attempt{
		{N: 1, Session: "s2", StartedSeq: 13, Started: events.JobStarted{LeaseS: 15}},
	}}
}

// newEar is an ear whose clock goes on when the test says so.
func newEar() (e *Ear, pass func(time.Duration)) {
	now := time.Now()
	return NewEar(func() time.Time { return now }), func(d time.Duration) { now = now.Add(d) }
}

// Silence is what the listener could have heard and did not.
func TestSilence(t *testing.T) {
	e, pass := newEar()
	j := running("p")
	silent := func(want time.Duration, overdue bool) {
		t.Helper()
		if got, is := e.Overdue(j); got != want || is != overdue {
			t.Errorf("silent for %s, overdue %v; want %s, %v", got, is, want, overdue)
		}
	}
	pass(time.Hour)
	silent(0, false) // cut off from the beginning
	e.Connection(true)
	pass(time.Minute)
	silent(0, false) // seen for the first time
	pass(20 * time.Second)
	silent(20*time.Second, false) // the lease and a third of it
	pass(time.Second)
	silent(21*time.Second, true)
	e.Heard("p.worker.s2", []byte("no JSON"))
	e.Heard("p.worker", nil) // no heartbeat at all
	silent(0, false)
	pass(21 * time.Second)
	e.Heard("p.worker.s3", nil)
	silent(21*time.Second, true) // another one's voice
	e.Connection(false)
	silent(0, false)
	pass(time.Hour)
	e.Connection(true)
	e.Connection(true)
	silent(0, false) // what was not heard meanwhile is no silence
	pass(21 * time.Second)
	silent(21*time.Second, true)
	j.Status = lifecycle.Succeeded
	silent(0, false)
}

// setWall is a time as the runtime reads it on a machine whose clock was set by so
// much: the wall moves and the monotonic reading does not. No function makes such a
// time, so its first word is changed, whose bits above the thirtieth are seconds.
func setWall(now time.Time, step time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&now)) += uint64(int64(step/time.Second) << 30)
	return now
}

// Only the monotonic reading counts: a wall clock that steps between two looks
// neither lapses an attempt nor saves one.
func TestWallClockTakesNoPart(t *testing.T) {
	begin := time.Now()
	if moved := setWall(begin, time.Hour); moved.Round(0).Sub(begin.Round(0)) != time.Hour || moved.Sub(begin) != 0 {
		t.Fatalf("the clock was not set: %v", moved)
	}
	var passed, step time.Duration
	e := NewEar(func() time.Time { return setWall(begin.Add(passed), step) })
	e.Connection(true)
	j := running("p")
	for _, passed = range []time.Duration{0, 21 * time.Second} {
		for _, step = range []time.Duration{0, time.Hour, -time.Hour} {
			if silent, overdue := e.Overdue(j); silent != passed || overdue != (passed > 0) {
				t.Errorf("after %s and a step by %s it is silent for %s, overdue %v", passed, step, silent, overdue)
			}
		}
	}
}

// A pool is deserted while nobody speaks in it.
func TestDeserted(t *testing.T) {
	e, pass := newEar()
	e.Connection(true)
	e.Overdue(running("p"))
	deserted := func(want bool) {
		t.Helper()
		if _, got := e.Deserted(running("p")); got != want {
			t.Errorf("deserted %v, want %v", got, want)
		}
	}
	deserted(false)
	pass(21 * time.Second)
	deserted(true)
	e.Heard("other.worker.s3", nil)
	deserted(true)
	e.Heard("p.worker.s4", nil)
	deserted(false) // a peer sees to it
	pass(21 * time.Second)
	deserted(true)
}

// Sessions that fell silent are named with what they ran, until they are
// forgotten.
func TestSilenced(t *testing.T) {
	e, pass := newEar()
	e.Heard("p.worker.s2", []byte(`{"running":[{"job":"a","started":1},{"job":"b","started":2}]}`))
	if got := e.Silenced(time.Minute); got != nil {
		t.Errorf("named %q at once", got)
	}
	pass(time.Minute)
	if got := e.Silenced(time.Minute); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("named %q", got)
	}
	pass(2 * forgetAfter)
	e.Silenced(time.Minute)
	if got := e.Silenced(time.Minute); got != nil {
		t.Errorf("named %q for ever", got)
	}
}
