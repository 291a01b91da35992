package loop_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
)

// Stories of projects; a line with "!" is refused and moves nothing.
var stories = map[string]struct {
	tale             string
	loop, round, end loop.Status
}{
	"a round": {"s/1 claims; s/1 begins; s/1 ends; s/1 salvages; s/1 salvages; s/1 begins; s/1 releases", loop.Free, loop.Running, loop.None},
	"only the holder": {"s/1 begins!; s/1 claims; s/2 begins!; t/1 begins!; s/2 releases!; s/2 halts!; s/1 begins; s/1 begins!",
		loop.Held, loop.Running, loop.None},
	"taken over":            {"s/1 claims; s/1 begins; t/1 claims; s/1 begins!; t/1 begins!; t/1 ends; s/1 ends!; t/1 begins", loop.Held, loop.Running, loop.None},
	"another ends it":       {"s/1 claims; s/1 begins; u/1 ends!; s/2 ends", loop.Held, loop.Ended, loop.None},
	"halted":                {"s/1 claims; p restarts!; s/1 begins; s/1 ends; s/1 halts; s/1 begins!; s/2 claims; s/2 begins!; p restarts; s/2 begins", loop.Held, loop.Running, loop.None},
	"halted, let go":        {"s/1 claims; s/1 halts; s/1 releases; p restarts; s/2 claims; s/2 begins", loop.Held, loop.Running, loop.None},
	"drained":               {"s/1 claims; s/1 begins; p orders_drain; p orders_drain!; s/1 sees; s/1 ends; s/1 drains; s/1 confirms; s/1 begins!; p lifts; s/1 begins", loop.Held, loop.Running, loop.None},
	"killed":                {"s/1 claims; p orders_kill; p orders_kill!; p orders_drain!; s/1 sees; s/1 drains!; s/1 kills; s/1 confirms; p orders_kill!", loop.Held, loop.None, loop.Confirmed},
	"harder":                {"s/1 claims; p orders_drain; s/1 sees; p orders_kill; s/1 sees; s/1 kills; s/1 confirms", loop.Held, loop.None, loop.Confirmed},
	"harder at once":        {"s/1 claims; p orders_drain; p orders_kill; s/1 sees", loop.Held, loop.None, loop.Seen},
	"escalated":             {"s/1 claims; m escalates!; m orders_drain; m escalates; s/1 sees; m escalates; s/1 drains; m escalates; p lifts; p orders_kill; s/1 sees; s/1 kills; m escalates; s/1 confirms; m escalates!", loop.Held, loop.None, loop.Confirmed},
	"answers of others":     {"p orders_kill; s/1 sees!; s/1 claims; t/1 sees!; s/2 sees!; s/1 kills!; s/1 confirms!; s/1 sees", loop.Held, loop.None, loop.Seen},
	"begun before it knew":  {"s/1 claims; p orders_drain; s/1 begins; s/1 sees; s/1 ends; s/1 drains; s/1 confirms", loop.Held, loop.Ended, loop.Confirmed},
	"across a restart":      {"s/1 claims; p orders_kill; s/1 sees; s/2 claims; s/1 kills!; s/2 kills; s/2 confirms; s/2 releases; s/3 claims; s/3 begins!", loop.Held, loop.None, loop.Confirmed},
	"lifted early":          {"s/1 claims; p orders_drain; p lifts; s/1 sees!; p lifts!; s/1 begins", loop.Held, loop.Running, loop.None},
	"nothing to salvage of": {"s/1 claims; s/1 salvages!; s/1 begins; s/1 salvages!; s/1 ends; s/1 fails_to_salvage", loop.Held, loop.Ended, loop.None},
}

func TestStories(t *testing.T) {
	for name, s := range stories {
		w := newWorld()
		if err := w.told(s.tale); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if w.p.Loop.Status != s.loop || w.p.Round.Status != s.round || w.p.Stop.Status != s.end {
			t.Errorf("%s: loop %q, round %q, stop %q", name, w.p.Loop.Status, w.p.Round.Status, w.p.Stop.Status)
		}
	}
}

// Turns are counted from the last request to start, numbers for ever.
func TestTurnsAndNumbers(t *testing.T) {
	w := newWorld()
	if err := w.told("s/1 claims; s/1 begins; s/1 ends; s/1 begins; s/1 ends; s/2 claims"); err != nil || w.p.NextTurn() != 3 {
		t.Errorf("%v, next turn %d", err, w.p.NextTurn())
	}
	if err := w.told("s/2 halts; p restarts"); err != nil || w.p.NextTurn() != 1 || w.p.Round.Number() != 2 {
		t.Errorf("%v, next turn %d after round %d", err, w.p.NextTurn(), w.p.Round.Number())
	}
	if err := w.told("s/2 begins; s/2 ends"); err != nil || w.p.NextTurn() != 2 || w.p.Round.Number() != 3 {
		t.Errorf("%v, next turn %d after round %d", err, w.p.NextTurn(), w.p.Round.Number())
	}
}

