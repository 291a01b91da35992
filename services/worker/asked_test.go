package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
)

// A running job ends for those who may ask it to, with a receipt of how; the
// proposer of other jobs is not among them.
func TestACancelRequestEndsTheRunningJob(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	gate := y.work("gate")
	must(t, unix.Mkfifo(gate, 0o600))
	id := y.propose([]string{"sh", "-c", "read line < " + gate + "; touch after"})
	y.approve(id)
	y.seal()
	y.Await(id, "running", func(j lifecycle.Job) bool { return j.Status == lifecycle.Running })
	open, err := os.OpenFile(gate, os.O_WRONLY, 0) // returns when the job reads
	must(t, err)
	defer open.Close()

	stranger := y.Say("proposer", "ask.cancel_requested", "default", id, 0, &events.AskCancelRequested{Proposer: events.Proposer{Kind: "agent", ID: "stranger"}, Reason: "not mine"})
	w.shift.heedAll(t.Context())
	if j := y.Job(id); j.Status != lifecycle.Running {
		t.Fatalf("a stranger ended it: %s", j.Status)
	}
	asked := y.Say("p7k2", "ask.cancel_requested", "default", id, stranger, &events.AskCancelRequested{Reason: "enough"})
	j := y.ends(id)
	if j.Status != lifecycle.Cancelled || j.Ending != "cancelled by p7k2: enough" || j.Receipt == nil || len(j.Receipt.Means) == 0 || j.Receipt.Survivors != 0 {
		t.Errorf("%s, %q, receipt %+v", j.Status, j.Ending, j.Receipt)
	}
	list, err := y.Conn("reader").Read(t.Context(), 1, "bm.job.default."+id+".cancelled.>", 2)
	must(t, err)
	if e, err := y.reads.Book().Open(list[0]); err != nil || len(list) != 1 || e.Payload.(*events.JobCancelled).Request != asked {
		t.Errorf("%d cancellations, %+v (%v)", len(list), e.Payload, err)
	}
	w.leave()
	nothingIn(t, w.shift.journal.Dir())
	if _, err := os.Stat(y.work("after")); err == nil {
		t.Error("it went on")
	}
}

// byGrant gives a grant for echo in the yard's work folder, takes a use of it for a
// job, and approves the job with it.
func (y *yard) byGrant(id, grant string, change ...func(*events.GrantGiven, *events.GrantUsed)) {
	y.t.Helper()
	j := y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	given := &events.GrantGiven{Scope: events.GrantScope{Program: "echo", Roots: []string{filepath.Join(y.ground, "work")}}, ValidS: 600, Uses: 3, Reason: "a test"}
	used := &events.GrantUsed{Use: 1, Job: id, Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest}
	for _, f := range change {
		f(given, used)
	}
	used.Given = y.Say("p7k2", "grant.given", events.SiteScope, grant, 0, given)
	use := y.Say("gate", "grant.used", events.SiteScope, grant, used.Given, used)
	a := y.approval(id, "grant")
	a.Grant, a.GrantUsed = grant, use
	y.Say("gate", "job.approved", "default", id, j.LastSeq, a)
}

// A worker does not believe the gate about grants: it runs what the grant covers
// and dead-letters everything else, before anything is started.
func TestAWorkerJudgesGrantsByItself(t *testing.T) {
	y := newYard(t, strings.Replace(rules, "program = \"echo\"\ndecision = \"allow\"", "program = \"echo\"\ndecision = \"ask\"", 1))
	y.hire("worker", "").run()
	for name, c := range map[string]struct {
		change func(*events.GrantGiven, *events.GrantUsed)
		ending string // empty where it runs
	}{
		"covered":         {func(*events.GrantGiven, *events.GrantUsed) {}, ""},
		"another-program": {func(g *events.GrantGiven, _ *events.GrantUsed) { g.Scope.Program = "true" }, "does not cover it"},
		"another-folder":  {func(g *events.GrantGiven, _ *events.GrantUsed) { g.Scope.Roots = []string{"/srv"} }, "does not cover it"},
		"another-agent":   {func(g *events.GrantGiven, _ *events.GrantUsed) { g.Scope.Proposer = "agent:other" }, "does not cover it"},
		"another-job":     {func(_ *events.GrantGiven, u *events.GrantUsed) { u.Job = "job0" }, "not made for it"},
		"another-command": {func(_ *events.GrantGiven, u *events.GrantUsed) { u.Proposal = strings.Repeat("a", 64) }, "not made for it"},
	} {
		id := y.propose([]string{"echo", name})
		y.byGrant(id, "grant-"+name, c.change)
		y.seal()
		j := y.ends(id)
		if c.ending == "" && (j.Status != lifecycle.Succeeded || len(j.Attempts) != 1) {
			t.Errorf("%s: %s, %q", name, j.Status, j.Ending)
		}
		if c.ending != "" && (j.Status != lifecycle.DeadLetter || !strings.Contains(j.Ending, c.ending) || len(j.Attempts) != 0) {
			t.Errorf("%s: %s, %q, want %q", name, j.Status, j.Ending, c.ending)
		}
	}
}

// A grant that is revoked after its use starts nothing.
func TestARevokedGrantStartsNothing(t *testing.T) {
	y := newYard(t, strings.Replace(rules, "program = \"echo\"\ndecision = \"allow\"", "program = \"echo\"\ndecision = \"ask\"", 1))
	y.hire("worker", "").run()
	id := y.propose([]string{"echo", "x"})
	y.byGrant(id, "g1")
	st, _, err := y.Conn("reader").Last(t.Context(), events.Filter("grant", "g1"))
	must(t, err)
	y.Say("p7k2", "grant.revoked", events.SiteScope, "g1", st.Seq, &events.GrantRevoked{Reason: "the release is off"})
	y.seal()
	if j := y.ends(id); j.Status != lifecycle.DeadLetter || !strings.Contains(j.Ending, "the release is off") || len(j.Attempts) != 0 {
		t.Errorf("%s, %q", j.Status, j.Ending)
	}
}
