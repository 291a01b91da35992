package loops_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/loops"
)

// teller stores what somebody says as the stream would and folds it.
type teller struct {
	p   loop.Project
	seq uint64
}

func newTeller() *teller { return &teller{p: loop.Project{Name: "demo"}} }

func (w *teller) says(actor string, s loops.Saying) error {
	w.seq++
	e := events.Event{
		Seq: w.seq, Time: time.Unix(int64(w.seq), 0), Subject: s.Subject("demo", actor), Kind: s.Kind, Version: 1,
		ID: events.ID{Actor: actor, Session: "1", N: 1}, Expect: s.Expect, Payload: s.Payload,
	}
	var err error
	w.p, err = loop.Apply(w.p, e)
	return err
}

func (w *teller) claims() error {
	return w.says("s", loops.Saying{Kind: "loop.claimed", Expect: w.p.Loop.LastSeq, Payload: &events.LoopClaimed{WorkDir: "/w", LeaseS: 3}})
}

func (w *teller) halts() error {
	return w.says("s", loops.Saying{Kind: "loop.halted", Expect: w.p.Loop.LastSeq, Payload: &events.LoopHalted{Claim: w.p.Loop.Holder.Seq}})
}

func (w *teller) answers() error {
	kind, payload := events.Kind("stop.seen"), any(&events.StopSeen{Ordered: w.p.Stop.Seq})
	switch {
	case w.p.Stop.Status == loop.Seen && w.p.Stop.Wants(events.StopKill):
		kind, payload = "stop.killed", &events.StopKilled{Ordered: w.p.Stop.Seq}
	case w.p.Stop.Status == loop.Seen:
		kind, payload = "stop.drained", &events.StopDrained{Ordered: w.p.Stop.Seq}
	case w.p.Stop.Status != loop.Ordered:
		kind, payload = "stop.confirmed", &events.StopConfirmed{Ordered: w.p.Stop.Seq}
	}
	return w.says("s", loops.Saying{Kind: kind, Expect: w.p.Stop.LastSeq, Payload: payload})
}

// What the package lets somebody say, the fold accepts; what it refuses, the
// fold would refuse or change nothing by.
func TestWhatMayBeSaidIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTeller()
		if err := w.claims(); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 30).Draw(t, "deeds") {
			var s loops.Saying
			var err error
			switch rapid.IntRange(0, 6).Draw(t, "deed") {
			case 0:
				s, err = loops.Order(w.p, events.StopDrain, "why", "")
			case 1:
				s, err = loops.Order(w.p, events.StopKill, "why", "")
			case 2:
				s, err = loops.Lift(w.p, "why")
			case 3:
				s, err = loops.Restart(w.p, "why")
			case 4:
				_ = w.answers()
				continue
			case 5:
				_ = w.halts()
				continue
			default:
				list, err := loops.Start(w.p, "why")
				for _, s := range list {
					if err := w.says("p7k2", s); err != nil {
						t.Fatalf("start: %v", err)
					}
				}
				if err == nil && (w.p.Stop.InForce() || w.p.Loop.Status == loop.Halted) {
					t.Fatal("start left the project stopped")
				}
				continue
			}
			var r *loops.Refusal
			switch {
			case err != nil && !errors.As(err, &r):
				t.Fatalf("untyped %v", err)
			case err == nil:
				if err := w.says("p7k2", s); err != nil {
					t.Fatalf("%s was to be accepted: %v", s.Kind, err)
				}
			}
		}
	})
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	unknown := loop.Project{Name: "demo"}
	w := newTeller()
	if err := w.claims(); err != nil {
		t.Fatal(err)
	}
	stopped := newTeller()
	order, err := loops.Order(w.p, events.StopKill, "it burns", "")
	if err := errors.Join(err, stopped.claims(), stopped.says("p7k2", order)); err != nil {
		t.Fatal(err)
	}
	for want, refused := range map[string]func() error{
		"no supervisor has ever claimed": func() error { _, err := loops.Order(unknown, events.StopKill, "", ""); return err },
		"[projects.demo]":                func() error { _, err := loops.Start(unknown, ""); return err },
		"use drain or kill":              func() error { _, err := loops.Order(w.p, "pause", "", ""); return err },
		"neither stopped nor halted":     func() error { _, err := loops.Start(w.p, ""); return err },
		"no stop order is in force":      func() error { _, err := loops.Lift(w.p, ""); return err },
		"has not halted":                 func() error { _, err := loops.Restart(w.p, ""); return err },
		"ordered to kill by p7k2: it burns; the order is ordered": func() error { _, err := loops.Order(stopped.p, events.StopDrain, "", ""); return err },
	} {
		if err := refused(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzParseRound(f *testing.F) {
	for _, id := range []string{"demo-1", "a-b-12", "-1", "demo-01", "demo-", "demo-0", "demo--1", "Demo-1", "demo-99999999999999999999"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		project, n, ok := loops.ParseRound(id)
		if ok && (events.RoundID(project, n) != id || n < 1 || events.CheckName("project", project) != nil) {
			t.Errorf("%q is read as %q and %d", id, project, n)
		}
	})
}
