package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
)

// What a reader cannot read may be what makes the next event right, so an old
// reader suspects nobody, and starts nothing either.
func TestAnUnreadableJobIsNeverTainted(t *testing.T) {
	for _, deed := range deeds {
		w := standing(t, "propose; resolve; assess")
		w.job.Unreadable = true
		if err := w.do(deed); w.job.Tainted || w.job.Status == lifecycle.Running {
			t.Errorf("%s: %v made it %+v", deed, err, w.job)
		}
	}
	w := standing(t, "propose; resolve; allow")
	w.job.Unreadable = true
	if err := w.do("start"); err == nil || w.job.Tainted || w.job.Ready(w.now) {
		t.Errorf("an unreadable job was started, tainted or ready: %v", err)
	}
}

// An event of another job or of no job moves nothing, not even the position.
func TestAnEventOfSomethingElse(t *testing.T) {
	w := standing(t, "propose; resolve")
	before := snapshot(t, w.job)
	for _, s := range []events.Subject{
		events.For("job.declined", "default", "j2", "w1"),
		events.For("worker.stopped", "default", "j1", "w1"),
	} {
		j, err := lifecycle.Apply(w.job, events.Event{Seq: 9, Expect: 2, Subject: s, Kind: s.Kind(), Payload: &events.JobDeclined{}})
		var refused *lifecycle.Refusal
		if !errors.As(err, &refused) || refused.Code != lifecycle.CodeOtherJob || snapshot(t, j) != before {
			t.Errorf("%s: %v, %s", s, err, snapshot(t, j))
		}
	}
}

// The earliest of the approvals ends them all, and the smallest number of
// attempts counts.
func TestWhatApprovalsAgreeOn(t *testing.T) {
	w := standing(t, "propose attempts=5; resolve; assess quorum=2; approve p1 valid=900 attempts=2; approve p2 valid=300 attempts=3")
	if got, want := w.job.ApprovalExpires(), w.now.Add(300*time.Second); !got.Equal(want) {
		t.Errorf("they expire at %s, want %s", got, want)
	}
	if got := w.job.AttemptsAllowed(); got != 2 {
		t.Errorf("%d attempts, want 2", got)
	}
	if got := w.job.LastApproval(); got != 5 {
		t.Errorf("last approval %d, want 5", got)
	}
}

// The zero job says nothing and breaks nothing.
func TestTheZeroJob(t *testing.T) {
	var j lifecycle.Job
	if j.Ready(time.Time{}) || j.Assessed() || j.Current() != nil || j.AttemptsAllowed() != 0 || j.LastApproval() != 0 ||
		!j.RequestExpires().IsZero() || !j.ApprovalExpires().IsZero() || !j.RetryAt().IsZero() || j.Status.Final() || j.Status.Undecided() {
		t.Error("the zero job claims something")
	}
	tainted := lifecycle.Taint(lifecycle.Taint(j, 4, "first"), 7, "second")
	if tainted.TaintCode != "first" || tainted.TaintSeq != 4 || tainted.LastSeq != 7 || j.Tainted {
		t.Errorf("the first mark does not stay: %+v", tainted)
	}
}

// A retry is due when the result says so; after a lapse it is due at once.
func TestWhenARetryIsDue(t *testing.T) {
	w := standing(t, "propose attempts=2; resolve; allow; start; finish outcome=failed retry=90")
	if got, want := w.job.RetryAt(), w.now.Add(90*time.Second); !got.Equal(want) || w.job.Ready(w.now) || !w.job.Ready(want) {
		t.Errorf("due at %s, want %s", got, want)
	}
	w = standing(t, "propose attempts=2 retry_safe=yes; resolve; allow; start; lapse")
	if !w.job.RetryAt().Equal(w.now) || !w.job.Ready(w.now) {
		t.Errorf("after a lapse it is due at %s", w.job.RetryAt())
	}
}

