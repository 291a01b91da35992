package worker

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/view"
)

func TestResults(t *testing.T) {
	start := func(code string) error { return &proc.StartError{Code: code} }
	for name, c := range map[string]struct {
		got     result
		outcome string
		code    int
		class   class
		stopped bool
	}{
		"exit 0":         {ended(proc.Outcome{}, nil, ""), "succeeded", 0, classDone, false},
		"exit 3":         {ended(proc.Outcome{ExitCode: 3}, nil, ""), "failed", 3, classExit, false},
		"signal":         {ended(proc.Outcome{ExitCode: -1, Signal: "SIGSEGV"}, nil, ""), "failed", -1, classSignal, false},
		"time limit":     {ended(proc.Outcome{ExitCode: -1, TimedOut: true}, nil, ""), "timed_out", -1, classTimeout, false},
		"steward lost":   {ended(proc.Outcome{}, proc.ErrStewardLost, ""), "failed", 0, classSignal, false},
		"stopped":        {ended(proc.Outcome{ExitCode: -1, Cancelled: true}, nil, reasonStopped), "", -1, classStopped, true},
		"hurried":        {ended(proc.Outcome{ExitCode: -1, Cancelled: true}, nil, reasonHurried), "", -1, classDone, true},
		"asked":          {ended(proc.Outcome{ExitCode: -1, Cancelled: true}, nil, reasonAsked), "", -1, classDone, true},
		"fenced":         {ended(proc.Outcome{ExitCode: -1, Cancelled: true}, nil, reasonFenced), "failed", -1, classFenced, false},
		"not held":       {ended(proc.Outcome{ExitCode: -1, Fenced: true}, nil, ""), "failed", -1, classFenced, false},
		"too late":       {notStarted(&proc.StartError{Code: proc.CodeTooLate}), "failed", 126, classFenced, false},
		"ended too late": {ended(proc.Outcome{}, nil, reasonStopped), "succeeded", 0, classDone, false},
		"no program":     {notStarted(start(proc.CodeNoProgram)), "failed", 127, classStart, false},
		"no interpreter": {notStarted(start(proc.CodeNoInterpreter)), "failed", 127, classStart, false},
		"changed":        {notStarted(start(proc.CodeDigestChanged)), "failed", 126, classChanged, false},
		"anything else":  {notStarted(errors.New("no")), "failed", 126, classStart, false},
	} {
		f := c.got.finished
		if f.Outcome != c.outcome || f.ExitCode != c.code || c.got.class != c.class || c.got.stopped != c.stopped {
			t.Errorf("%s: %+v", name, c.got)
		}
		finished, cancelled := c.got.payload(13, "worker")
		if c.stopped != (cancelled != nil) || c.stopped == (finished != nil) {
			t.Errorf("%s: published as %+v and %+v", name, finished, cancelled)
		}
	}
}

func TestRetryRules(t *testing.T) {
	standard := DefaultConfig()
	picky := DefaultConfig()
	picky.RetryExits, picky.RetrySignal, picky.RetryTimeout, picky.RetryStart = []int{75}, false, false, true
	for _, c := range []struct {
		class           class
		code            int
		standard, picky bool
	}{
		{classDone, 0, false, false},
		{classExit, 1, true, false},
		{classExit, 75, true, true},
		{classSignal, -1, true, false},
		{classTimeout, -1, true, false},
		{classStart, 127, false, true},
		{classChanged, 126, false, false},
		{classFenced, -1, true, true},
		{classStopped, -1, true, true},
	} {
		for _, rules := range []struct {
			cfg  *Config
			want bool
		}{{&standard, c.standard}, {&picky, c.picky}} {
			r := result{class: c.class, finished: events.JobFinished{ExitCode: c.code}}
			rules.cfg.plan(&r, 1, 2, noon, rand.Int64N)
			if got := !dueAt(&r.finished).IsZero(); got != rules.want {
				t.Errorf("class %d, exit %d with exits %v: tried again: %v", c.class, c.code, rules.cfg.RetryExits, got)
			}
			last := result{class: c.class, finished: events.JobFinished{ExitCode: c.code}}
			if rules.cfg.plan(&last, 2, 2, noon, rand.Int64N); !dueAt(&last.finished).IsZero() {
				t.Errorf("class %d: tried again after the last attempt", c.class)
			}
		}
	}
}

