package alert

import (
	"fmt"
	"reflect"
	"time"

	"github.com/banksman/banksman/events"
)

// Alert is what the events of one id say.
type Alert struct {
	ID     string
	Scope  string // a project, or "site"
	Status Status

	Raise     *events.AlertRaised // of the newest episode
	RaisedSeq uint64
	RaisedAt  time.Time
	Severity  string // now
	Grade     int64  // the largest that was said in the episode
	Summary   string // now
	Updates   int    // in the episode

	AckBy     string // who acknowledged it, empty when nobody did
	AckReason string
	AckAt     time.Time

	ClearedAt time.Time
	Reason    string // why it was cleared

	Episodes  int
	LastSeq   uint64 // last event about the id, refused ones included
	UpdatedAt time.Time

	Unreadable bool // an event of a version that this reader does not know
}

// Open says whether an episode is going on.
func (a Alert) Open() bool { return a.Status == Raised || a.Status == Acknowledged }

// Refusal is why an event changes nothing.
type Refusal struct {
	Code string // stable, see the constants
	From Status
	Kind events.Kind
	Why  string
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%s in status %q refused (%s): %s", r.Kind, r.From, r.Code, r.Why)
}

// Codes of refusals.
const (
	CodeIllegal  = "illegal_transition"
	CodeOther    = "other_alert"
	CodeOrder    = "wrong_order"
	CodePosition = "wrong_position"
	CodeFence    = "fenced"
	CodePayload  = "payload"
)

// Skip passes over a stored event that may not be believed: it keeps its
// place, so that whoever appends next names the right one.
func (a Alert) Skip(s events.Subject, seq uint64) Alert {
	if s.Family == "alert" && (a.ID == "" || a.ID == s.ID) {
		a.ID, a.LastSeq = s.ID, max(a.LastSeq, seq)
	}
	return a
}

// Apply returns the alert after the event. On a *Refusal the alert returned
// has its position moved and nothing else. The first event names the alert.
func Apply(a Alert, e events.Event) (Alert, error) {
	if e.Kind.Family() != "alert" || a.ID != "" && e.Subject.ID != a.ID {
		return a, a.refuse(e, CodeOther, "the event is not about alert %s", a.ID)
	}
	if e.Seq <= a.LastSeq {
		return a, a.refuse(e, CodeOrder, "sequence %d was applied already", e.Seq)
	}
	after, when, err := a.take(e)
	if err != nil {
		return a.Skip(e.Subject, e.Seq), err
	}
	to, ok := next(a.Status, e.Kind, when)
	if !ok {
		return a.Skip(e.Subject, e.Seq), a.refuse(e, CodeIllegal, "no such move")
	}
	after.ID, after.Status, after.LastSeq, after.UpdatedAt = e.Subject.ID, to, e.Seq, e.Time
	return after, nil
}

// Fold applies stored events in order and reports every refusal.
func Fold(list []events.Event) (Alert, []error) {
	var a Alert
	var refused []error
	for _, e := range list {
		var err error
		if a, err = Apply(a, e); err != nil {
			refused = append(refused, err)
		}
	}
	return a, refused
}

// take fills the alert with what a well-formed event says.
func (a Alert) take(e events.Event) (after Alert, when string, err error) {
	d, known := events.Find(e.Kind, max(1, e.Version))
	switch {
	case !known || reflect.TypeOf(e.Payload) != reflect.PointerTo(d.Type):
		return a, "", a.refuse(e, CodePayload, "payload %T does not belong to the kind", e.Payload)
	case e.Expect != a.LastSeq:
		return a, "", a.refuse(e, CodePosition, "it was signed to follow event %d, the last is %d", e.Expect, a.LastSeq)
	}
	if named, answers := episode(e.Payload); answers && named != a.RaisedSeq {
		return a, "", a.refuse(e, CodeFence, "it names episode %d, the last is %d", named, a.RaisedSeq)
	}
	after = a
	switch p := e.Payload.(type) {
	case *events.AlertRaised:
		if p.Detector == "" || p.About == "" || rank(p.Severity) == 0 || e.Subject.ID != events.AlertID(p.Detector, p.About) {
			return a, "", a.refuse(e, CodePayload, "detector %q, about %q or severity %q is not acceptable for this id", p.Detector, p.About, p.Severity)
		}
		after = Alert{
			Scope: e.Subject.Scope, Raise: p, RaisedSeq: e.Seq, RaisedAt: e.Time,
			Severity: p.Severity, Grade: p.Grade, Summary: p.Summary, Episodes: a.Episodes + 1, Unreadable: a.Unreadable,
		}
	case *events.AlertUpdated:
		if rank(p.Severity) == 0 {
			return a, "", a.refuse(e, CodePayload, "severity %q is not known", p.Severity)
		}
		if rank(p.Severity) > rank(a.Severity) {
			when = caseWorse
		}
		after.Severity, after.Grade, after.Summary = p.Severity, max(a.Grade, p.Grade), p.Summary
		after.Updates++
	case *events.AlertAcknowledged:
		after.AckBy, after.AckReason, after.AckAt = e.Subject.Actor, p.Reason, e.Time
	case *events.AlertCleared:
		after.ClearedAt, after.Reason = e.Time, p.Reason
	}
	return after, when, nil
}

// episode is the episode that an event is about.
func episode(payload any) (raised uint64, answers bool) {
	switch p := payload.(type) {
	case *events.AlertUpdated:
		return p.Raised, true
	case *events.AlertAcknowledged:
		return p.Raised, true
	case *events.AlertCleared:
		return p.Raised, true
	}
	return 0, false
}

// rank orders severities; 0 is none that is known.
func rank(severity string) int {
	switch severity {
	case events.SeverityWarning:
		return 1
	case events.SeverityCritical:
		return 2
	}
	return 0
}

func (a Alert) refuse(e events.Event, code, format string, args ...any) error {
	return &Refusal{Code: code, From: a.Status, Kind: e.Kind, Why: fmt.Sprintf(format, args...)}
}
