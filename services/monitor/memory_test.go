package monitor

import (
	"fmt"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/alert"
)

// about is an event about an alert at a position.
func about(id string, seq, expect uint64, payload any) events.Event {
	e := heard(time.Duration(seq)*time.Second, payload)
	e.Subject.ID, e.Seq, e.Expect = id, seq, expect
	return e
}

// However many alerts there were, only so many that are over are remembered,
// and one that was forgotten can be raised again.
func TestAlertsThatAreOverAreForgotten(t *testing.T) {
	m := newMemory()
	seq := uint64(0)
	episode := func(name string, expect uint64) (raised, cleared uint64) {
		t.Helper()
		id := events.AlertID(nameHung, name)
		seq += 2
		for _, e := range []events.Event{
			about(id, seq-1, expect, &events.AlertRaised{Detector: nameHung, About: name, Severity: events.SeverityWarning}),
			about(id, seq, seq-1, &events.AlertCleared{Raised: seq - 1}),
		} {
			if err := m.takeAlert(e, nil); err != nil {
				t.Fatal(err)
			}
		}
		return seq - 1, seq
	}
	_, first := episode("p0", 0)
	for i := range maxCleared + 50 {
		episode(fmt.Sprintf("p%d", i+1), 0)
	}
	if _, known := m.Alerts["hung-p0"]; known || len(m.Alerts) != maxCleared {
		t.Fatalf("%d alerts are remembered", len(m.Alerts))
	}
	said := reconcile(m, []Detector{&hung{Loops: map[string]*pulse{"p0": {Round: "p0-1", LimitS: 1, Since: noon}}, percent: 150}}, noon.Add(time.Hour))
	if len(said) != 1 || !said[0].first || said[0].kind != "alert.raised" {
		t.Fatalf("%+v", said)
	}
	episode("p0", first)
	if a := m.Alerts["hung-p0"]; a.Status != alert.Cleared {
		t.Errorf("%+v", a)
	}
}

// A project too many is not watched, and hurts nobody.
func TestProjectsBeyondTheBoundAreLeftOut(t *testing.T) {
	m := newMemory()
	for i := range maxProjects + 3 {
		e := about("x", uint64(i+1), 0, &events.LoopClaimed{Host: "h", WorkDir: "/w", LeaseS: 3})
		name := fmt.Sprintf("p%d", i)
		e.Subject.Scope, e.Subject.ID = name, name
		if err := m.takeProject(e, nil); (err != nil) != (i >= maxProjects) {
			t.Fatalf("project %d: %v", i, err)
		}
	}
	if len(m.Projects) != maxProjects {
		t.Errorf("%d projects", len(m.Projects))
	}
}
