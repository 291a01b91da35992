package grant

import "github.com/banksman/banksman/events"

// Status is where a grant stands. That its time is over is no status: it
// follows from the moment that somebody asks about.
type Status string

// The statuses. None is before it was given.
const (
	None    Status = ""
	Live    Status = "live"
	Spent   Status = "spent"
	Revoked Status = "revoked"
)

// Row is one transition.
type Row struct {
	From Status
	On   events.Kind
	When string // empty when the event alone decides
	To   Status
}

// caseLast is the use that is the last one.
const caseLast = "last use"

// Table is every legal move.
var Table = []Row{
	{None, "grant.given", "", Live},
	{Live, "grant.used", "", Live},
	{Live, "grant.used", caseLast, Spent},
	{Live, "grant.revoked", "", Revoked},
	{Spent, "grant.revoked", "", Revoked},
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
