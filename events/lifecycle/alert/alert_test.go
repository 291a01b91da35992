package alert_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/alert"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// log makes events one after the other.
type log struct {
	seq  uint64
	last uint64 // about the alert
	list []events.Event
}

const id = "hung-demo"

func (l *log) add(kind events.Kind, actor string, payload any) events.Event {
	l.seq += 3 // others write in between
	e := events.Event{
		Seq: l.seq, Time: noon.Add(time.Duration(l.seq) * time.Second), Subject: events.For(kind, "demo", id, actor),
		Kind: kind, Version: 1, Expect: l.last, Payload: payload,
	}
	l.last = l.seq
	l.list = append(l.list, e)
	return e
}

func raised(severity string, grade int64) *events.AlertRaised {
	return &events.AlertRaised{Detector: "hung", About: "demo", Severity: severity, Grade: grade, Summary: "it hangs"}
}

func code(err error) string {
	var r *alert.Refusal
	if !errors.As(err, &r) {
		return ""
	}
	return r.Code
}

func TestAnEpisodeFromRaiseToClear(t *testing.T) {
	var l log
	first := l.add("alert.raised", "monitor", raised("warning", 1))
	l.add("alert.updated", "monitor", &events.AlertUpdated{Raised: first.Seq, Severity: "warning", Grade: 2, Summary: "longer"})
	l.add("alert.acknowledged", "p7k2", &events.AlertAcknowledged{Raised: first.Seq, Reason: "I know"})
	a, refused := alert.Fold(l.list)
	if len(refused) > 0 || a.Status != alert.Acknowledged || a.AckBy != "p7k2" || a.Grade != 2 || a.Summary != "longer" || a.Updates != 1 || !a.Open() {
		t.Fatalf("%+v, refused %v", a, refused)
	}
	l.add("alert.updated", "monitor", &events.AlertUpdated{Raised: first.Seq, Severity: "critical", Grade: 1, Summary: "worse"})
	a, refused = alert.Fold(l.list)
	if len(refused) > 0 || a.Status != alert.Raised || a.Severity != "critical" || a.Grade != 2 {
		t.Fatalf("after it became critical: %+v, refused %v", a, refused)
	}
	l.add("alert.cleared", "monitor", &events.AlertCleared{Raised: first.Seq, Reason: "it moves"})
	second := l.add("alert.raised", "monitor", raised("warning", 1))
	a, refused = alert.Fold(l.list)
	if len(refused) > 0 || a.Episodes != 2 || a.RaisedSeq != second.Seq || a.AckBy != "" || a.Updates != 0 || a.Reason != "" || a.LastSeq != second.Seq {
		t.Fatalf("the second episode: %+v, refused %v", a, refused)
	}
}

func TestWhatIsRefusedMovesThePositionOnly(t *testing.T) {
	open := func() (*log, alert.Alert) {
		l := &log{}
		l.add("alert.raised", "monitor", raised("warning", 1))
		a, _ := alert.Fold(l.list)
		return l, a
	}
	for name, c := range map[string]struct {
		kind    events.Kind
		payload any
		change  func(*events.Event)
		want    string
		stays   bool // the position, too
	}{
		"raised twice":      {"alert.raised", raised("warning", 1), nil, alert.CodeIllegal, false},
		"another episode":   {"alert.cleared", &events.AlertCleared{Raised: 99}, nil, alert.CodeFence, false},
		"another id":        {"alert.cleared", &events.AlertCleared{Raised: 3}, func(e *events.Event) { e.Subject.ID = "hung-x" }, alert.CodeOther, true},
		"another family":    {"stop.lifted", &events.StopLifted{}, nil, alert.CodeOther, true},
		"another position":  {"alert.cleared", &events.AlertCleared{Raised: 3}, func(e *events.Event) { e.Expect = 2 }, alert.CodePosition, false},
		"applied already":   {"alert.cleared", &events.AlertCleared{Raised: 3}, func(e *events.Event) { e.Seq = 3 }, alert.CodeOrder, true},
		"another payload":   {"alert.cleared", raised("warning", 1), nil, alert.CodePayload, false},
		"no payload":        {"alert.cleared", nil, nil, alert.CodePayload, false},
		"an unknown kind":   {"alert.dreamt", &events.AlertCleared{Raised: 3}, nil, alert.CodePayload, false},
		"no such severity":  {"alert.updated", &events.AlertUpdated{Raised: 3, Severity: "red"}, nil, alert.CodePayload, false},
		"a newer version":   {"alert.cleared", &events.AlertCleared{Raised: 3}, func(e *events.Event) { e.Version = 99 }, alert.CodePayload, false},
		"acknowledged late": {"alert.acknowledged", &events.AlertAcknowledged{Raised: 1}, nil, alert.CodeFence, false},
	} {
		l, before := open()
		e := l.add(c.kind, "monitor", c.payload)
		if c.change != nil {
			c.change(&e)
		}
		after, err := alert.Apply(before, e)
		if code(err) != c.want {
			t.Errorf("%s: %v, want code %s", name, err, c.want)
		}
		moved := before
		if !c.stays {
			moved.LastSeq = e.Seq
		}
		if after != moved {
			t.Errorf("%s changed the alert to %+v", name, after)
		}
	}
}

