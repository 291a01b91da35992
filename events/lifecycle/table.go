package lifecycle

import (
	"fmt"
	"strings"

	"github.com/banksman/banksman/events"
)

// Row is one transition: in state From, the event On, in the case named by
// When, leads to To.
type Row struct {
	From Status
	On   events.Kind
	When string // empty when the event alone decides
	To   Status
}

// Cases that depend on more than the kind.
const (
	caseEnough    = "enough approvals"
	caseMore      = "more approvals needed"
	caseSucceeded = "exit status 0"
	caseFailed    = "another exit status or a signal"
	caseTimedOut  = "time limit"
	caseRetry     = "attempts left"
	caseLate      = "late resolution"
	caseLateDone  = "late result of the last attempt"
)

// Table is every legal move of a job.
var Table = []Row{
	{None, "job.proposed", "", Proposed},

	{Proposed, "job.resolved", "", Proposed},
	{Pending, "job.resolved", caseLate, Pending},
	{Proposed, "job.declined", "", Proposed},
	{Pending, "job.declined", "", Pending},
	{Approved, "job.declined", "", Approved},
	{RetryWait, "job.declined", "", RetryWait},

	{Proposed, "job.assessed", "", Pending},
	{Pending, "job.assessed", "", Pending},
	{Proposed, "job.approved", caseEnough, Approved},
	{Pending, "job.approved", caseEnough, Approved},
	{Pending, "job.approved", caseMore, Pending},
	{Proposed, "job.denied", "", Denied},
	{Pending, "job.denied", "", Denied},

	{Proposed, "job.expired", "", Expired},
	{Pending, "job.expired", "", Expired},
	{Approved, "job.expired", "", Expired},
	{RetryWait, "job.expired", "", Expired},

	{Approved, "job.started", "", Running},
	{RetryWait, "job.started", "", Running},
	{Approved, "job.handed_over", "", HandedOver},
	{HandedOver, "job.reported", "", HandedOver},
	{Approved, "job.dead_lettered", "", DeadLetter},
	{RetryWait, "job.dead_lettered", "", DeadLetter},

	{Running, "job.finished", caseSucceeded, Succeeded},
	{Running, "job.finished", caseFailed, Failed},
	{Running, "job.finished", caseTimedOut, TimedOut},
	{Running, "job.finished", caseRetry, RetryWait},
	{Running, "job.lapsed", "", Lost},
	{Running, "job.lapsed", caseRetry, RetryWait},
	{Lost, "job.finished", caseLateDone, Lost},

	{Proposed, "job.cancelled", "", Cancelled},
	{Pending, "job.cancelled", "", Cancelled},
	{Approved, "job.cancelled", "", Cancelled},
	{RetryWait, "job.cancelled", "", Cancelled},
	{Running, "job.cancelled", "", Cancelled},

	{Approved, "job.revoked", "", Revoked},
	{RetryWait, "job.revoked", "", Revoked},
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

// Diagram draws the table in Mermaid's state notation, one arrow a pair of
// states, self-moves left out.
func Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	name := func(s Status) string {
		if s == None {
			return "[*]"
		}
		return string(s)
	}
	seen := map[string]bool{}
	for _, r := range Table {
		if r.From == r.To {
			continue
		}
		label := r.On.Verb()
		if r.When != "" {
			label += ", " + r.When
		}
		line := fmt.Sprintf("    %s --> %s: %s\n", name(r.From), name(r.To), label)
		if !seen[line] {
			seen[line] = true
			b.WriteString(line)
		}
	}
	for _, s := range Statuses {
		if s.Final() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	return b.String()
}
