package monitor

import (
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
)

// obedience is how far a project has come with the order in force.
type obedience struct {
	Order uint64    // its sequence, 0 for none
	At    time.Time // of the order
	Alert bool      // an alert ordered it
	Kill  bool
	State string // ordered, seen, drained or killed
	Late  bool   // somebody has said that it takes too long
	Held  bool   // a supervisor holds the project
}

// watched says whether the order has to be carried out in a time that the
// monitor knows: a person's order to drain waits for a round of any length.
func (o *obedience) watched() bool { return o.Order != 0 && o.Held && (o.Alert || o.Kill) }

// overdue says whether it was not.
func (o *obedience) overdue(now time.Time, within time.Duration) bool {
	return o.watched() && now.Sub(o.At) >= within
}

// unconfirmed watches for stop orders that nobody carries out.
type unconfirmed struct {
	Loops map[string]*obedience

	within time.Duration
}

func (*unconfirmed) Name() string { return nameUnconfirmed }

func (*unconfirmed) Calm() string { return "the order was confirmed or lifted" }

func (d *unconfirmed) Observe(e events.Event) {
	if f := e.Kind.Family(); f != "loop" && f != "stop" {
		return
	}
	o := d.Loops[e.Subject.Scope]
	if o == nil {
		o = &obedience{}
		d.Loops[e.Subject.Scope] = o
	}
	switch p := e.Payload.(type) {
	case *events.LoopClaimed:
		o.Held = true
	case *events.LoopReleased:
		o.Held = false
	case *events.StopOrdered:
		*o = obedience{Order: e.Seq, At: e.Time, Alert: p.Alert != "", Kill: p.Mode == events.StopKill, State: "ordered", Late: o.Late, Held: o.Held}
	case *events.StopEscalated:
		o.Late = true
	case *events.StopSeen:
		o.State = "seen"
	case *events.StopDrained:
		o.State = "drained"
	case *events.StopKilled:
		o.State = "killed"
	case *events.StopConfirmed, *events.StopLifted:
		*o = obedience{Held: o.Held}
	}
}

func (d *unconfirmed) Findings(now time.Time) []Finding {
	var out []Finding
	for project, o := range d.Loops {
		if !o.overdue(now, d.within) && !(o.Order != 0 && o.Late) {
			continue
		}
		grade, mode := int64(1), events.StopDrain
		if o.Kill {
			grade, mode = 2, events.StopKill
		}
		out = append(out, Finding{
			About: project, Project: project, Severity: events.SeverityCritical, Grade: grade,
			Summary: fmt.Sprintf("the order of %s to %s %s is only %s; look at the supervisor, and at its machine for what still runs", o.At.UTC().Format(time.RFC3339), mode, project, o.State),
		})
	}
	return out
}
