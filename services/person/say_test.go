package person

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab/stage"
)

// carriesOut plays the gate: it does what is asked of a job as soon as it is asked.
func carriesOut(s *stage.Stage, id string, kind events.Kind, payload func(lifecycle.Job, events.Stored) any) {
	s.T.Helper()
	acted := make(chan struct{})
	acts := sync.OnceFunc(func() { close(acted) })
	s.T.Cleanup(func() { // its append may still wait for the answer when the job has ended
		select {
		case <-acted:
		case <-time.After(stage.Patience):
		}
	})
	stop, err := s.Conn("gate").Live(s.Context(), events.Filter("ask", id), func(st events.Stored) {
		defer acts()
		j := s.Job(id)
		if j.Status.Final() {
			return
		}
		if _, err := s.Voice("gate").Append(context.Background(), events.For(kind, j.Pool, id, "gate"), j.LastSeq, payload(j, st)); err != nil {
			s.T.Error(err)
		}
	})
	stage.Must(s.T, err)
	s.T.Cleanup(stop)
}

func TestCancelWaitsForTheEndAndAsksOnce(t *testing.T) {
	s := newStage(t)
	id := ready(s, 1)
	carriesOut(s, id, "job.cancelled", func(_ lifecycle.Job, st events.Stored) any {
		return &events.JobCancelled{By: stage.Person, Reason: "enough", Request: st.Seq}
	})
	for range 2 {
		j, err := desk(s, stage.Person).Cancel(s.Context(), id, "enough")
		if err != nil || j.Status != lifecycle.Cancelled {
			t.Fatalf("%s, %v", j.Status, err)
		}
	}
	if n := s.Count("ask.cancel_requested", id); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A revocation is for what waits for its start; for anything else there is another
// word, which the refusal names.
func TestRevokeIsRefusedWhereItMeansNothing(t *testing.T) {
	s := newStage(t)
	id := ready(s, 1)
	_, err := desk(s, stage.Person).Revoke(s.Context(), id, "too early")
	if codeOf(err) != CodeNotApproved || !strings.Contains(err.(*Refusal).Next, "deny") {
		t.Errorf("%v", err)
	}
	_, err = desk(s, stage.Person).Deny(s.Context(), id, "no")
	stage.Must(t, err)
	if _, err := desk(s, stage.Person).Revoke(s.Context(), id, "too late"); codeOf(err) != CodeEnded {
		t.Errorf("%v", err)
	}
	if _, err := desk(s, stage.Person).Cancel(s.Context(), id, "too late"); codeOf(err) != CodeEnded {
		t.Errorf("%v", err)
	}
	if s.Count("ask.revoke_requested", id)+s.Count("ask.cancel_requested", id) != 0 {
		t.Error("something was asked all the same")
	}
	other := ready(s, 1)
	_, err = desk(s, stage.Second).Approve(s.Context(), other)
	stage.Must(t, err)
	carriesOut(s, other, "job.revoked", func(j lifecycle.Job, st events.Stored) any {
		return &events.JobRevoked{Proposal: j.ProposalDigest, By: stage.Person, Reason: "off", Request: st.Seq}
	})
	if j, err := desk(s, stage.Person).Revoke(s.Context(), other, "off"); err != nil || j.Status != lifecycle.Revoked {
		t.Errorf("%s, %v", j.Status, err)
	}
}

// What goes on record for ever is text, and not too much of it.
func TestWhatIsSaidIsText(t *testing.T) {
	s := newStage(t)
	id := ready(s, 1)
	d := desk(s, stage.Person)
	for text, code := range map[string]string{" \n": CodeNoReason, strings.Repeat("x", maxTextBytes+1): CodeBadText, "\xff": CodeBadText, "a\x00b": CodeBadText, "use --token=FAKEq7Wm3Zx9Kc2Vb8Nf4T": CodeSecret} {
		_, cancel := d.Cancel(s.Context(), id, text)
		for what, err := range map[string]error{"comment": d.Comment(s.Context(), id, text), "cancel": cancel} {
			if codeOf(err) != code {
				t.Errorf("%s %.10q: %v, want %s", what, text, err, code)
			}
		}
	}
	if _, err := d.Deny(s.Context(), id, "DB_PASSWORD=FAKEq7Wm3Zx9 is in it"); codeOf(err) != CodeSecret || strings.Contains(err.Error(), "FAKE") {
		t.Errorf("a denial with a secret: %v", err)
	}
	stage.Must(t, d.Comment(s.Context(), id, "looks harmless"))
	stage.Must(t, desk(s, stage.Second).Comment(s.Context(), id, "to me, too"))
	if n := s.Count("ask.commented", id); n != 2 {
		t.Errorf("%d comments", n)
	}
}

// A bar is set once, and lifted by anybody but the one whom it bars.
func TestBarAndClear(t *testing.T) {
	s := newStage(t)
	id := ready(s, 1, func(p *events.JobProposed) { p.Proposer = events.Proposer{Kind: "person", ID: stage.Second} })
	d, own := desk(s, stage.Person), desk(s, stage.Second)
	j, err := d.Deny(s.Context(), id, "no")
	stage.Must(t, err)
	stage.Must(t, d.Bar(s.Context(), j))
	stage.Must(t, d.Bar(s.Context(), j))
	content := events.Content(j.Proposal.Proposer, j.Proposal.Argv, j.Proposal.Cwd)
	if n := s.Count("ask.barred", content); n != 1 {
		t.Errorf("barred %d times", n)
	}
	if _, err := own.Clear(s.Context(), id, "let me"); codeOf(err) != CodeOwnBar {
		t.Errorf("%v", err)
	}
	_, err = d.Clear(s.Context(), id, "all right")
	stage.Must(t, err)
	if _, err := d.Clear(s.Context(), id, "again"); codeOf(err) != CodeNotBarred {
		t.Errorf("%v", err)
	}
}

// A waiver is for a refusal on record, for its proposer, and is said once.
func TestWaiveWhatIsOnRecord(t *testing.T) {
	s := newStage(t)
	refuse := func(content string, p events.Proposer) {
		id := events.RefusalID(p)
		s.Say("proposer", "proposal.refused", events.SiteScope, id, s.Last(events.Filter("proposal", id)), events.ProposalRefused{
			Proposer: p, Code: "secret", Count: 1, Content: content, Where: "argument 1 looks like it holds a secret (field)",
		})
	}
	local := events.Proposer{Kind: "agent", ID: "local"}
	one, two, mine := strings.Repeat("a", 63)+"1", strings.Repeat("a", 63)+"2", strings.Repeat("b", 64)
	refuse(one, local)
	refuse(two, local)
	refuse(mine, events.Proposer{Kind: "person", ID: stage.Person})
	d := desk(s, stage.Person)
	for prefix, code := range map[string]string{"aaaa": CodeNoRefusal, "aaaaaaaa": CodeAmbiguous, "cccccccc": CodeNoRefusal, mine: CodeOwnWaiver} {
		if _, err := d.Waive(s.Context(), prefix, "an example", 60); codeOf(err) != code {
			t.Errorf("%s: %v, want %s", prefix, err, code)
		}
	}
	for _, valid_s := range []int{0, -1, maxWaiver_s + 1} {
		if _, err := d.Waive(s.Context(), one, "an example", valid_s); codeOf(err) != CodeBadText {
			t.Errorf("for %d s: %v", valid_s, err)
		}
	}
	if _, err := d.Waive(s.Context(), one, "", 60); codeOf(err) != CodeNoReason {
		t.Errorf("without a reason: %v", err)
	}
	for range 2 {
		found, err := d.Waive(s.Context(), strings.ToUpper(one), "an example", 60)
		if err != nil || found.Content != one || found.Proposer != local || found.Where == "" {
			t.Errorf("%+v, %v", found, err)
		}
	}
	if n := s.Count("ask.waived", one); n != 1 {
		t.Errorf("waived %d times", n)
	}
}
