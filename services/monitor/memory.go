package monitor

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/alert"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/alerts"
	"github.com/banksman/banksman/services/internal/trust"
)

// Bounds of what is remembered. Open alerts follow from projects and disks,
// and are bounded with them.
const (
	maxProjects = 1000
	maxCleared  = 200 // alerts that are over
)

// memory is the fold of the stream as far as the monitor needs it.
type memory struct {
	Seq      uint64 // last event read
	Projects map[string]loop.Project
	Alerts   map[string]alert.Alert
	// Orders holds, for each open alert, the projects that it has ordered to
	// stop.
	Orders map[string]map[string]uint64
	// Lifted is where a project's last order was lifted.
	Lifted map[string]uint64
}

func newMemory() *memory {
	return &memory{Projects: map[string]loop.Project{}, Alerts: map[string]alert.Alert{}, Orders: map[string]map[string]uint64{}, Lifted: map[string]uint64{}}
}

// watches says whether events under a subject mean anything here. Heads of the audit
// log are many and say nothing that the faults do not.
func watches(s events.Subject) bool {
	switch s.Family {
	case "loop", "round", "work", "stop", "alert", "host", "gap":
		return true
	case "audit":
		return s.Kind() == "audit.gap_found" || s.Kind() == "audit.fault_found"
	}
	return false
}

// pass notes that an event was read.
func (m *memory) pass(seq uint64) { m.Seq = max(m.Seq, seq) }

// take folds a stored event. The event is returned when it was believed and
// accepted; err says why it was not.
func (m *memory) take(book *trust.Book, st events.Stored) (e events.Event, err error) {
	m.pass(st.Seq)
	s, err := events.ParseSubject(st.Subject)
	if err != nil {
		return e, err
	}
	e, err = book.Open(st)
	e.Subject, e.Seq = s, st.Seq
	switch s.Family {
	case "alert":
		return e, m.takeAlert(e, err)
	case "host", "audit", "gap":
		return e, err
	}
	return e, m.takeProject(e, err)
}

func (m *memory) takeAlert(e events.Event, opened error) error {
	a, known := m.Alerts[e.Subject.ID]
	if !known && opened == nil {
		a.LastSeq = e.Expect // it is new, or was forgotten since its last episode
	}
	a, err := alerts.Apply(a, e, opened)
	m.Alerts[e.Subject.ID] = a
	if !a.Open() {
		delete(m.Orders, a.ID)
		m.forget()
	}
	return err
}

// forget drops the alerts that are over for longest.
func (m *memory) forget() {
	over := slices.DeleteFunc(slices.Collect(maps.Values(m.Alerts)), alert.Alert.Open)
	if len(over) <= maxCleared {
		return
	}
	oldest := slices.MinFunc(over, func(a, b alert.Alert) int { return cmp.Compare(a.LastSeq, b.LastSeq) })
	delete(m.Alerts, oldest.ID)
}

func (m *memory) takeProject(e events.Event, opened error) error {
	name := e.Subject.Scope
	p, known := m.Projects[name]
	if !known && len(m.Projects) >= maxProjects {
		return errTooMany
	}
	p.Name = name
	p, err := applyProject(p, e, opened)
	m.Projects[name] = p
	if err != nil {
		return err
	}
	switch o := e.Payload.(type) {
	case *events.StopOrdered:
		if a, ok := m.Alerts[o.Alert]; ok && a.Open() {
			if m.Orders[o.Alert] == nil {
				m.Orders[o.Alert] = map[string]uint64{}
			}
			m.Orders[o.Alert][name] = e.Seq
		}
	case *events.StopLifted:
		m.Lifted[name] = e.Seq
	}
	return nil
}

// errTooMany is an event about a project beyond the bound.
var errTooMany = errors.New("more projects than a monitor watches; this one is not watched")

// applyProject folds an event about a project that the trust book has opened
// with an error or without.
func applyProject(p loop.Project, e events.Event, opened error) (loop.Project, error) {
	var unknown *events.UnknownKind
	if errors.As(opened, &unknown) {
		p.Unreadable = true
	}
	if opened != nil {
		return p.Skip(e.Subject, e.Seq), opened
	}
	return loop.Apply(p, e)
}

// answered says whether an alert's episode has had its order for a project, or
// a person's answer to one.
func (m *memory) answered(a alert.Alert, project string) bool {
	return m.Orders[a.ID][project] > a.RaisedSeq || m.Lifted[project] > a.RaisedSeq
}

// open lists open alerts by id.
func (m *memory) open() []alert.Alert {
	var out []alert.Alert
	for _, id := range slices.Sorted(maps.Keys(m.Alerts)) {
		if a := m.Alerts[id]; a.Open() {
			out = append(out, a)
		}
	}
	return out
}

// projects lists the names of projects.
func (m *memory) projects() []string { return slices.Sorted(maps.Keys(m.Projects)) }

// held says whether a supervisor holds the project, so that somebody can
// answer an order.
func held(p loop.Project) bool { return p.Loop.Holder.Seq != 0 }

// overdue says for how long an order that has to be confirmed in time is in
// force, and whether that is too long.
func overdue(p loop.Project, now time.Time, within time.Duration) (time.Duration, bool) {
	s := p.Stop
	if !s.InForce() || s.Status == loop.Confirmed || !held(p) || s.Order.Alert == "" && s.Order.Mode != events.StopKill {
		return 0, false
	}
	after := now.Sub(s.At)
	return after, after >= within
}
