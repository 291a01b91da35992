package alert

import (
	"fmt"
	"strings"

	"github.com/banksman/banksman/events"
)

// Status is where an alert stands.
type Status string

// The statuses. None is before the first episode.
const (
	None         Status = ""
	Raised       Status = "raised"
	Acknowledged Status = "acknowledged"
	Cleared      Status = "cleared"
)

// Row is one transition: in state From, the event On, in the case named by
// When, leads to To.
type Row struct {
	From Status
	On   events.Kind
	When string // empty when the event alone decides
	To   Status
}

// caseWorse is an update that raises the severity.
const caseWorse = "more severe"

// Table is every legal move.
var Table = []Row{
	{None, "alert.raised", "", Raised},
	{Cleared, "alert.raised", "", Raised},
	{Raised, "alert.updated", "", Raised},
	{Raised, "alert.updated", caseWorse, Raised},
	{Acknowledged, "alert.updated", "", Acknowledged},
	{Acknowledged, "alert.updated", caseWorse, Raised},
	{Raised, "alert.acknowledged", "", Acknowledged},
	{Raised, "alert.cleared", "", Cleared},
	{Acknowledged, "alert.cleared", "", Cleared},
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

// Diagram draws the rows in Mermaid's state notation, self-moves left out.
func Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, r := range Table {
		if r.From == r.To {
			continue
		}
		from, label := string(r.From), r.On.Verb()
		if r.From == None {
			from = "[*]"
		}
		if r.When != "" {
			label += ", " + r.When
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", from, r.To, label)
	}
	return b.String()
}
