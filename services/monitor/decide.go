package monitor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/alert"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/loops"
)

// saying is an event to append.
type saying struct {
	kind    events.Kind
	scope   string
	id      string
	expect  uint64
	first   bool // nothing about the id is remembered: expect has to be read
	payload any
}

// reconcile compares what detectors find with the alerts that are open, and
// returns what has to be said so that they agree. An alert of a detector that
// this monitor does not have is left to whoever has it.
func reconcile(m *memory, list []Detector, now time.Time) []saying {
	var out []saying
	for _, d := range list {
		found := map[string]Finding{}
		for _, f := range d.Findings(now) {
			found[events.AlertID(d.Name(), f.About)] = f
		}
		for _, id := range slices.Sorted(maps.Keys(found)) {
			if s, ok := raiseOrUpdate(m.Alerts, id, d.Name(), found[id]); ok {
				out = append(out, s)
			}
		}
		for _, a := range m.open() {
			if _, still := found[a.ID]; !still && a.Raise.Detector == d.Name() && !a.Unreadable {
				out = append(out, saying{kind: "alert.cleared", scope: a.Scope, id: a.ID, expect: a.LastSeq,
					payload: &events.AlertCleared{Raised: a.RaisedSeq, Reason: d.Calm()}})
			}
		}
	}
	return out
}

func raiseOrUpdate(known map[string]alert.Alert, id, detector string, f Finding) (saying, bool) {
	a, remembered := known[id]
	switch {
	case a.Unreadable:
		return saying{}, false
	case !a.Open():
		s := saying{kind: "alert.raised", scope: cmp.Or(f.Project, events.SiteScope), id: id, expect: a.LastSeq, first: !remembered}
		s.payload = &events.AlertRaised{Detector: detector, About: f.About, Severity: f.Severity, Grade: f.Grade, Summary: f.Summary, Host: f.Host}
		return s, true
	case a.Severity != f.Severity || f.Grade > a.Grade:
		return saying{kind: "alert.updated", scope: a.Scope, id: id, expect: a.LastSeq,
			payload: &events.AlertUpdated{Raised: a.RaisedSeq, Severity: f.Severity, Grade: f.Grade, Summary: f.Summary}}, true
	}
	return saying{}, false
}

// stops returns the orders that open alerts call for, and the escalation of
// those that are not carried out.
func stops(m *memory, c Config, now time.Time) []saying {
	var out []saying
	ordered := map[string]bool{}
	for _, a := range m.open() {
		mode := c.stopOf(a.Raise.Detector)
		if a.Severity != events.SeverityCritical || mode == stopNone {
			continue
		}
		for _, name := range targets(m, a) {
			p := m.Projects[name]
			if ordered[name] || p.Unreadable || m.answered(a, name) {
				continue
			}
			if s, err := loops.Order(p, mode, a.Summary, a.ID); err == nil {
				out, ordered[name] = append(out, order(name, s)), true
			}
		}
	}
	for _, name := range m.projects() {
		if s, ok := escalate(m.Projects[name], c, now); ok && !ordered[name] {
			out = append(out, s)
		}
	}
	return out
}

// targets are the projects that an alert is about.
func targets(m *memory, a alert.Alert) []string {
	if a.Scope != events.SiteScope {
		if _, known := m.Projects[a.Scope]; known {
			return []string{a.Scope}
		}
		return nil
	}
	return slices.DeleteFunc(m.projects(), func(name string) bool {
		p := m.Projects[name]
		return !held(p) || a.Raise.Host != "" && p.Loop.Holder.Claim.Host != a.Raise.Host
	})
}

// order is an order in the form of other sayings.
func order(project string, s loops.Saying) saying {
	return saying{kind: s.Kind, scope: project, id: project, expect: s.Expect, payload: s.Payload}
}

// escalate says first that an order takes too long, then makes an alert's
// order to drain one to kill.
func escalate(p loop.Project, c Config, now time.Time) (saying, bool) {
	after, late := overdue(p, now, seconds(c.ConfirmS))
	if !late || p.Unreadable {
		return saying{}, false
	}
	s := p.Stop
	if !s.Escalated {
		return saying{kind: "stop.escalated", scope: p.Name, id: p.Name, expect: s.LastSeq, payload: &events.StopEscalated{
			Ordered: s.Seq, State: string(s.Status), AfterS: int64(after / time.Second),
			Reason: fmt.Sprintf("the order to %s was not confirmed within %d s", s.Order.Mode, c.ConfirmS),
		}}, true
	}
	if s.Order.Alert == "" || s.Order.Mode != events.StopDrain {
		return saying{}, false
	}
	harder, err := loops.Order(p, events.StopKill, "not drained in time: "+s.Order.Reason, s.Order.Alert)
	return order(p.Name, harder), err == nil
}
