package loops

import (
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/query"
)

// View shows a project.
func View(p loop.Project) query.LoopView {
	h := p.Loop.Holder
	v := query.LoopView{
		Project: p.Name, State: state(p), Supervisor: h.Actor, Session: h.Session, Host: h.Claim.Host, WorkDir: h.Claim.WorkDir,
		Rounds: p.Round.Number(), Turns: p.NextTurn() - 1, MaxRounds: h.Claim.MaxRounds,
	}
	switch {
	case p.Stop.InForce():
		o := p.Stop.Order
		v.Reason = "stopped by " + p.Stop.By + ": " + o.Reason
		v.Stop = &query.StopView{Mode: o.Mode, State: string(p.Stop.Status), By: p.Stop.By, Reason: o.Reason, Alert: o.Alert, At: p.Stop.At}
	case p.Loop.Status == loop.Halted:
		v.Reason = p.Loop.Halt.Reason
	}
	if p.Round.ID != "" {
		r := ViewRound(p.Round)
		v.Round = &r
	}
	return v
}

// state is the one word for where a project stands.
func state(p loop.Project) string {
	switch {
	case p.Stop.Status == loop.Confirmed:
		return query.LoopStopped
	case p.Stop.InForce():
		return query.LoopStopping
	case p.Loop.Status == loop.Halted:
		return query.LoopHalted
	case p.Loop.Holder.Seq == 0:
		return query.LoopFree
	case p.Round.Status == loop.Running:
		return query.LoopRunning
	}
	return query.LoopResting
}

// ViewRound shows a round.
func ViewRound(r loop.Round) query.RoundView {
	v := query.RoundView{Round: r.ID, Project: r.Project, Number: r.Number(), State: string(r.Status), Supervisor: r.Actor, StartedAt: r.StartedAt, EndedAt: r.EndedAt}
	if r.Start != nil {
		v.Program = r.Start.Program
	}
	if e := r.End; e != nil {
		v.Outcome, v.Reason, v.Failure, v.Error = e.Outcome, e.Reason, e.Failure, e.Error
		v.ExitCode, v.Signal, v.DurationMS, v.Survivors = e.ExitCode, e.Signal, e.DurationMS, e.Survivors
		v.OutputBytes, v.Chunks = e.Stdout.Bytes+e.Stderr.Bytes, e.Stdout.Chunks+e.Stderr.Chunks
	}
	switch {
	case r.Salvage != nil:
		s := r.Salvage
		v.Salvage = &query.SalvageView{Ref: s.Ref, Commit: s.Commit, Files: s.Files, Bytes: s.Bytes, Nested: s.Nested, Missed: s.Missed}
	case r.SalvageFailed != nil:
		v.Salvage = &query.SalvageView{Error: r.SalvageFailed.Reason}
	}
	return v
}
