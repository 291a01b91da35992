package monitor

import (
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
)

// hungAtLeast is how far past its limit a short round may be: its supervisor
// needs a while to end the tree and to say so.
const hungAtLeast = 2 * time.Minute

// pulse is the last sign of life of a project.
type pulse struct {
	Round  string // that runs, empty for none
	Since  time.Time
	LimitS int

	Held    bool // a supervisor holds it
	Halted  bool
	Stopped bool // an order is in force
	Last    time.Time
}

// hung watches for rounds that outlive their limit and for loops that fall
// silent: in both cases the supervisor is not doing what it is there for.
type hung struct {
	Loops map[string]*pulse

	percent int
	silent  time.Duration
}

func (*hung) Name() string { return nameHung }

func (*hung) Calm() string { return "the project has shown a sign of life, or is not to run" }

func (d *hung) Observe(e events.Event) {
	switch e.Kind.Family() {
	case "loop", "round", "stop":
	default:
		return
	}
	p := d.Loops[e.Subject.Scope]
	if p == nil {
		p = &pulse{}
		d.Loops[e.Subject.Scope] = p
	}
	p.Last = e.Time
	switch what := e.Payload.(type) {
	case *events.RoundStarted:
		p.Round, p.Since, p.LimitS = e.Subject.ID, e.Time, what.TimeLimitS
	case *events.RoundEnded:
		p.Round = ""
	case *events.LoopClaimed:
		p.Held = true
	case *events.LoopReleased:
		p.Held = false
	case *events.LoopHalted:
		p.Halted = true
	case *events.LoopStartRequested:
		p.Halted = false
	case *events.StopOrdered:
		p.Stopped = true
	case *events.StopLifted:
		p.Stopped = false
	}
}

func (d *hung) Findings(now time.Time) []Finding {
	var out []Finding
	for project, p := range d.Loops {
		f := Finding{About: project, Project: project, Severity: events.SeverityWarning}
		limit := seconds(p.LimitS)
		past := max(limit*time.Duration(d.percent)/100, limit+hungAtLeast)
		switch ran, rests := now.Sub(p.Since), now.Sub(p.Last); {
		case p.Round != "" && d.percent > 0 && ran > past:
			f.Grade = doublings(int(ran / max(limit, time.Second)))
			f.Summary = fmt.Sprintf("round %s runs since %s, although its limit was %s; its supervisor may be gone", p.Round, p.Since.UTC().Format(time.RFC3339), limit)
		case p.Round == "" && p.Held && !p.Halted && !p.Stopped && d.silent > 0 && rests > d.silent:
			f.Grade = doublings(int(rests / d.silent))
			f.Summary = fmt.Sprintf("%s is to run, but has begun no round since %s", project, p.Last.UTC().Format(time.RFC3339))
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}
