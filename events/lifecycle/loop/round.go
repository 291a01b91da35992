package loop

import (
	"slices"

	"github.com/banksman/banksman/events"
)

// Outcomes of a round.
var outcomes = []string{"succeeded", "failed", "timed_out", "stopped", "interrupted"}

// applyRound joins the newest round with the claim: only the holder begins a
// round, and only one of its own actor ends it.
func (p Project) applyRound(e events.Event) (Round, error) {
	r := p.Round
	switch s := e.Payload.(type) {
	case *events.RoundStarted:
		switch {
		case r.Status == Running:
			return r, refuse(e, r.Status, CodeIllegal, "round %s is running", r.ID)
		case p.Loop.Status != Held:
			return r, refuse(e, r.Status, CodeFence, "the loop is %q", p.Loop.Status)
		case p.Stop.InForce() && p.Stop.Status != Ordered:
			return r, refuse(e, r.Status, CodeFence, "a stop is in force and was seen")
		case r.Number() > 0 && (s.Number <= r.Number() || s.Turn != p.NextTurn()):
			return r, refuse(e, r.Status, CodeIllegal, "it is round %d, turn %d; the last was round %d, and turn %d is next", s.Number, s.Turn, r.Number(), p.NextTurn())
		}
		if err := p.Loop.fenced(e, s.Claim); err != nil {
			return r, err
		}
		return Round{}.Apply(e)
	case *events.RoundEnded:
		if actor := e.Subject.Actor; actor != r.Actor && actor != p.Loop.Holder.Actor {
			return r, refuse(e, r.Status, CodeFence, "round %s belongs to %s", r.ID, r.Actor)
		}
	}
	return r.Apply(e)
}

// Apply returns the round after an event about it; the first one must be its
// start.
func (r Round) Apply(e events.Event) (Round, error) {
	if Machine(e.Kind) != "round" || r.ID != "" && e.Subject.ID != r.ID {
		return r, refuse(e, r.Status, CodeOther, "it is not about round %s", r.ID)
	}
	last := r.LastSeq
	if e.Kind.Family() == "work" {
		last = r.WorkSeq
	}
	if err := placed(e, r.Status, last); err != nil {
		return r, err
	}
	after := r
	if err := after.take(e); err != nil {
		return r, err
	}
	to, err := move(e, r.Status, "")
	if err != nil {
		return r, err
	}
	after.Status = to
	if e.Kind.Family() == "work" {
		after.WorkSeq = e.Seq
	} else {
		after.LastSeq = e.Seq
	}
	return after, nil
}

// take fills the round with what the event says.
func (r *Round) take(e events.Event) error {
	switch p := e.Payload.(type) {
	case *events.RoundStarted:
		if p.Number < 1 || p.Turn < 1 || e.Subject.ID != events.RoundID(e.Subject.Scope, p.Number) {
			return refuse(e, r.Status, CodePayload, "number %d or turn %d is not acceptable for round %s", p.Number, p.Turn, e.Subject.ID)
		}
		r.ID, r.Project, r.Actor = e.Subject.ID, e.Subject.Scope, e.Subject.Actor
		r.Start, r.StartedSeq, r.StartedAt = p, e.Seq, e.Time
	case *events.RoundEnded:
		if p.Started != r.StartedSeq {
			return refuse(e, r.Status, CodeFence, "it names start %d, the round's is %d", p.Started, r.StartedSeq)
		}
		if !slices.Contains(outcomes, p.Outcome) {
			return refuse(e, r.Status, CodePayload, "outcome %q is not known", p.Outcome)
		}
		r.End, r.EndedSeq, r.EndedAt = p, e.Seq, e.Time
	case *events.WorkSalvaged:
		r.Salvage, r.SalvageFailed = p, nil
	case *events.WorkSalvageFailed:
		r.SalvageFailed = p
	}
	return nil
}

// FoldRound applies the events of one round in order and reports every
// refusal.
func FoldRound(list []events.Event) (Round, []error) {
	var r Round
	var refused []error
	for _, e := range list {
		var err error
		if r, err = r.Apply(e); err != nil {
			r, refused = r.Skip(e.Subject, e.Seq), append(refused, err)
		}
	}
	return r, refused
}
