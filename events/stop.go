package events

var stopKinds = []Def{
	define[StopOrdered]("stop.ordered", 1, "a person or the monitor had ordered a project to stop, or to stop harder"),
	define[StopSeen]("stop.seen", 1, "the project's supervisor had read the order and begun to act on it"),
	define[StopDrained]("stop.drained", 1, "the running round had ended by itself, or none had been running"),
	define[StopKilled]("stop.killed", 1, "the supervisor had ended the running round, or none had been running"),
	define[StopConfirmed]("stop.confirmed", 1, "nothing of the project had been left running and its leftovers had been seen to"),
	define[StopEscalated]("stop.escalated", 1, "the order had not been confirmed in time, and the monitor had said so"),
	define[StopLifted]("stop.lifted", 1, "a person had allowed the project to run again"),
}

// Modes of a stop order, the harder one last.
const (
	StopDrain = "drain" // after the running round
	StopKill  = "kill"  // now
)

// StopOrdered stops a project until the order is lifted, across restarts.
type StopOrdered struct {
	// Mode is "drain" to let the running round end, "kill" to end it.
	Mode string `json:"mode"`
	// Reason is why, for people.
	Reason string `json:"reason"`
	// Alert is the id of the alert that made the monitor order it.
	Alert string `json:"alert,omitempty"`

	Extra Extra `json:",embed"`
}

// StopSeen acknowledges an order.
type StopSeen struct {
	// Ordered is the sequence of the order.
	Ordered uint64 `json:"ordered"`
	// Round is the round that was running, empty for none.
	Round string `json:"round,omitempty"`

	Extra Extra `json:",embed"`
}

// StopDrained says that the loop has come to rest by itself.
type StopDrained struct {
	// Ordered is the sequence of the order.
	Ordered uint64 `json:"ordered"`
	// Round is the round that was let end, empty for none.
	Round string `json:"round,omitempty"`

	Extra Extra `json:",embed"`
}

// StopKilled says that the loop was brought to rest.
type StopKilled struct {
	// Ordered is the sequence of the order.
	Ordered uint64 `json:"ordered"`
	// Round is the round that was ended, empty for none.
	Round string `json:"round,omitempty"`
	// Survivors counts its processes that could not be ended.
	Survivors int `json:"survivors,omitzero"`

	Extra Extra `json:",embed"`
}

// StopConfirmed says that the order is carried out.
type StopConfirmed struct {
	// Ordered is the sequence of the order.
	Ordered uint64 `json:"ordered"`

	Extra Extra `json:",embed"`
}

// StopEscalated says that an order is not carried out as it should be. A
// harder order may follow.
type StopEscalated struct {
	// Ordered is the sequence of the order.
	Ordered uint64 `json:"ordered"`
	// State is how far the order had come: "ordered", "seen", "drained" or
	// "killed".
	State string `json:"state"`
	// AfterS is how many seconds after the order this is.
	AfterS int64 `json:"after_s"`
	// Reason is the sentence for people.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}

// StopLifted ends an order.
type StopLifted struct {
	// Ordered is the sequence of the order.
	Ordered uint64 `json:"ordered"`
	// Reason is why, for people.
	Reason string `json:"reason,omitempty"`

	Extra Extra `json:",embed"`
}
