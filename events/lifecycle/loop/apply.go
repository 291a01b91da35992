package loop

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/banksman/banksman/events"
)

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
	CodeOther    = "other_project"
	CodeOrder    = "wrong_order"
	CodePosition = "wrong_position"
	CodeFence    = "fenced"
	CodePayload  = "payload"
)

func refuse(e events.Event, from Status, code, format string, args ...any) error {
	return &Refusal{Code: code, From: from, Kind: e.Kind, Why: fmt.Sprintf(format, args...)}
}

// Apply returns the project after the event. On a *Refusal the project
// returned has its position moved and nothing else. The first event names the
// project.
func Apply(p Project, e events.Event) (Project, error) {
	if Machine(e.Kind) == "" || e.Subject.Scope != p.Name && p.Name != "" {
		return p, refuse(e, None, CodeOther, "the event is not about project %s", p.Name)
	}
	after := p
	after.Name = e.Subject.Scope
	var err error
	switch Machine(e.Kind) {
	case "loop":
		after.Loop, err = p.Loop.Apply(e)
	case "stop":
		after.Stop, err = after.applyStop(e)
	default:
		after.Round, err = after.applyRound(e)
	}
	if err != nil {
		p.Name = after.Name
		var r *Refusal
		if errors.As(err, &r) && (r.Code == CodeOrder || r.Code == CodeOther) {
			return p, err
		}
		return p.Skip(e.Subject, e.Seq), err
	}
	return after, nil
}

// Fold applies stored events in order and reports every refusal.
func Fold(list []events.Event) (Project, []error) {
	var p Project
	var refused []error
	for _, e := range list {
		var err error
		if p, err = Apply(p, e); err != nil {
			refused = append(refused, err)
		}
	}
	return p, refused
}

// placed refuses what is not a well-formed event behind the last one.
func placed(e events.Event, from Status, last uint64) error {
	d, known := events.Find(e.Kind, max(1, e.Version))
	switch {
	case !known || reflect.TypeOf(e.Payload) != reflect.PointerTo(d.Type):
		return refuse(e, from, CodePayload, "payload %T does not belong to the kind", e.Payload)
	case e.Seq <= last:
		return refuse(e, from, CodeOrder, "sequence %d was applied already", e.Seq)
	case e.Expect != last:
		return refuse(e, from, CodePosition, "it was signed to follow event %d, the last is %d", e.Expect, last)
	}
	return nil
}

// move looks the move up in the table.
func move(e events.Event, from Status, when string) (Status, error) {
	to, ok := next(from, e.Kind, when)
	if !ok {
		return from, refuse(e, from, CodeIllegal, "no such move")
	}
	return to, nil
}

// Apply returns the loop after an event of its family.
func (l Loop) Apply(e events.Event) (Loop, error) {
	if e.Kind.Family() != "loop" || e.Subject.ID != e.Subject.Scope {
		return l, refuse(e, l.Status, CodeOther, "it is not about a loop")
	}
	if err := placed(e, l.Status, l.LastSeq); err != nil {
		return l, err
	}
	after, when := l, ""
	switch p := e.Payload.(type) {
	case *events.LoopClaimed:
		if p.WorkDir == "" || p.LeaseS < 1 || p.MaxRounds < 0 {
			return l, refuse(e, l.Status, CodePayload, "work_dir, lease_s or max_rounds is not acceptable")
		}
		after.Holder = Holder{Actor: e.Subject.Actor, Session: e.ID.Session, Seq: e.Seq, At: e.Time, Claim: *p}
	case *events.LoopReleased:
		if err := l.fenced(e, p.Claim); err != nil {
			return l, err
		}
		after.Holder = Holder{}
	case *events.LoopHalted:
		if err := l.fenced(e, p.Claim); err != nil {
			return l, err
		}
		after.Halt, after.HaltedSeq = p, e.Seq
	case *events.LoopStartRequested:
		if l.Status == Halted && p.Halted != l.HaltedSeq {
			return l, refuse(e, l.Status, CodeFence, "it answers halt %d, the last is %d", p.Halted, l.HaltedSeq)
		}
		if when = caseNobody; l.Holder.Seq != 0 {
			when = caseHeld
		}
		after.RequestedSeq = e.Seq
	}
	to, err := move(e, l.Status, when)
	if err != nil {
		return l, err
	}
	after.Status, after.LastSeq, after.UpdatedAt = to, e.Seq, e.Time
	return after, nil
}

// fenced refuses what the holder of this claim does not say itself.
func (l Loop) fenced(e events.Event, claim uint64) error {
	if l.Holder.Seq != claim || !l.Holder.Is(e.Subject.Actor, e.ID.Session) {
		return refuse(e, l.Status, CodeFence, "it speaks for claim %d; %s holds claim %d", claim, l.Holder.Actor, l.Holder.Seq)
	}
	return nil
}
