package supervisor

import (
	"errors"
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/proc"
)

// Reasons in the log.
const (
	reasonStopped     = "supervisor stopped"
	reasonInterrupted = "the supervisor died while the round ran; its processes were ended"
)

// Outcomes of a round.
const (
	outcomeSucceeded   = "succeeded"
	outcomeFailed      = "failed"
	outcomeTimedOut    = "timed_out"
	outcomeStopped     = "stopped"
	outcomeInterrupted = "interrupted"
)

// codeMaxRounds is the halt of a loop that has had its rounds.
const codeMaxRounds = "max_rounds"

// notExecuted is the end of a round whose agent could not be started.
func notExecuted(started uint64, err error) *events.RoundEnded {
	return &events.RoundEnded{Started: started, Outcome: outcomeFailed, ExitCode: -1, Error: err.Error()}
}

// interrupted is the end of a round that nobody saw end.
func interrupted(started uint64) *events.RoundEnded {
	return &events.RoundEnded{Started: started, Outcome: outcomeInterrupted, Reason: reasonInterrupted, ExitCode: -1}
}

// ended describes how the agent's tree ended.
func ended(started uint64, o proc.Outcome, err error) *events.RoundEnded {
	e := &events.RoundEnded{
		Started: started, ExitCode: o.ExitCode, Signal: o.Signal, DurationMS: o.Wall.Milliseconds(), UserMS: o.User.Milliseconds(),
		SystemMS: o.System.Milliseconds(), MaxRSSBytes: o.MaxRSSBytes, Means: o.Means, LeftBehind: o.LeftBehind, Survivors: len(o.Survivors),
	}
	switch {
	case o.TimedOut:
		e.Outcome = outcomeTimedOut
	case o.Cancelled:
		e.Outcome, e.Reason = outcomeStopped, o.CancelReason
	case errors.Is(err, proc.ErrStewardLost):
		e.Outcome, e.Error = outcomeFailed, err.Error()
	case o.ExitCode == 0:
		e.Outcome = outcomeSucceeded
	default:
		e.Outcome = outcomeFailed
	}
	return e
}

// halt says that the loop has had its rounds.
func halt(p loop.Project, cfg Project) *events.LoopHalted {
	return &events.LoopHalted{
		Claim: p.Loop.Holder.Seq, Code: codeMaxRounds,
		Reason: fmt.Sprintf("it has had its %d rounds", cfg.MaxRounds),
	}
}
