package lifecycle_test

import (
	"encoding/json/v2"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
)

// twists are what a hostile or slow writer changes about an event. Few values,
// so that a sequence of bytes hits matching ones often.
var twists = []args{
	{}, {}, {}, {"as": "p1"}, {"as": "p2"}, {"as": "w1"}, {"as": "w2"}, {"as": "gate"},
	{"expect": "1"}, {"expect": "3"}, {"pool": "other"}, {"job": "j2"}, {"session": "reborn"},
	{"proposal": "other"}, {"resolution": "other"}, {"resolution": ""}, {"start": "4"}, {"start": "5"}, {"start": "0"},
	{"attempts": "3", "retry_safe": "yes"}, {"attempts": "2"}, {"attempts": "0"}, {"attempt": "2"}, {"sealed": "0"}, {"skip": "1"},
	{"quorum": "2"}, {"quorum": "0"}, {"valid": "60"}, {"valid": "0"}, {"ttl": "60"}, {"ttl": "-1"},
	{"by": "person:p1"}, {"basis": "nonsense"}, {"why": "restart"},
	{"outcome": "failed"}, {"outcome": "failed", "retry": "30"}, {"outcome": "timed_out", "retry": "0"}, {"outcome": "odd"},
}

// mismatched is what no reader makes, but a caller might: a kind with the
// payload of another.
const mismatched = 0xff

// FuzzFold lets bytes write a job's stream: an act and a twist each, now and
// then a pause. After every event all promises of the package are checked.
func FuzzFold(f *testing.F) {
	for _, s := range standings {
		f.Add(bytesOf(s.by))
	}
	f.Add([]byte{mismatched, 0, 0, 1, mismatched, 8})
	f.Fuzz(tellScript)
}

// The same with bytes that are the same on every run.
func TestFoldKeepsItsPromises(t *testing.T) {
	for seed := range uint64(120) {
		random := rand.New(rand.NewPCG(seed, 0))
		script := bytesOf(standings[random.IntN(len(standings))].by)
		for range 24 {
			script = append(script, byte(random.IntN(256)), byte(random.IntN(256)))
		}
		tellScript(t, script)
		if t.Failed() {
			t.Fatalf("seed %d: script %q", seed, script)
		}
	}
}

func tellScript(t *testing.T, script []byte) {
	w := newWorld()
	for len(script) >= 2 && len(w.stored) < 40 {
		step(t, w, script[0], script[1])
		script = script[2:]
	}
	again, _ := lifecycle.Fold(w.stored)
	if snapshot(t, again) != snapshot(t, w.job) {
		t.Errorf("a second reading gives\n%s\nnot\n%s", snapshot(t, again), snapshot(t, w.job))
	}
}

func step(t *testing.T, w *world, what, how byte) {
	t.Helper()
	if what == mismatched {
		e := events.Event{Seq: uint64(len(w.stored)) + 1, Time: w.now, Expect: w.job.LastSeq, Kind: acts[int(how)%len(acts)].kind, Payload: &events.JobDeclined{}}
		e.Subject = events.For(e.Kind, "default", "j1", "w1")
		checked(t, w, e)
		return
	}
	w.now = w.now.Add(time.Duration(what/32) * 20 * time.Second)
	e, err := w.event(acts[int(what%32)%len(acts)], twists[int(how)%len(twists)])
	if err != nil {
		t.Fatal(err)
	}
	checked(t, w, e)
}

// bytesOf writes a standing's acts as a seed, each with the twist that comes
// nearest to its words.
func bytesOf(by string) []byte {
	var out []byte
	for line := range strings.SplitSeq(by, "; ") {
		words := strings.Fields(line)
		n := slices.IndexFunc(acts, func(a act) bool { return len(words) > 0 && a.verb == words[0] })
		if n >= 0 {
			twist := slices.IndexFunc(twists, func(a args) bool { return maps.Equal(a, parseArgs(words[1:])) })
			out = append(out, byte(n), byte(max(0, twist)))
		}
	}
	return out
}

