package loop_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
)

// world stores events as the stream would and folds each one.
type world struct {
	p    loop.Project
	seq  uint64
	now  time.Time
	last map[string]uint64 // by family and id
}

func newWorld() *world {
	return &world{now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), last: map[string]uint64{}}
}

const project = "demo"

// store folds an event of an actor's session about an id.
func (w *world) store(kind events.Kind, id, who string, payload any) error {
	actor, session, _ := strings.Cut(who, "/")
	w.seq++
	w.now = w.now.Add(time.Second)
	key := kind.Family() + "." + id
	e := events.Event{
		Seq: w.seq, Time: w.now, Subject: events.For(kind, project, id, actor), Kind: kind, Version: 1,
		ID: events.ID{Actor: actor, Session: session, N: 1}, Expect: w.last[key], Payload: payload,
	}
	w.last[key] = w.seq
	var err error
	w.p, err = loop.Apply(w.p, e)
	return err
}

// do stores what a word says, as well-formed as the project permits. Words
// are "<who> <deed>"; who is an actor and a session.
func (w *world) do(line string) error {
	who, deed, _ := strings.Cut(line, " ")
	p := w.p
	about := func(kind events.Kind, payload any) error { return w.store(kind, project, who, payload) }
	switch deed {
	case "claims":
		return about("loop.claimed", &events.LoopClaimed{Host: "m", WorkDir: "/w", LeaseS: 30})
	case "releases":
		return about("loop.released", &events.LoopReleased{Claim: p.Loop.Holder.Seq})
	case "halts":
		return about("loop.halted", &events.LoopHalted{Claim: p.Loop.Holder.Seq, Code: "max_rounds"})
	case "restarts":
		return about("loop.start_requested", &events.LoopStartRequested{Halted: p.Loop.HaltedSeq})
	case "begins":
		n := p.Round.Number() + 1
		for w.last["round."+events.RoundID(project, n)] != 0 { // a refused start has used the number up
			n++
		}
		return w.store("round.started", events.RoundID(project, n), who, &events.RoundStarted{Claim: p.Loop.Holder.Seq, Number: n, Turn: p.NextTurn()})
	case "ends":
		return w.store("round.ended", p.Round.ID, who, &events.RoundEnded{Started: p.Round.StartedSeq, Outcome: "succeeded"})
	case "salvages":
		return w.store("work.salvaged", p.Round.ID, who, &events.WorkSalvaged{Ref: "r"})
	case "fails_to_salvage":
		return w.store("work.salvage_failed", p.Round.ID, who, &events.WorkSalvageFailed{Code: "c"})
	case "orders_drain":
		return about("stop.ordered", &events.StopOrdered{Mode: events.StopDrain})
	case "orders_kill":
		return about("stop.ordered", &events.StopOrdered{Mode: events.StopKill})
	case "sees":
		return about("stop.seen", &events.StopSeen{Ordered: p.Stop.Seq})
	case "drains":
		return about("stop.drained", &events.StopDrained{Ordered: p.Stop.Seq})
	case "kills":
		return about("stop.killed", &events.StopKilled{Ordered: p.Stop.Seq})
	case "confirms":
		return about("stop.confirmed", &events.StopConfirmed{Ordered: p.Stop.Seq})
	case "lifts":
		return about("stop.lifted", &events.StopLifted{Ordered: p.Stop.Seq})
	}
	if deed == "escalates" {
		return about("stop.escalated", &events.StopEscalated{Ordered: p.Stop.Seq})
	}
	return fmt.Errorf("no deed %q", deed)
}

// deeds are every word that do knows.
var deeds = []string{
	"claims", "releases", "halts", "restarts", "begins", "ends", "salvages", "fails_to_salvage",
	"orders_drain", "orders_kill", "sees", "drains", "kills", "confirms", "lifts", "escalates",
}

// told does lines and returns the first refusal that was not expected; a line
// that ends in "!" must be refused.
func (w *world) told(story string) error {
	for _, line := range strings.Split(story, ";") {
		line, bad := strings.CutSuffix(strings.TrimSpace(line), "!")
		before := w.p
		err := w.do(line)
		var r *loop.Refusal
		switch {
		case bad && !errors.As(err, &r):
			return fmt.Errorf("%q was not refused: %v", line, err)
		case bad && w.moved(before):
			return fmt.Errorf("%q was refused and yet moved something", line)
		case !bad && err != nil:
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	return nil
}

// moved says whether anything but positions differs.
func (w *world) moved(before loop.Project) bool {
	after := w.p
	after.Loop.LastSeq, after.Stop.LastSeq, after.Round.LastSeq, after.Round.WorkSeq = before.Loop.LastSeq, before.Stop.LastSeq, before.Round.LastSeq, before.Round.WorkSeq
	after.Name = before.Name
	return !reflect.DeepEqual(after, before)
}
