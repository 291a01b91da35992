package events

import "strconv"

var loopKinds = []Def{
	define[LoopClaimed]("loop.claimed", 1, "a supervisor's session had taken the project, and no other one held it alive"),
	define[LoopReleased]("loop.released", 1, "the holding session had ended its last round and let go of the project"),
	define[LoopHalted]("loop.halted", 1, "the loop had come to an end of its own, and only a person starts it again"),
	define[LoopStartRequested]("loop.start_requested", 1, "a person had asked for a halted loop to run again, counting its rounds from the first"),
}

// Everything about a project is stored under the project's name as scope. The
// families loop and stop have it as their id too, so that whoever appends
// names the last event of that family about the project; round and work have
// the round's id.

// MaxProjectBytes bounds a project's name, so that the ids of its rounds are
// names themselves.
const MaxProjectBytes = 24

// RoundID is the id of a project's round. As the first event about an id
// expects none before it, only one supervisor can begin it.
func RoundID(project string, number int) string { return project + "-" + strconv.Itoa(number) }

// LoopClaimed makes a session the holder of a project. Its sequence is the
// fence: every round of the holder names it.
type LoopClaimed struct {
	// Host is the name of the machine that runs the agent.
	Host string `json:"host"`
	// WorkDir is the absolute folder in which the agent works.
	WorkDir string `json:"work_dir"`
	// LeaseS is how many seconds of silence let another session take the
	// project.
	LeaseS int `json:"lease_s"`
	// MaxRounds is after how many rounds the loop halts; 0 for never.
	MaxRounds int `json:"max_rounds,omitzero"`
	// Version is banksman's.
	Version string `json:"version"`

	Extra Extra `json:",embed"`
}

// LoopReleased gives a project back.
type LoopReleased struct {
	// Claim is the sequence of the holder's claim.
	Claim uint64 `json:"claim"`
	// Reason is why, such as "supervisor stopped".
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}

// LoopHalted ends a loop that has done what it may do.
type LoopHalted struct {
	// Claim is the sequence of the holder's claim.
	Claim uint64 `json:"claim"`
	// Code is the stable name of the ground, such as "max_rounds".
	Code string `json:"code"`
	// Reason is the sentence for people.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}

// LoopStartRequested lets a halted loop run again.
type LoopStartRequested struct {
	// Halted is the sequence of the halt that it answers.
	Halted uint64 `json:"halted"`
	// Reason is the person's own words.
	Reason string `json:"reason,omitempty"`

	Extra Extra `json:",embed"`
}