// snapshot is everything a job says, nested values included.
func snapshot(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checked stores an event and checks what the package promises.
func checked(t *testing.T, w *world, e events.Event) {
	t.Helper()
	before, was, sent := w.job, snapshot(t, w.job), snapshot(t, e.Payload)
	err := w.store(e)
	if snapshot(t, before) != was || snapshot(t, e.Payload) != sent {
		t.Fatalf("Apply changed the job or the event that it was given: %s, now %s", was, snapshot(t, before))
	}
	after := w.job
	checkMove(t, before, after, e, err)
	checkStanding(t, after)
	if repeated, err := lifecycle.Apply(after, e); err == nil || snapshot(t, repeated) != snapshot(t, after) {
		t.Fatalf("the same event again: %v, %s", err, snapshot(t, repeated))
	}
}

// checkMove holds one step against the promises about steps.
func checkMove(t *testing.T, before, after lifecycle.Job, e events.Event, err error) {
	t.Helper()
	if after.LastSeq < before.LastSeq {
		t.Fatalf("the position went back from %d to %d", before.LastSeq, after.LastSeq)
	}
	if before.Tainted && (!after.Tainted || after.TaintSeq != before.TaintSeq || after.TaintCode != before.TaintCode) {
		t.Fatalf("the first mark did not stay after %s", e.Kind)
	}
	if before.Tainted && len(after.Attempts) > len(before.Attempts) {
		t.Fatal("a tainted job was started")
	}
	if before.Status.Final() && (after.Status != before.Status || err == nil && before.Status != lifecycle.Lost) {
		t.Fatalf("%s moved a job that was %s", e.Kind, before.Status)
	}
	if err == nil {
		if !slices.ContainsFunc(lifecycle.Table, func(r lifecycle.Row) bool {
			return r.From == before.Status && r.On == e.Kind && r.To == after.Status
		}) {
			t.Fatalf("%s led from %q to %q, which is no row", e.Kind, before.Status, after.Status)
		}
		return
	}
	var refused *lifecycle.Refusal
	if !errors.As(err, &refused) || refused.Code == "" || refused.Kind != e.Kind || refused.From != before.Status {
		t.Fatalf("not a proper refusal: %#v", err)
	}
	same := after
	same.LastSeq, same.UpdatedAt = before.LastSeq, before.UpdatedAt
	same.Tainted, same.TaintCode, same.TaintSeq = before.Tainted, before.TaintCode, before.TaintSeq
	if snapshot(t, same) != snapshot(t, before) {
		t.Fatalf("a refused %s changed\n%s to\n%s", e.Kind, snapshot(t, before), snapshot(t, after))
	}
}

// checkStanding holds a job against what must be true of any.
func checkStanding(t *testing.T, j lifecycle.Job) {
	t.Helper()
	voices := map[string]bool{}
	policy, granted := false, false
	for _, a := range j.Approvals {
		if voices[a.Actor] || j.Proposal.Proposer == (events.Proposer{Kind: "person", ID: a.Actor}) {
			t.Fatalf("%s has two voices or is the proposer", a.Actor)
		}
		voices[a.Actor] = true
		policy = policy || a.Basis == "policy"
		granted = granted || a.Basis == "grant" && a.Grant != "" && a.GrantUsed > 0 && j.Quorum < 2
	}
	decided := j.Status == lifecycle.Approved || len(j.Attempts) > 0
	if decided && (j.Resolution == nil || !policy && !granted && (j.Quorum == 0 || len(voices) < j.Quorum || !j.Assessed())) {
		t.Fatalf("approved without what it takes: %s", snapshot(t, j))
	}
	if len(j.Attempts) > j.AttemptsAllowed() {
		t.Fatalf("%d attempts of %d", len(j.Attempts), j.AttemptsAllowed())
	}
	c := j.Current()
	if j.Status == lifecycle.Running && (c == nil || c.Result != nil || c.Lapsed || c.EndedSeq != 0) {
		t.Fatalf("it runs and has ended: %s", snapshot(t, j))
	}
	at := j.UpdatedAt
	if j.Ready(at) && (j.Tainted || j.Unreadable || len(j.Attempts) >= j.AttemptsAllowed()) {
		t.Fatalf("it is ready and may not start: %s", snapshot(t, j))
	}
}
