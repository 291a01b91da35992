package loop

import (
	"fmt"
	"strings"

	"github.com/banksman/banksman/events"
)

// Status is where one of the machines stands.
type Status string

// The statuses. None is where each machine begins, and where a stop order ends.
const (
	None Status = ""

	// Of the loop.
	Held   Status = "held"   // a session runs it
	Free   Status = "free"   // nobody does
	Halted Status = "halted" // it has come to an end of its own

	// Of the newest round.
	Running Status = "running"
	Ended   Status = "ended"

	// Of the stop order.
	Ordered   Status = "ordered"
	Seen      Status = "seen"
	Drained   Status = "drained"
	Killed    Status = "killed"
	Confirmed Status = "confirmed"
)

// Row is one transition: in state From, the event On, in the case named by
// When, leads to To. The family of On says which machine moves.
type Row struct {
	From Status
	On   events.Kind
	When string // empty when the event alone decides
	To   Status
}

// Cases that depend on more than the kind.
const (
	caseHeld   = "a session holds it"
	caseNobody = "nobody holds it"
	caseHarder = "harder"
)

// Table is every legal move.
var Table = []Row{
	{None, "loop.claimed", "", Held},
	{Free, "loop.claimed", "", Held},
	{Held, "loop.claimed", "", Held},
	{Halted, "loop.claimed", "", Halted},
	{Held, "loop.released", "", Free},
	{Halted, "loop.released", "", Halted},
	{Held, "loop.halted", "", Halted},
	{Halted, "loop.start_requested", caseHeld, Held},
	{Halted, "loop.start_requested", caseNobody, Free},

	{None, "round.started", "", Running},
	{Ended, "round.started", "", Running},
	{Running, "round.ended", "", Ended},
	{Ended, "work.salvaged", "", Ended},
	{Ended, "work.salvage_failed", "", Ended},

	{None, "stop.ordered", "", Ordered},
	{Ordered, "stop.ordered", caseHarder, Ordered},
	{Seen, "stop.ordered", caseHarder, Ordered},
	{Ordered, "stop.seen", "", Seen},
	{Seen, "stop.drained", "", Drained},
	{Seen, "stop.killed", "", Killed},
	{Drained, "stop.confirmed", "", Confirmed},
	{Killed, "stop.confirmed", "", Confirmed},
	{Ordered, "stop.escalated", "", Ordered},
	{Seen, "stop.escalated", "", Seen},
	{Drained, "stop.escalated", "", Drained},
	{Killed, "stop.escalated", "", Killed},
	{Ordered, "stop.lifted", "", None},
	{Seen, "stop.lifted", "", None},
	{Drained, "stop.lifted", "", None},
	{Killed, "stop.lifted", "", None},
	{Confirmed, "stop.lifted", "", None},
}

// next looks a move up. The second result is false when no row allows it.
func next(from Status, on events.Kind, when string) (Status, bool) {
	for _, r := range Table {
		if r.From == from && r.On == on && r.When == when {
			return r.To, true
		}
	}
	return from, false
}

// Machine is the name of the machine that a kind moves: "loop", "round" or
// "stop"; empty for any other kind.
func Machine(k events.Kind) string {
	switch f := k.Family(); f {
	case "loop", "round", "stop":
		return f
	case "work":
		return "round"
	}
	return ""
}

// Diagram draws one machine in Mermaid's state notation, self-moves left out.
func Diagram(machine string) string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	name := func(s Status) string {
		if s == None {
			return "[*]"
		}
		return string(s)
	}
	for _, r := range Table {
		if r.From == r.To || Machine(r.On) != machine {
			continue
		}
		label := r.On.Verb()
		if r.When != "" {
			label += ", " + r.When
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", name(r.From), name(r.To), label)
	}
	return b.String()
}
