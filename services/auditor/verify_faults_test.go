package auditor

import (
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/site"
)

// lose makes the stream lose its next messages of an actor before they are read.
func (f *forge) lose(n int, actor string) events.FaultName {
	f.t.Helper()
	name := events.FaultName{Code: events.FaultGap, Seq: f.seq + 1, To: f.seq + uint64(n)}
	for range n {
		f.stored(f.message(events.For("job.proposed", "default", "gone", actor), proposal("gone")))
	}
	if _, err := f.log.AppendGap(name.Seq, name.To); err != nil {
		f.t.Fatal(err)
	}
	return name
}

func (f *forge) acknowledge(actor string, names ...events.FaultName) {
	f.t.Helper()
	f.add(f.message(events.For("gap.acknowledged", events.SiteScope, site.Epoch, actor), events.GapAcknowledged{Faults: names, Reason: "known"}))
}

// TestVerifyGaps: a gap fails completeness until an admin has named exactly it.
func TestVerifyGaps(t *testing.T) {
	for name, c := range map[string]struct {
		do      func(f *forge)
		letters string
		word    string
	}{
		"nobody's":      {func(f *forge) { f.lose(2, "proposer") }, "IAcF", "no admin has acknowledged"},
		"an admin's":    {func(f *forge) { f.acknowledge("person", f.lose(2, "proposer")) }, "IACF", "intact with 1 acknowledged gap(s), 2 sequence(s); person at sequence"},
		"the gate's":    {func(f *forge) { f.acknowledge("gate", f.lose(2, "proposer")) }, "IacF", "no admin has acknowledged"},
		"about another": {func(f *forge) { g := f.lose(2, "proposer"); g.To++; f.acknowledge("person", g) }, "IAcF", "no admin has acknowledged"},
		"in advance": {func(f *forge) {
			f.acknowledge("person", events.FaultName{Code: events.FaultGap, Seq: f.seq + 2, To: f.seq + 3})
			f.lose(2, "proposer")
		}, "IAcF", "no admin has acknowledged"},
		"one of two": {func(f *forge) {
			one := f.lose(1, "proposer")
			f.propose("between")
			f.lose(1, "proposer")
			f.acknowledge("person", one)
		}, "IAcF", "no admin has acknowledged"},
		"a session lost more than the gap": {func(f *forge) {
			g := f.lose(1, "proposer")
			f.n["proposer"]++
			f.propose("after")
			f.acknowledge("person", g)
		}, "IAcF", codeSessionHole},
		"a job's event": {func(f *forge) {
			g := f.lose(1, "proposer")
			f.add(f.message(events.For("job.denied", "default", "gone", "gate"), events.JobDenied{Basis: "policy"}))
			f.acknowledge("person", g)
		}, "IACF", "1 acknowledged gap(s)"},
		"a stated fault": {func(f *forge) {
			f.add(f.message(events.For("audit.fault_found", events.SiteScope, site.Epoch, "auditor"), events.AuditFaultFound{Code: faultWeak, Detail: "d"}))
		}, "IAcF", "states the fault weak_stream"},
		"an acknowledged fault": {func(f *forge) {
			st := f.add(f.message(events.For("audit.fault_found", events.SiteScope, site.Epoch, "auditor"), events.AuditFaultFound{Code: faultWeak, Detail: "d"}))
			f.acknowledge("person", events.FaultName{Code: faultWeak, Seq: st.Seq})
		}, "IACF", "intact with 1 acknowledged fault(s)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			f.propose("a")
			c.do(f)
			f.propose("b")
			f.seal()
			code := 1
			if c.letters == "IACF" {
				code = 0
			}
			expect(t, f.verify(), c.letters, code, c.word)
		})
	}
}
