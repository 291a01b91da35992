package auditor

import (
	"os"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/lab"
)

// TestErasureIsCarriedOutAfterARestart: an order that was given while no auditor ran is
// carried out by the next one, and so is an old order where the text has come back, as
// it does with a backup; also where the index was lost.
func TestErasureIsCarriedOutAfterARestart(t *testing.T) {
	s := newSite(t)
	person, ctx := s.plan.Person, t.Context()
	ref, kept := events.KeepText([events.TextNonceBytes]byte{7}, "a name that has to go")
	keep := func() {
		t.Helper()
		if err := s.conn(person).PutText(ctx, ref.Digest, kept); err != nil {
			t.Fatal(err)
		}
	}
	there := func() bool {
		t.Helper()
		_, found, err := s.conn("reader").Text(ctx, ref.Digest)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	keep()
	p := proposal("job1")
	p.Reason = ref.String()
	proposed := s.say("proposer", events.For("job.proposed", "default", "job1", "proposer"), 0, p)
	a := s.audit(nil)
	s.sealed(proposed)
	a.stop(t)
	order := s.say(person, events.For("text.erased", events.SiteScope, ref.Digest, person), 0, events.TextErased{Reason: "a test"})
	if !there() {
		t.Fatal("it is gone, although no auditor runs")
	}
	for _, before := range []func(){func() {}, keep, func() {
		keep()
		if err := os.Remove(s.layout.AuditIndex()); err != nil {
			t.Fatal(err)
		}
	}} {
		before()
		a = s.audit(nil)
		s.sealed(order)
		lab.Eventually(t, "the text to be erased", func() bool { return !there() })
		a.stop(t)
	}
	r, err := Verify(ctx, Options{LogDir: s.layout.AuditLog(), HeadFile: s.layout.AuditHead(), Origin: s.plan.Origin, RootKey: s.plan.RootKey(), Texts: s.conn("reader")})
	if err != nil || !r.Completeness.OK || !r.Integrity.OK || r.Erased != 1 || r.Texts != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