func TestARaiseMustBelongToItsId(t *testing.T) {
	for name, p := range map[string]*events.AlertRaised{
		"another detector": {Detector: "disk", About: "demo", Severity: "warning"},
		"about another":    {Detector: "hung", About: "x", Severity: "warning"},
		"nothing":          {},
		"no severity":      {Detector: "hung", About: "demo"},
	} {
		var l log
		a, err := alert.Apply(alert.Alert{}, l.add("alert.raised", "monitor", p))
		if code(err) != alert.CodePayload || a.Open() || a.LastSeq != 3 {
			t.Errorf("%s: %v, %+v", name, err, a)
		}
	}
}

// Ids are ids for every detector and thing, and different things have
// different ones.
func TestAlertIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		detector := rapid.StringMatching(`[a-z][a-z_]{0,30}`).Draw(t, "detector")
		about, other := rapid.String().Draw(t, "about"), rapid.String().Draw(t, "other")
		one := events.AlertID(detector, about)
		if err := events.For("alert.raised", "site", one, "monitor").Valid(); err != nil {
			t.Fatal(err)
		}
		if about != other && one == events.AlertID(detector, other) {
			t.Fatalf("%q and %q are both %s", about, other, one)
		}
	})
}

// Whatever comes in whatever order: nothing panics, the position never goes
// back, there is one open episode at most, and the fold depends on the events
// alone.
func TestAnyOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l log
		var a alert.Alert
		episodes := 0
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			raise := uint64(rapid.IntRange(0, int(l.seq)).Draw(t, "raised"))
			if rapid.Bool().Draw(t, "right") {
				raise = a.RaisedSeq
			}
			severity := rapid.SampledFrom([]string{"warning", "critical", ""}).Draw(t, "severity")
			grade := int64(rapid.IntRange(0, 5).Draw(t, "grade"))
			payloads := map[events.Kind]any{
				"alert.raised":       raised(severity, grade),
				"alert.updated":      &events.AlertUpdated{Raised: raise, Severity: severity, Grade: grade},
				"alert.cleared":      &events.AlertCleared{Raised: raise},
				"alert.acknowledged": &events.AlertAcknowledged{Raised: raise},
			}
			kind := rapid.SampledFrom([]events.Kind{"alert.raised", "alert.updated", "alert.cleared", "alert.acknowledged"}).Draw(t, "kind")
			e := l.add(kind, "monitor", payloads[kind])
			if rapid.IntRange(0, 4).Draw(t, "forge") == 0 {
				e.Expect = uint64(rapid.IntRange(0, int(l.seq)).Draw(t, "expect"))
				l.list[len(l.list)-1] = e
			}
			before := a
			var err error
			a, err = alert.Apply(a, e)
			if a.LastSeq != e.Seq {
				t.Fatalf("the position is %d after event %d", a.LastSeq, e.Seq)
			}
			if err == nil && kind == "alert.raised" {
				if episodes++; before.Open() {
					t.Fatal("an episode began inside another")
				}
			}
			if a.Episodes != episodes || a.Open() != (a.Status == alert.Raised || a.Status == alert.Acknowledged) {
				t.Fatalf("%+v", a)
			}
		}
		if again, _ := alert.Fold(l.list); again != a && again.LastSeq != a.LastSeq {
			t.Fatalf("folded again it is %+v, not %+v", again, a)
		}
	})
}

// Each row is reachable, starts and ends at a status that exists, and no two
// rows say different things about one move.
func TestTheTableIsAMachine(t *testing.T) {
	known := []alert.Status{alert.None, alert.Raised, alert.Acknowledged, alert.Cleared}
	reached := map[alert.Status]bool{alert.None: true}
	for range known {
		for _, r := range alert.Table {
			if reached[r.From] {
				reached[r.To] = true
			}
		}
	}
	type move struct {
		from alert.Status
		on   events.Kind
		when string
	}
	seen := map[move]bool{}
	for _, r := range alert.Table {
		if !slices.Contains(known, r.From) || !slices.Contains(known, r.To) || !reached[r.From] {
			t.Errorf("row %+v", r)
		}
		if _, ok := events.Find(r.On, 1); !ok || r.On.Family() != "alert" {
			t.Errorf("row %+v is about no kind", r)
		}
		if m := (move{r.From, r.On, r.When}); seen[m] {
			t.Errorf("two rows for %+v", m)
		} else {
			seen[m] = true
		}
	}
	for _, want := range []string{"[*] --> raised: raised", "acknowledged --> raised: updated, more severe", "raised --> cleared: cleared"} {
		if !strings.Contains(alert.Diagram(), want) {
			t.Errorf("the diagram lacks %q:\n%s", want, alert.Diagram())
		}
	}
}
