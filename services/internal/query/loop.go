package query

import "time"

// Subjects of the questions about projects, answered by the supervisor.
const (
	Loops  = "bmq.loop.status" // LoopsRequest -> LoopList
	Rounds = "bmq.round.list"  // RoundsRequest -> RoundList
	Round  = "bmq.round.get"   // RoundRequest -> RoundView
)

// LoopsRequest asks for one project, or for all when it names none.
type LoopsRequest struct {
	Project string `json:"project,omitempty"`
}

// LoopList is the answer, by name.
type LoopList struct {
	Loops []LoopView `json:"loops"`
}

// States of a loop, for people.
const (
	LoopRunning  = "running"  // a round runs
	LoopResting  = "resting"  // between two rounds
	LoopStopping = "stopping" // an order is being carried out
	LoopStopped  = "stopped"  // an order is in force and carried out
	LoopHalted   = "halted"   // it has come to an end of its own
	LoopFree     = "free"     // no supervisor holds it
)

// LoopView is one project.
type LoopView struct {
	Project    string     `json:"project"`
	State      string     `json:"state"`
	Reason     string     `json:"reason,omitempty"` // why it is not running, as far as anybody knows
	Supervisor string     `json:"supervisor,omitempty"`
	Session    string     `json:"session,omitempty"`
	Host       string     `json:"host,omitempty"`
	WorkDir    string     `json:"work_dir,omitempty"`
	Rounds     int        `json:"rounds"` // begun in the project's life
	Turns      int        `json:"turns"`  // begun since the loop was last started
	MaxRounds  int        `json:"max_rounds,omitempty"`
	Round      *RoundView `json:"round,omitempty"` // the newest
	Stop       *StopView  `json:"stop,omitempty"`  // the order in force
}

// StopView is a stop order in force.
type StopView struct {
	Mode   string    `json:"mode"`
	State  string    `json:"state"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Alert  string    `json:"alert,omitempty"`
	At     time.Time `json:"at"`
}

// RoundsRequest asks for a project's rounds, newest first.
type RoundsRequest struct {
	Project string `json:"project"`
	Limit   int    `json:"limit,omitempty"`  // 0 for the default of 20; at most 200
	Before  int    `json:"before,omitempty"` // a number: list those below it
}

// RoundList is the answer.
type RoundList struct {
	Rounds []RoundView `json:"rounds"`
	More   bool        `json:"more,omitzero"` // there are older ones
}

// RoundRequest asks for one round by its id.
type RoundRequest struct {
	Round string `json:"round"`
}

// RoundView is one round.
type RoundView struct {
	Round       string       `json:"round"`
	Project     string       `json:"project"`
	Number      int          `json:"number"`
	State       string       `json:"state"`             // running or ended
	Outcome     string       `json:"outcome,omitempty"` // see events.RoundEnded
	Reason      string       `json:"reason,omitempty"`
	Failure     string       `json:"failure,omitempty"`
	Error       string       `json:"error,omitempty"`
	ExitCode    int          `json:"exit_code"`
	Signal      string       `json:"signal,omitempty"`
	Program     string       `json:"program"`
	Supervisor  string       `json:"supervisor"` // stores the round's output under this name
	StartedAt   time.Time    `json:"started_at"`
	EndedAt     time.Time    `json:"ended_at,omitzero"`
	DurationMS  int64        `json:"duration_ms"`
	OutputBytes int64        `json:"output_bytes"`
	Chunks      int          `json:"chunks,omitzero"` // of output that were stored, once it has ended
	Survivors   int          `json:"survivors,omitzero"`
	Salvage     *SalvageView `json:"salvage,omitempty"`
}

// SalvageView is what became of a round's leftovers.
type SalvageView struct {
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit,omitempty"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Nested int    `json:"nested,omitzero"`
	Missed int    `json:"missed,omitzero"`
	Error  string `json:"error,omitempty"` // why nothing was kept
}
