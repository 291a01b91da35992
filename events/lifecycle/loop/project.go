package loop

import (
	"time"

	"github.com/banksman/banksman/events"
)

// Project is everything that the events of one project say, as far as it
// matters for what comes next.
type Project struct {
	Name  string
	Loop  Loop
	Round Round // the newest one
	Stop  Stop

	Unreadable bool // an event of a version that this reader does not know
}

// Loop is who runs the project.
type Loop struct {
	Status Status
	Holder Holder // of the last claim; the zero value when nobody holds it

	Halt      *events.LoopHalted // the last one
	HaltedSeq uint64
	// RequestedSeq is the last request to start again: rounds are counted
	// from there.
	RequestedSeq uint64

	LastSeq   uint64 // last event of the family, refused ones included
	UpdatedAt time.Time
}

// Holder is the session that may run rounds.
type Holder struct {
	Actor   string
	Session string
	Seq     uint64 // of its claim, the fence
	At      time.Time
	Claim   events.LoopClaimed
}

// Is says whether a session is the holder.
func (h Holder) Is(actor, session string) bool {
	return h.Seq != 0 && h.Actor == actor && h.Session == session
}

// Round is one run of the agent.
type Round struct {
	ID      string
	Project string
	Status  Status
	Actor   string // whose round it is

	Start      *events.RoundStarted
	StartedSeq uint64
	StartedAt  time.Time
	End        *events.RoundEnded
	EndedSeq   uint64
	EndedAt    time.Time

	Salvage       *events.WorkSalvaged
	SalvageFailed *events.WorkSalvageFailed

	LastSeq uint64 // last event of the family round about it
	WorkSeq uint64 // last event of the family work about it
}

// Number is the round's number, 0 when there was none.
func (r Round) Number() int {
	if r.Start == nil {
		return 0
	}
	return r.Start.Number
}

// Settled says that the round's leftovers were spoken of, or there were none
// to speak of as far as the events know.
func (r Round) Settled() bool { return r.Salvage != nil || r.SalvageFailed != nil }

// Stop is the order that is in force, and its last one otherwise.
type Stop struct {
	Status Status // None when no order is in force
	Order  *events.StopOrdered
	Seq    uint64 // of the order
	By     string // the actor who ordered
	At     time.Time

	Escalated bool // somebody has said that it takes too long

	LiftedBy string // of the last order that was lifted
	LastSeq  uint64
	Updated  time.Time
}

// InForce says whether nothing new may start.
func (s Stop) InForce() bool { return s.Status != None }

// Wants says whether an order of this mode is in force.
func (s Stop) Wants(mode string) bool { return s.InForce() && s.Order != nil && s.Order.Mode == mode }

// NextTurn is the place of the next round since the loop was last asked to
// start, from 1.
func (p Project) NextTurn() int {
	if p.Round.Start == nil || p.Round.StartedSeq < p.Loop.RequestedSeq {
		return 1
	}
	return p.Round.Start.Turn + 1
}

// Skip passes over a stored event that may not be believed: it keeps its
// place, so that whoever appends next names the right one.
func (p Project) Skip(s events.Subject, seq uint64) Project {
	if s.Scope != p.Name {
		return p
	}
	switch {
	case s.Family == "loop" && s.ID == p.Name:
		p.Loop.LastSeq = max(p.Loop.LastSeq, seq)
	case s.Family == "stop" && s.ID == p.Name:
		p.Stop.LastSeq = max(p.Stop.LastSeq, seq)
	default:
		p.Round = p.Round.Skip(s, seq)
	}
	return p
}

// Skip passes over a stored event about the round that changes nothing.
func (r Round) Skip(s events.Subject, seq uint64) Round {
	switch {
	case s.ID != r.ID:
	case s.Family == "round":
		r.LastSeq = max(r.LastSeq, seq)
	case s.Family == "work":
		r.WorkSeq = max(r.WorkSeq, seq)
	}
	return r
}
