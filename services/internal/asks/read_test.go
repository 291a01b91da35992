package asks_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/asks"
	"github.com/banksman/banksman/services/internal/lab/stage"
)

var local = events.Proposer{Kind: "agent", ID: "local"}

// reader reads as the gate does.
func reader(s *stage.Stage) asks.Reader {
	return asks.Reader{Bus: s.Conn("gate"), Standing: s.Standing("gate")}
}

// say appends what an actor says under an id, behind everything that was said.
func say(s *stage.Stage, actor string, kind events.Kind, scope, id string, payload any) uint64 {
	s.T.Helper()
	return s.Say(actor, kind, scope, id, s.Last(events.Filter("ask", id)), payload)
}

// The proposer speaks for who has proposed a job and for nobody else; persons
// speak for themselves.
func TestRequestsAreOfThoseWhoMayMakeThem(t *testing.T) {
	s := stage.New(t, stage.Options{})
	id := s.Propose([]string{"make"})
	say(s, "proposer", "ask.cancel_requested", "default", id, events.AskCancelRequested{Proposer: events.Proposer{Kind: "agent", ID: "stranger"}, Reason: "not mine"})
	say(s, "proposer", "ask.cancel_requested", "default", id, events.AskCancelRequested{Proposer: local, Reason: "mine"})
	say(s, stage.Person, "ask.commented", "default", id, events.AskCommented{Text: "looks odd"})
	last := say(s, stage.Second, "ask.revoke_requested", "default", id, events.AskRevokeRequested{Reason: "no"})

	list, at, err := reader(s).Requests(t.Context(), s.Job(id))
	stage.Must(t, err)
	var got []string
	for _, r := range list {
		got = append(got, fmt.Sprintf("%s by %s: %s", r.Kind, r.By, r.Reason))
	}
	want := "[ask.cancel_requested by agent:local: mine ask.revoke_requested by " + stage.Second + ": no]"
	if fmt.Sprint(got) != want || at != last {
		t.Errorf("%s through %d, want %s through %d", got, at, want, last)
	}
	said, _, err := reader(s).Comments(t.Context(), id)
	if err != nil || len(said) != 1 || said[0].By != stage.Person || said[0].Text != "looks odd" {
		t.Errorf("%+v, %v", said, err)
	}
	if list, at, err := reader(s).Requests(t.Context(), s.Job(s.Propose([]string{"true"}))); err != nil || len(list) != 0 || at != 0 {
		t.Errorf("of another job: %v through %d, %v", list, at, err)
	}
}

// However much is said about a job, all of it is read.
func TestEveryPageIsRead(t *testing.T) {
	s := stage.New(t, stage.Options{})
	id := s.Propose([]string{"make"})
	const many = 130
	for i := range many {
		say(s, stage.Person, "ask.commented", "default", id, events.AskCommented{Text: fmt.Sprint(i)})
	}
	said, _, err := reader(s).Comments(t.Context(), id)
	if err != nil || len(said) != many || said[many-1].Text != fmt.Sprint(many-1) {
		t.Errorf("%d comments, %v", len(said), err)
	}
}

// A bar counts until a person who is not barred by it lifts exactly it.
func TestBar(t *testing.T) {
	s := stage.New(t, stage.Options{})
	person := events.Proposer{Kind: "person", ID: stage.Person}
	content := events.Content(person, []string{"make"}, "/src")
	bar := func() *asks.Bar {
		t.Helper()
		b, _, err := reader(s).Bar(t.Context(), content, person)
		stage.Must(t, err)
		return b
	}
	if b := bar(); b != nil {
		t.Fatalf("barred from the start: %+v", b)
	}
	first := say(s, stage.Second, "ask.barred", "default", content, events.AskBarred{Job: "job1", Denied: strings.Repeat("a", 64), Reason: "never"})
	if b := bar(); b == nil || b.Seq != first || b.By != stage.Second || b.Job != "job1" || b.Reason != "never" {
		t.Errorf("%+v", b)
	}
	say(s, stage.Person, "ask.unbarred", "default", content, events.AskUnbarred{Barred: first})
	if bar() == nil {
		t.Error("the barred one has lifted the bar")
	}
	say(s, stage.Second, "ask.unbarred", "default", content, events.AskUnbarred{Barred: first + 1})
	if bar() == nil {
		t.Error("lifting another bar has lifted this one")
	}
	say(s, stage.Second, "ask.unbarred", "default", content, events.AskUnbarred{Barred: first})
	if b := bar(); b != nil {
		t.Errorf("it was lifted: %+v", b)
	}
	again := say(s, stage.Second, "ask.barred", "default", content, events.AskBarred{Job: "job2", Denied: strings.Repeat("a", 64), Reason: "still not"})
	if b := bar(); b == nil || b.Seq != again {
		t.Errorf("barred again: %+v", b)
	}
}

// A waiver counts for one digest and one proposer, for its time, and not for who
// has said it.
func TestWaiver(t *testing.T) {
	s := stage.New(t, stage.Options{})
	content := strings.Repeat("c", 64)
	waiver := func(digest string, p events.Proposer, at time.Time) *asks.Waiver {
		t.Helper()
		w, _, err := reader(s).Waiver(t.Context(), digest, p, at)
		stage.Must(t, err)
		return w
	}
	now := time.Now()
	if w := waiver(content, local, now); w != nil {
		t.Fatalf("waived from the start: %+v", w)
	}
	own := events.Proposer{Kind: "person", ID: stage.Person}
	say(s, stage.Person, "ask.waived", events.SiteScope, content, events.AskWaived{Refused: 1, Proposer: own, Reason: "mine", ValidS: 60})
	if w := waiver(content, own, now); w != nil {
		t.Errorf("somebody waived for oneself: %+v", w)
	}
	first := say(s, stage.Second, "ask.waived", events.SiteScope, content, events.AskWaived{Refused: 1, Proposer: local, Reason: "an example", ValidS: 60})
	second := say(s, stage.Second, "ask.waived", events.SiteScope, content, events.AskWaived{Refused: 1, Proposer: local, Reason: "again", ValidS: 6000})
	w := waiver(content, local, now)
	if w == nil || w.Seq != first || w.By != stage.Second || w.Reason != "an example" {
		t.Errorf("want the first that counts: %+v", w)
	}
	if w := waiver(content, local, now.Add(10*time.Minute)); w == nil || w.Seq != second {
		t.Errorf("the first has run out: %+v", w)
	}
	if w := waiver(content, local, now.Add(24*time.Hour)); w != nil {
		t.Errorf("both have run out: %+v", w)
	}
	if waiver(content, events.Proposer{Kind: "agent", ID: "other"}, now) != nil || waiver(strings.Repeat("d", 64), local, now) != nil {
		t.Error("it counts for another proposer or another digest")
	}
}

// Refusals on record are read in order, whoever was refused.
func TestRefused(t *testing.T) {
	s := stage.New(t, stage.Options{})
	for i, p := range []events.Proposer{local, {Kind: "agent", ID: "other"}, {}, local} {
		id := events.RefusalID(p)
		s.Say("proposer", "proposal.refused", events.SiteScope, id, s.Last(events.Filter("proposal", id)), events.ProposalRefused{Proposer: p, Code: "secret", Count: i + 1})
	}
	var counts []int
	err := reader(s).Refused(t.Context(), func(_ events.Event, p *events.ProposalRefused) { counts = append(counts, p.Count) })
	if err != nil || fmt.Sprint(counts) != "[1 2 3 4]" {
		t.Errorf("%v, %v", counts, err)
	}
}