func TestRetryPauseDoublesToItsCap(t *testing.T) {
	c := DefaultConfig()
	c.RetryFirstS, c.RetryMostS = 2, 60
	least := func(int64) int64 { return 0 }
	for i, want := range []int{2, 4, 8, 16, 32, 60, 60} {
		if got := c.retryPause(i+1, least); got != time.Duration(want)*time.Second {
			t.Errorf("after attempt %d: %s, want %d s", i+1, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		c.RetryFirstS = rapid.IntRange(1, 86400).Draw(t, "first")
		c.RetryMostS = rapid.IntRange(c.RetryFirstS, 604800).Draw(t, "most")
		n := rapid.IntRange(1, 1<<30).Draw(t, "attempt")
		most := time.Duration(c.RetryMostS) * time.Second
		floor, got := c.retryPause(n, least), c.retryPause(n, rand.Int64N)
		if floor < time.Duration(c.RetryFirstS)*time.Second || floor > most || got < floor || got > floor+floor/4 {
			t.Fatalf("after attempt %d: %s, at least %s", n, got, floor)
		}
		if next := c.retryPause(n+1, least); next < floor {
			t.Fatalf("after attempt %d %s, then %s", n, floor, next)
		}
	})
}

func TestClockFollowsTheStream(t *testing.T) {
	var c clock
	if off := time.Until(c.now()); off > time.Second || off < -time.Minute {
		t.Errorf("before the stream was heard it is off by %s", off)
	}
	ahead := time.Now().Add(-10 * time.Minute) // this machine is ten minutes ahead
	c.note(ahead)
	if got := c.now().Sub(ahead); got < 0 || got > time.Minute {
		t.Errorf("ten minutes ahead of the stream: %s", got)
	}
	if got := c.until(ahead.Add(time.Hour)); got > time.Hour || got < 59*time.Minute {
		t.Errorf("an hour of the stream's time takes %s", got)
	}
	if c.until(time.Time{}) != 0 {
		t.Error("the zero time is not now")
	}
}

// The due time of the next attempt is in the log: a worker that was not there
// when the attempt failed starts it, and not earlier.
func TestRetrySurvivesItsWorker(t *testing.T) {
	y := newYard(t, rules)
	first := y.hire("worker", "", func(c *Config) { c.RetryFirstS = 3 }).run()
	id := y.propose([]string{"sh", "-c", "exit 9"}, func(p *events.JobProposed) { p.MaxAttempts = 2 })
	y.approve(id)
	y.seal()
	j := y.Await(id, "in retry_wait", func(j lifecycle.Job) bool { return j.Status == lifecycle.RetryWait })
	first.leave()
	at := view.Of(j).RetryAt
	if pause := at.Sub(j.Current().EndedAt); at.IsZero() || pause < 2900*time.Millisecond || pause > 10*time.Second {
		t.Errorf("due %s after the end", pause)
	}
	y.serveReady(id)
	y.hire("worker", "").run()
	j = y.ends(id)
	if len(j.Attempts) != 2 || j.Attempts[1].StartedAt.Before(at) {
		t.Errorf("%d attempts, the last one started at %s, due at %s", len(j.Attempts), j.Current().StartedAt, at)
	}
}

func TestStatusThatIsNotListedIsNotTriedAgain(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "", func(c *Config) { c.RetryExits = []int{75} }).run()
	id := y.propose([]string{"sh", "-c", "exit 9"}, func(p *events.JobProposed) { p.MaxAttempts = 3 })
	y.approve(id)
	y.seal()
	if j := y.ends(id); j.Status != lifecycle.Failed || len(j.Attempts) != 1 {
		t.Errorf("status %q after %d attempts", j.Status, len(j.Attempts))
	}
}
