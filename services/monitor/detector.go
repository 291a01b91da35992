package monitor

import (
	"math/bits"
	"time"

	"github.com/banksman/banksman/events"
)

// Detector watches for one thing. It is a fold: Observe is given every event
// that was believed and accepted, in order, and Findings says what is wrong
// now. It has no clock and does no I/O. Its exported fields are its whole
// memory, so that it can be put away as JSON and taken up again.
type Detector interface {
	// Name is the detector's word in alerts and their ids. It never changes.
	Name() string
	// Observe takes an event in.
	Observe(e events.Event)
	// Findings is everything that is wrong, one for each thing.
	Findings(now time.Time) []Finding
	// Calm is the sentence for what is not wrong any more.
	Calm() string
}

// Finding is one thing that is wrong.
type Finding struct {
	About    string // a project, a host and a folder, or the stream
	Project  string // empty for what concerns the site
	Host     string // the machine that it is about, empty for a project
	Severity string
	Grade    int64 // only a larger one is worth an update
	Summary  string
}

// Names of the detectors.
const (
	nameTimeouts    = "timeout_rate"
	nameHung        = "hung"
	nameAuth        = "auth_failures"
	nameCrash       = "crash_loop"
	nameDisk        = "disk"
	nameUnconfirmed = "stop_unconfirmed"
	nameIntegrity   = "integrity"
)

// detectors makes all of them with their thresholds.
func detectors(c Config) []Detector {
	return []Detector{
		&timeouts{Rounds: map[string][]bool{}, window: c.TimeoutWindow, percent: c.TimeoutPercent},
		&hung{Loops: map[string]*pulse{}, percent: c.HungPercent, silent: seconds(c.SilentS)},
		&authFailures{Streak: map[string]int{}, limit: c.AuthFailures},
		&crashLoop{Streak: map[string]int{}, limit: c.CrashRounds, short: seconds(c.CrashShortS)},
		&disks{Seen: map[string]disk{}, warning: c.DiskWarningPercent, critical: c.DiskCriticalPercent},
		&unconfirmed{Loops: map[string]*obedience{}, within: seconds(c.ConfirmS)},
		&integrity{Open: map[string]string{}},
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// doublings is a grade that grows when a number has doubled.
func doublings(n int) int64 { return int64(bits.Len(uint(max(n, 0)))) }

// anew says whether an event is a person's word that what was wrong with a
// project is seen to: what came before does not count any more.
func anew(e events.Event) bool {
	switch e.Payload.(type) {
	case *events.StopLifted, *events.LoopStartRequested:
		return true
	}
	return false
}
