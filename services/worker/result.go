package worker

import (
	"errors"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/proc"
)

// result is how an attempt ended.
type result struct {
	finished events.JobFinished
	stopped  bool              // called off, by the worker itself or by who asked
	asked    lifecycle.Request // who asked, the zero value for the worker itself
	class    class
}

// payload is what to publish: a cancellation when the attempt was called off,
// the result otherwise.
func (r result) payload(started uint64, actor string) (*events.JobFinished, *events.JobCancelled) {
	f := r.finished
	if r.stopped {
		c := &events.JobCancelled{Started: started, By: actor, Reason: reasonStopped, Receipt: events.Receipt{
			ExitCode: f.ExitCode, Signal: f.Signal, DurationMS: f.DurationMS, Means: f.Means,
			LeftBehind: f.LeftBehind, Killed: f.Killed, Survivors: f.Survivors, SurvivorPIDs: f.SurvivorPIDs, Stdout: f.Stdout, Stderr: f.Stderr,
		}}
		if r.asked.Seq > 0 {
			c.By, c.Reason, c.Request = r.asked.By, r.asked.Reason, r.asked.Seq
		}
		return nil, c
	}
	f.Started = started
	return &f, nil
}

// namedSurvivors is how many of the processes that could not be ended are named.
const namedSurvivors = 16

// notStarted is the result of a program that was not executed: 127 where
// something is missing and 126 otherwise, as shells say it.
func notStarted(err error) result {
	code := 126
	if errors.Is(err, &proc.StartError{Code: proc.CodeTooLate}) {
		return result{class: classFenced, finished: events.JobFinished{Outcome: "failed", ExitCode: code, Error: reasonFenced + "; " + err.Error()}}
	}
	for _, missing := range []string{proc.CodeNoProgram, proc.CodeNoInterpreter, proc.CodeNoDir} {
		if errors.Is(err, &proc.StartError{Code: missing}) {
			code = 127
		}
	}
	as := classStart
	if errors.Is(err, &proc.StartError{Code: proc.CodeDigestChanged}) || errors.Is(err, &proc.StartError{Code: proc.CodeDirChanged}) {
		as = classChanged
	}
	return result{class: as, finished: events.JobFinished{Outcome: "failed", ExitCode: code, Error: err.Error()}}
}

// ended is the result of a program that ran. Ending is why this worker ended
// it, if it did.
func ended(o proc.Outcome, waitErr error, ending string) result {
	f := events.JobFinished{
		ExitCode: o.ExitCode, Signal: o.Signal,
		DurationMS: o.Wall.Milliseconds(), UserMS: o.User.Milliseconds(), SystemMS: o.System.Milliseconds(),
		MaxRSSBytes: o.MaxRSSBytes, Means: o.Means, LeftBehind: o.LeftBehind, Killed: o.Killed,
		Survivors: len(o.Survivors), SurvivorPIDs: o.Survivors[:min(len(o.Survivors), namedSurvivors)],
	}
	if waitErr != nil {
		f.Error = waitErr.Error()
	}
	switch {
	case o.Fenced, o.Cancelled && ending == reasonFenced:
		f.Outcome, f.Error = "failed", reasonFenced
		return result{finished: f, class: classFenced}
	case o.Cancelled && (ending == reasonAsked || ending == reasonHurried):
		return result{finished: f, stopped: true}
	case o.Cancelled:
		return result{finished: f, stopped: true, class: classStopped}
	case o.TimedOut:
		f.Outcome = "timed_out"
		return result{finished: f, class: classTimeout}
	case o.Signal != "" || errors.Is(waitErr, proc.ErrStewardLost):
		f.Outcome = "failed"
		return result{finished: f, class: classSignal}
	case o.ExitCode != 0:
		f.Outcome = "failed"
		return result{finished: f, class: classExit}
	}
	f.Outcome = "succeeded"
	return result{finished: f}
}
