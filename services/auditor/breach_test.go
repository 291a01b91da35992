package auditor

import (
	"slices"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/trust"
)

// breaches plays against a ledger that knows a job which waits for a decision.
type breaches struct {
	f          *forge
	l          *ledger
	proposal   string
	resolution string
	approval   events.Subject
}

func newBreaches(t *testing.T) *breaches {
	f := newForge(t)
	b := &breaches{f: f, l: newTestLedger(t, f), approval: events.For("job.approved", "default", "a", "p1")}
	p := proposal("a")
	p.Proposer = events.Proposer{Kind: "person", ID: "p2"}
	f.take(b.l, f.message(events.For("job.proposed", "default", "a", "proposer"), p))
	b.proposal = digest(t, p)
	r := events.JobResolved{Proposal: b.proposal, Policy: "p", Program: events.FileDigest{Path: "/bin/true", SHA256: "00"}, Cwd: "/"}
	b.resolution = digest(t, r)
	f.take(b.l, f.message(events.For("job.resolved", "default", "a", "worker"), r))
	f.take(b.l, f.message(events.For("job.assessed", "default", "a", "gate"), events.JobAssessed{Proposal: b.proposal, Resolution: b.resolution, Policy: "p", Quorum: 1, Ruling: events.Ruling{Code: "rule", Reason: "a test"}}))
	if found, _ := b.l.news(); len(found) > 0 {
		t.Fatalf("the job itself breaks a rule: %+v", found)
	}
	return b
}

func (b *breaches) yes() events.JobApproved {
	return events.JobApproved{
		Proposal: b.proposal, Resolution: b.resolution, Policy: "p", Basis: "person", Ruling: events.Ruling{Code: "person", Reason: "a test"},
		ValidS: 60, MaxAttempts: 1,
	}
}

// TestEveryBreachHasItsCode stores what a decision must not be, one breach at a time, and
// wants the auditor to name just that.
func TestEveryBreachHasItsCode(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *breaches)
		want []string
	}{
		"nothing is wrong": {func(b *breaches) { b.f.take(b.l, b.f.message(b.approval, b.yes())) }, nil},
		"unsigned": {func(b *breaches) {
			m := b.f.message(b.approval, b.yes())
			delete(m.Header, events.HeaderSignature)
			b.f.take(b.l, m)
		}, []string{trust.CodeMalformed}},
		"another key": {func(b *breaches) {
			b.f.signers["p1"] = b.f.signers["gate"]
			b.f.take(b.l, b.f.message(b.approval, b.yes()))
		}, []string{trust.CodeWrongKey}},
		"another role": {func(b *breaches) {
			b.f.take(b.l, b.f.message(events.For("job.approved", "default", "a", "proposer"), b.yes()))
		}, []string{trust.CodeNoRight}},
		"signed for the subject of another job": {func(b *breaches) {
			m := b.f.message(events.For("job.approved", "default", "b", "p1"), b.yes())
			m.Subject = b.approval
			b.f.take(b.l, m)
		}, []string{trust.CodeMalformed}},
		"signed for another pool": {func(b *breaches) {
			m := b.f.message(events.For("job.approved", "other", "a", "p1"), b.yes())
			m.Subject = b.approval
			b.f.take(b.l, m)
		}, []string{trust.CodeBadSignature}},
		"signed for another site": {func(b *breaches) {
			here := b.f.origin
			b.f.origin = "site-other"
			m := b.f.message(b.approval, b.yes())
			b.f.origin = here
			b.f.take(b.l, m)
		}, []string{trust.CodeMalformed}},
		"the same once more": {func(b *breaches) {
			m := b.f.message(b.approval, b.yes())
			b.f.take(b.l, m)
			b.l.news()
			b.f.take(b.l, m)
		}, []string{codeWrongPosition, codeIDReused}},
		"a number that was used": {func(b *breaches) {
			b.f.take(b.l, b.f.message(events.For("ask.commented", "default", "x", "p1"), events.AskCommented{}))
			b.l.news()
			b.f.n["p1"]--
			b.f.take(b.l, b.f.message(b.approval, b.yes()))
		}, []string{codeIDReused}},
		"a number that is left out": {func(b *breaches) {
			b.f.take(b.l, b.f.message(events.For("ask.commented", "default", "x", "p1"), events.AskCommented{}))
			b.l.news()
			b.f.n["p1"]++
			b.f.take(b.l, b.f.message(b.approval, b.yes()))
		}, []string{codeSessionHole}},
		"a decision about one's own proposal": {func(b *breaches) {
			b.f.take(b.l, b.f.message(events.For("job.approved", "default", "a", "p2"), b.yes()))
		}, []string{lifecycle.CodeSelfApproval}},
		"another proposal": {func(b *breaches) {
			yes := b.yes()
			yes.Proposal = digest(b.f.t, proposal("b"))
			b.f.take(b.l, b.f.message(b.approval, yes))
		}, []string{lifecycle.CodeOtherProposal}},
		"another resolution": {func(b *breaches) {
			yes := b.yes()
			yes.Resolution = digest(b.f.t, proposal("b"))
			b.f.take(b.l, b.f.message(b.approval, yes))
		}, []string{lifecycle.CodeOtherResolution}},
		"the request has expired": {func(b *breaches) {
			b.f.at = b.f.at.Add(2 * time.Hour)
			b.f.take(b.l, b.f.message(b.approval, b.yes()))
		}, []string{lifecycle.CodeTooLate}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBreaches(t)
			c.do(b)
			found, _ := b.l.news()
			var codes []string
			for _, u := range found {
				codes = append(codes, u.Code)
			}
			if !slices.Equal(codes, c.want) {
				t.Errorf("codes %q, want %q", codes, c.want)
			}
		})
	}
}
