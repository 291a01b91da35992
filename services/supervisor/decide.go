package supervisor

import (
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
)

// identity is whose rounds these are.
type identity struct {
	actor   string
	session string
	host    string
}

// doing is what a project needs next.
type doing int

const (
	doWait      doing = iota // for an event, or until a moment
	doClaim                  // say that the project is ours
	doInterrupt              // say that a round has no process any more
	doSee                    // acknowledge a stop order
	doSettle                 // say that nothing runs under it
	doConfirm                // say that it is carried out
	doHalt                   // say that the loop has done its rounds
	doRound                  // begin a round
)

// step is the next thing to do for a project.
type step struct {
	do     doing
	until  time.Time // of doWait: look again then, zero for an event only
	reason string    // of doWait, for people; empty for an ordinary rest
}

// facts are what this supervisor knows beside the log.
type facts struct {
	now time.Time
	// silent is how long the holder's session has not been heard while this
	// supervisor was connected; negative when it cannot know.
	silent time.Duration
}

// next decides what a project needs, when no round of it runs here.
func next(p loop.Project, me identity, cfg Project, f facts) step {
	switch {
	case p.Unreadable:
		return step{reason: "the log holds events about it that this version cannot read; use a newer banksman"}
	case !p.Loop.Holder.Is(me.actor, me.session):
		return claimOrWait(p.Loop, me, cfg, f)
	case p.Round.Status == loop.Running:
		return step{do: doInterrupt}
	case p.Stop.InForce():
		return obey(p.Stop)
	case p.Loop.Status == loop.Halted:
		return step{reason: "halted: " + p.Loop.Halt.Reason + "; 'banksman loop start " + p.Name + "' starts it again"}
	case cfg.MaxRounds > 0 && p.NextTurn() > cfg.MaxRounds:
		return step{do: doHalt}
	}
	if due := p.Round.EndedAt.Add(time.Duration(cfg.RestartDelayS) * time.Second); p.Round.Status == loop.Ended && f.now.Before(due) {
		return step{until: due}
	}
	return step{do: doRound}
}

// claimOrWait takes a project that nobody alive holds. The lock on the work
// folder shows that an earlier session of this actor in this place is gone.
func claimOrWait(l loop.Loop, me identity, cfg Project, f facts) step {
	h := l.Holder
	here := h.Actor == me.actor && h.Claim.Host == me.host && h.Claim.WorkDir == cfg.WorkDir
	lease := time.Duration(h.Claim.LeaseS) * time.Second
	if h.Seq == 0 || here || f.silent >= lease {
		return step{do: doClaim}
	}
	s := step{reason: fmt.Sprintf("supervisor %s on %s holds it", h.Actor, h.Claim.Host)}
	if f.silent >= 0 {
		s.until = f.now.Add(lease - f.silent)
	}
	return s
}

// obey answers a stop order when nothing runs.
func obey(s loop.Stop) step {
	switch s.Status {
	case loop.Ordered:
		return step{do: doSee}
	case loop.Seen:
		return step{do: doSettle}
	case loop.Drained, loop.Killed:
		return step{do: doConfirm}
	}
	return step{reason: "stopped by " + s.By + ": " + s.Order.Reason}
}

// settled says how a stop order came to be fulfilled. The round is the one
// that was running when the order came.
func settled(p loop.Project) (events.Kind, any) {
	round, survivors := "", 0
	if p.Round.Status == loop.Ended && p.Round.EndedSeq > p.Stop.Seq {
		round, survivors = p.Round.ID, p.Round.End.Survivors
	}
	if p.Stop.Wants(events.StopKill) {
		return "stop.killed", &events.StopKilled{Ordered: p.Stop.Seq, Round: round, Survivors: survivors}
	}
	return "stop.drained", &events.StopDrained{Ordered: p.Stop.Seq, Round: round}
}

// verdict is what the log says of a round that runs here.
type verdict struct {
	see bool   // an order waits to be acknowledged
	end string // why the round must end, empty when it may go on
}

// judge decides about the running round.
func judge(p loop.Project, me identity, round string) verdict {
	h := p.Loop.Holder
	switch {
	case !h.Is(me.actor, me.session):
		who := "nobody"
		if h.Seq != 0 {
			who = h.Actor + " on " + h.Claim.Host
		}
		return verdict{end: "the claim was lost to " + who}
	case p.Round.ID != round:
		return verdict{end: "the log does not know the round"}
	case !p.Stop.InForce():
		return verdict{}
	}
	v := verdict{see: p.Stop.Status == loop.Ordered}
	if p.Stop.Wants(events.StopKill) {
		v.end = fmt.Sprintf("stop ordered by %s: %s", p.Stop.By, p.Stop.Order.Reason)
	}
	return v
}
