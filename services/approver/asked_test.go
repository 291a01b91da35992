package approver

import (
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab/stage"
)

// What a request makes the gate do depends on where the job stands: it ends what
// does not run, leaves what runs to its worker, and touches nothing that ended.
func TestWhatIsDueForARequest(t *testing.T) {
	const cancels, revokes, later, nothing = "job.cancelled", "job.revoked", "later", ""
	for status, want := range map[lifecycle.Status][2]string{ // by cancel, by revoke
		lifecycle.Proposed:   {cancels, nothing},
		lifecycle.Pending:    {cancels, nothing},
		lifecycle.Approved:   {cancels, revokes},
		lifecycle.RetryWait:  {cancels, revokes},
		lifecycle.Running:    {later, later},
		lifecycle.Succeeded:  {nothing, nothing},
		lifecycle.Lost:       {nothing, nothing},
		lifecycle.Denied:     {nothing, nothing},
		lifecycle.Cancelled:  {nothing, nothing},
		lifecycle.Revoked:    {nothing, nothing},
		lifecycle.DeadLetter: {nothing, nothing},
		lifecycle.Expired:    {nothing, nothing},
	} {
		for i, kind := range []events.Kind{"ask.cancel_requested", "ask.revoke_requested"} {
			v := due(lifecycle.Job{ID: "j", Status: status, ProposalDigest: "pd"}, lifecycle.Request{Kind: kind, By: "p1", Reason: "enough", Seq: 9})
			got := string(v.kind)
			if v.again > 0 {
				got = later
			}
			if got != want[i] {
				t.Errorf("%s of a job that is %s: %q, want %q", kind, status, got, want[i])
			}
			switch p := v.payload.(type) {
			case *events.JobCancelled:
				if p.By != "p1" || p.Reason != "enough" || p.Request != 9 || p.Started != 0 {
					t.Errorf("%+v", p)
				}
			case *events.JobRevoked:
				if p.By != "p1" || p.Reason != "enough" || p.Request != 9 || p.Proposal != "pd" {
					t.Errorf("%+v", p)
				}
			}
		}
	}
}

// The first request that makes anything due counts, and one that came too early
// does not hide the others.
func TestTheFirstRequestThatCounts(t *testing.T) {
	pending := lifecycle.Job{ID: "j", Status: lifecycle.Pending}
	v := firstDue(pending, []lifecycle.Request{{Kind: "ask.revoke_requested", By: "p1"}, {Kind: "ask.cancel_requested", By: "p2"}, {Kind: "ask.cancel_requested", By: "p3"}})
	if p, ok := v.payload.(*events.JobCancelled); !ok || p.By != "p2" {
		t.Errorf("%+v", v)
	}
	if v := firstDue(pending, nil); v.payload != nil || v.again != 0 {
		t.Errorf("nobody asked: %+v", v)
	}
}

// A request is carried out by the gate, also one that was made while no gate ran,
// and once.
func TestRequestsAreCarriedOut(t *testing.T) {
	w := newWatchman(t, stage.Options{Policy: rules})
	ask := func(id string, kind events.Kind, payload any) {
		w.Say(stage.Person, kind, "default", id, w.Last(events.Filter("ask", id)), payload)
	}
	early := w.Propose([]string{"deploy"})
	w.Resolve(early, "/usr/bin/deploy")
	w.Assess(early, 1)
	ask(early, "ask.cancel_requested", events.AskCancelRequested{Reason: "before the gate ran"})
	w.start()
	j := w.Await(early, "cancelled", status(lifecycle.Cancelled))
	if j.Ending != "cancelled by "+stage.Person+": before the gate ran" || j.Tainted {
		t.Errorf("%+v", j)
	}

	id := w.Propose([]string{"true"})
	w.Resolve(id, "/usr/bin/true")
	w.Await(id, "approved", status(lifecycle.Approved))
	ask(id, "ask.revoke_requested", events.AskRevokeRequested{Reason: "not today"})
	ask(id, "ask.revoke_requested", events.AskRevokeRequested{Reason: "again"})
	if j := w.Await(id, "revoked", status(lifecycle.Revoked)); j.Ending != "revoked by "+stage.Person+": not today" || j.Tainted {
		t.Errorf("%+v", j)
	}
	after := w.Propose([]string{"rm", "x"}) // shows that the gate has got past the second request
	w.Await(after, "denied", status(lifecycle.Denied))
	if n := w.Count("job.revoked", id); n != 1 {
		t.Errorf("it was revoked %d times", n)
	}
}

// A denial that sticks answers before any worker has looked, with the reason and
// the way out; lifted, it does not.
func TestABarDeniesAtOnce(t *testing.T) {
	w := newWatchman(t, stage.Options{Policy: rules})
	w.start()
	content := events.Content(events.Proposer{Kind: "agent", ID: "local"}, []string{"deploy"}, w.Work)
	bar := w.Say(stage.Second, "ask.barred", "default", content, 0, events.AskBarred{Job: "job0", Denied: "d", Reason: "not on a friday"})
	j := w.Await(w.Propose([]string{"deploy"}), "denied", status(lifecycle.Denied))
	if r := j.Denial.Ruling; r.Code != codeDeniedBefore || r.Reason != "not on a friday" || r.Instead == "" || j.Denial.Basis != "policy" {
		t.Errorf("%+v", j.Denial)
	}
	w.Say(stage.Second, "ask.unbarred", "default", content, bar, events.AskUnbarred{Barred: bar})
	id := w.Propose([]string{"deploy"})
	w.Resolve(id, "/usr/bin/deploy")
	w.Await(id, "pending", status(lifecycle.Pending))
}
