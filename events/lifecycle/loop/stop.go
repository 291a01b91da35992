package loop

import "github.com/banksman/banksman/events"

// applyStop joins the order with the claim: only the holder answers an order.
func (p Project) applyStop(e events.Event) (Stop, error) {
	switch e.Payload.(type) {
	case *events.StopSeen, *events.StopDrained, *events.StopKilled, *events.StopConfirmed:
		if !p.Loop.Holder.Is(e.Subject.Actor, e.ID.Session) {
			return p.Stop, refuse(e, p.Stop.Status, CodeFence, "only the holder of the project answers an order")
		}
	}
	return p.Stop.Apply(e)
}

// Apply returns the order after an event of its family.
func (s Stop) Apply(e events.Event) (Stop, error) {
	if e.Kind.Family() != "stop" || e.Subject.ID != e.Subject.Scope {
		return s, refuse(e, s.Status, CodeOther, "it is not about a stop order")
	}
	if err := placed(e, s.Status, s.LastSeq); err != nil {
		return s, err
	}
	after, when := s, ""
	switch p := e.Payload.(type) {
	case *events.StopOrdered:
		if p.Mode != events.StopDrain && p.Mode != events.StopKill {
			return s, refuse(e, s.Status, CodePayload, "mode %q is not known", p.Mode)
		}
		if s.InForce() {
			when = caseHarder
			if p.Mode != events.StopKill || s.Order.Mode == events.StopKill {
				return s, refuse(e, s.Status, CodeIllegal, "an order to %s is in force already", s.Order.Mode)
			}
		}
		after.Order, after.Seq, after.By, after.At, after.LiftedBy = p, e.Seq, e.Subject.Actor, e.Time, ""
		after.Escalated = false
	case *events.StopEscalated:
		after.Escalated = true
	case *events.StopLifted:
		after.LiftedBy = e.Subject.Actor
	}
	if named, answers := names(e.Payload); answers && named != s.Seq {
		return s, refuse(e, s.Status, CodeFence, "it names order %d, the last is %d", named, s.Seq)
	}
	if _, drained := e.Payload.(*events.StopDrained); drained && s.Wants(events.StopKill) {
		return s, refuse(e, s.Status, CodeIllegal, "the order is to kill")
	}
	to, err := move(e, s.Status, when)
	if err != nil {
		return s, err
	}
	after.Status, after.LastSeq, after.Updated = to, e.Seq, e.Time
	return after, nil
}

// names is the order that an answer is about.
func names(payload any) (order uint64, answers bool) {
	switch p := payload.(type) {
	case *events.StopSeen:
		return p.Ordered, true
	case *events.StopDrained:
		return p.Ordered, true
	case *events.StopKilled:
		return p.Ordered, true
	case *events.StopConfirmed:
		return p.Ordered, true
	case *events.StopEscalated:
		return p.Ordered, true
	case *events.StopLifted:
		return p.Ordered, true
	}
	return 0, false
}