// Every refusal is a sentence with the status, the kind and the code.
func TestRefusalText(t *testing.T) {
	for _, tc := range []struct{ by, deed, want string }{
		{"propose", "start", `job.started in status "proposed" refused (illegal_transition): it does not wait for a worker`},
		{"propose; resolve; allow", "assess", `job.assessed in status "approved" refused (illegal_transition): no such move`},
		{"propose; resolve; allow", "allow gate2", `job.approved in status "approved" refused (illegal_transition): no such move (enough approvals)`},
	} {
		if err := standing(t, tc.by).do(tc.deed); err == nil || err.Error() != tc.want {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

// One thing wrong with an event that is otherwise in order: what it comes to.
func TestOneThingWrong(t *testing.T) {
	const (
		pending  = "propose; resolve; assess"
		approved = "propose attempts=2; resolve; allow"
		running  = approved + "; start"
		retry    = running + "; finish outcome=failed retry=1"
		lost     = running + "; lapse"
	)
	for _, tc := range []struct{ by, deed, want string }{
		{"", "propose attempts=0", "! payload"},
		{"", "propose ttl=0", "! payload"},
		{"", "propose timeout=0", "! payload"},
		{"", "propose argv=", "! payload"},
		{"", "propose payload_pool=other", "! payload"},
		{"propose", "resolve proposal=other", "! other_proposal"},
		{"propose; resolve", "assess proposal=other", "! other_proposal"},
		{"propose; resolve", "assess resolution=other", "- other_resolution"},
		{"propose; resolve", "assess resolution=", "- other_resolution"},
		{pending, "approve valid=0", "! payload"},
		{pending, "approve attempts=0", "! payload"},
		{pending, "approve basis=", "! payload"},
		{pending, "deny proposal=other", "! other_proposal"},
		{pending, "expire proposal=other", "! other_proposal"},
		{pending, "cancel start=3", "- fenced"},
		{approved, "start proposal=other", "! other_proposal"},
		{approved, "start resolution=other", "! other_resolution"},
		{approved, "start attempt=2", "! attempt_not_covered"},
		{approved, "start attempt=0", "! attempt_not_covered"},
		{approved, "start skip=1", "! attempt_not_covered"},
		{approved, "start sealed=2", "! attempt_not_covered"},
		{approved, "start sealed=99", "running"},
		{approved, "start pool=other", "! other_pool"},
		{approved, "start expect=2", "- wrong_position"},
		{approved, "start expect=4", "- wrong_position"},
		{running, "finish retry=1", "succeeded"},
		{running, "finish outcome=failed", "failed"},
		{running, "finish start=0", "- fenced"},
		{running, "lapse start=3", "- fenced"},
		{running, "lapse", "lost"},
		{retry, "lapse start=4", "- fenced"},
		{retry, "finish start=4", "- fenced"},
		{retry, "cancel w1 start=4", "- fenced"},
		{retry, "start attempt=1", "! attempt_not_covered"},
		{lost, "finish outcome=failed retry=1", "lost"},
		{lost, "finish w2", "! not_the_claimant"},
		{"propose retry_safe=yes; resolve; allow; start", "lapse", "lost"},
	} {
		if got := answer(t, standing(t, tc.by), tc.deed, map[lifecycle.Row]bool{}); got != tc.want {
			t.Errorf("%s after %q: %s, want %s", tc.deed, tc.by, got, tc.want)
		}
	}
}

// A kind with the payload of another is refused before anybody reads it.
func TestAPayloadOfAnotherKind(t *testing.T) {
	w := standing(t, "propose; resolve; allow")
	for _, payload := range []any{nil, &events.JobDeclined{}, events.JobStarted{}} {
		e := events.Event{Seq: 4, Expect: 3, Subject: events.For("job.started", "default", "j1", "w1"), Kind: "job.started", Payload: payload}
		j, err := lifecycle.Apply(w.job, e)
		var refused *lifecycle.Refusal
		if !errors.As(err, &refused) || refused.Code != lifecycle.CodePayload || j.Status != lifecycle.Approved {
			t.Errorf("%T: %v, %q", payload, err, j.Status)
		}
	}
}

func TestFoldReportsEveryRefusal(t *testing.T) {
	w := standing(t, "propose; resolve; allow")
	_ = w.do("finish")
	_ = w.do("start")
	_ = w.do("finish w2")
	j, refused := lifecycle.Fold(w.stored)
	if len(refused) != 2 || j.Status != lifecycle.Running || !j.Tainted {
		t.Errorf("%q with %v", j.Status, refused)
	}
	if !standing(t, "propose attempts=2; resolve; allow; start; finish outcome=failed retry=1; start").job.RetryAt().IsZero() {
		t.Error("a running job waits for a retry")
	}
}