// Every row is taken by some story, so none is there for nothing.
func TestEveryRowIsTaken(t *testing.T) {
	taken := map[loop.Row]bool{}
	for _, s := range stories {
		w := newWorld()
		for _, line := range strings.Split(s.tale, ";") {
			before := w.p
			line = strings.TrimSuffix(strings.TrimSpace(line), "!")
			if w.do(line) != nil {
				continue
			}
			for _, r := range loop.Table {
				from, to := status(before, r.On), status(w.p, r.On)
				if r.From == from && r.To == to && verbOf[strings.Fields(line)[1]] == r.On {
					taken[r] = true
				}
			}
		}
	}
	for _, r := range loop.Table {
		if !taken[r] && r.On != "stop.lifted" {
			t.Errorf("row %v was never taken", r)
		}
	}
}

// verbOf is the kind that a deed stores.
var verbOf = map[string]events.Kind{
	"claims": "loop.claimed", "releases": "loop.released", "halts": "loop.halted", "restarts": "loop.start_requested", "begins": "round.started",
	"ends": "round.ended", "salvages": "work.salvaged", "fails_to_salvage": "work.salvage_failed", "orders_drain": "stop.ordered", "orders_kill": "stop.ordered",
	"sees": "stop.seen", "drains": "stop.drained", "kills": "stop.killed", "confirms": "stop.confirmed", "lifts": "stop.lifted", "escalates": "stop.escalated",
}

func status(p loop.Project, k events.Kind) loop.Status {
	switch loop.Machine(k) {
	case "loop":
		return p.Loop.Status
	case "stop":
		return p.Stop.Status
	}
	return p.Round.Status
}

// Whatever is stored, the rules hold after each event.
func TestRulesHoldWhateverIsStored(t *testing.T) {
	actors := []string{"s/1", "s/2", "t/1", "p"}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			before := w.p
			line := rapid.SampledFrom(actors).Draw(t, "who") + " " + rapid.SampledFrom(deeds).Draw(t, "deed")
			err := w.do(line)
			var refused *loop.Refusal
			if err != nil && !errors.As(err, &refused) {
				if before.Round.ID == "" { // about no round: not an event of the world
					continue
				}
				t.Fatalf("%s: untyped %v", line, err)
			}
			if err != nil && w.moved(before) {
				t.Fatalf("%s was refused (%v) and yet moved something", line, err)
			}
			after := w.p
			if err == nil && after.Round.ID != before.Round.ID {
				switch {
				case before.Round.Status == loop.Running:
					t.Fatalf("%s: two rounds at once", line)
				case before.Loop.Status != loop.Held || after.Round.Start.Claim != before.Loop.Holder.Seq:
					t.Fatalf("%s: a round without a claim", line)
				case before.Stop.InForce() && before.Stop.Status != loop.Ordered:
					t.Fatalf("%s: a round under a stop that was seen", line)
				case after.Round.Number() <= before.Round.Number():
					t.Fatalf("%s: number %d follows %d", line, after.Round.Number(), before.Round.Number())
				}
			}
			if before.Stop.InForce() && !after.Stop.InForce() && after.Stop.LiftedBy == "" {
				t.Fatalf("%s: an order ended without being lifted", line)
			}
		}
	})
}

// An event that was signed for another place, or is stored twice, changes
// nothing but the position.
func TestPositions(t *testing.T) {
	w := newWorld()
	if err := w.told("s/1 claims; p orders_drain"); err != nil {
		t.Fatal(err)
	}
	seen := events.Event{
		Seq: 9, Subject: events.For("stop.seen", project, project, "s"), Kind: "stop.seen", Version: 1,
		ID: events.ID{Actor: "s", Session: "1", N: 2}, Expect: 1, Payload: &events.StopSeen{Ordered: 2},
	}
	p, err := loop.Apply(w.p, seen)
	var r *loop.Refusal
	if !errors.As(err, &r) || r.Code != loop.CodePosition || p.Stop.Status != loop.Ordered || p.Stop.LastSeq != 9 {
		t.Errorf("%v: %+v", err, p.Stop)
	}
	if _, err := loop.Apply(p, seen); !errors.As(err, &r) || r.Code != loop.CodeOrder {
		t.Errorf("again: %v", err)
	}
	seen.Seq, seen.Expect, seen.Payload = 10, 9, &events.StopLifted{}
	if _, err := loop.Apply(p, seen); !errors.As(err, &r) || r.Code != loop.CodePayload {
		t.Errorf("another payload: %v", err)
	}
	seen.Subject.Scope = "other"
	if _, err := loop.Apply(p, seen); !errors.As(err, &r) || r.Code != loop.CodeOther {
		t.Errorf("another project: %v", err)
	}
}

func TestDiagrams(t *testing.T) {
	for machine, want := range map[string]string{
		"loop": "    halted --> free: start_requested, nobody holds it\n", "round": "    [*] --> running: started\n", "stop": "    confirmed --> [*]: lifted\n",
	} {
		if got := loop.Diagram(machine); !strings.Contains(got, want) || strings.Contains(got, "held --> held") {
			t.Errorf("%s:\n%s", machine, got)
		}
	}
}
