package auditor

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/index"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/trust"
)

// newTestLedger is a ledger over an empty index that has seen the forge's trust file.
func newTestLedger(t *testing.T, f *forge) *ledger {
	t.Helper()
	x, err := index.Open(filepath.Join(t.TempDir(), "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	l := newLedger(trust.New(f.origin, f.root.Public()), x, f.signers["auditor"].Public())
	if err := l.take(f.file, 1); err != nil {
		t.Fatal(err)
	}
	return l
}

func (f *forge) take(l *ledger, m events.Message) events.Stored {
	f.t.Helper()
	st := f.stored(m)
	if err := l.take(st, int64(st.Seq)); err != nil {
		f.t.Fatal(err)
	}
	return st
}

func commit(t *testing.T, l *ledger, f *forge) {
	t.Helper()
	if _, err := l.commit(index.Position{Through: f.seq, Leaves: int64(f.seq) + 1}); err != nil {
		t.Fatal(err)
	}
}

func TestAcknowledgementOpensDispatch(t *testing.T) {
	f := newForge(t)
	l := newTestLedger(t, f)
	f.seq += 3
	if err := l.gap(f.seq-2, f.seq); err != nil {
		t.Fatal(err)
	}
	commit(t, l, f)
	c, err := l.counts()
	if err != nil || !c.closed() || c.gaps != 1 || c.missing != 3 {
		t.Fatalf("after a gap: %+v, %v", c, err)
	}
	weak := f.take(l, f.message(events.For("audit.fault_found", events.SiteScope, site.Epoch, "auditor"), events.AuditFaultFound{Code: faultWeak, Detail: "a test"}))
	if !l.seals {
		t.Error("a fault is not told with the next head")
	}
	commit(t, l, f)
	gap := events.FaultName{Code: events.FaultGap, Seq: c.open[0].Seq, To: c.open[0].To}
	other := gap
	other.To++
	fault := events.FaultName{Code: faultWeak, Seq: weak.Seq}
	for _, step := range []struct {
		who  string
		name events.FaultName
		open int // afterwards
	}{{"gate", gap, 2}, {"person", other, 2}, {"person", events.FaultName{Code: faultStream, Seq: weak.Seq}, 2}, {"person", fault, 1}, {"person", gap, 0}} {
		f.take(l, f.message(events.For("gap.acknowledged", events.SiteScope, site.Epoch, step.who), events.GapAcknowledged{Faults: []events.FaultName{step.name}, Reason: "a test"}))
		if !l.seals {
			t.Error("an acknowledgement is not sealed")
		}
		commit(t, l, f)
		c, err := l.counts()
		if err != nil || len(c.open) != step.open || c.closed() != (step.open > 0) {
			t.Errorf("after %s acknowledged %+v: %+v, %v", step.who, step.name, c, err)
		}
	}
}

// TestOwnEventsAreNotReported: an auditor that was revoked does not answer its own
// unbelievable events with more of them; a stranger's are reported.
func TestOwnEventsAreNotReported(t *testing.T) {
	f := newForge(t)
	l := newTestLedger(t, f)
	report := func() events.Message {
		return f.message(events.For("audit.violation_found", events.SiteScope, site.Epoch, "auditor"), events.AuditViolationFound{Seq: 1, Code: "x", Detail: "y"})
	}
	own := f.signers["auditor"]
	f.signers["auditor"] = signer(t)
	f.take(l, report())
	if found, _ := l.news(); len(found) != 1 || found[0].Code != trust.CodeWrongKey {
		t.Errorf("a forged report: %+v", found)
	}
	f.signers["auditor"] = own
	f.n["auditor"] = 0
	f.take(l, f.message(events.For("trust.published", events.SiteScope, events.TrustID, "root"), events.TrustPublished{Version: 2, Origin: f.origin}))
	f.take(l, report())
	if found, _ := l.news(); len(found) != 0 || !strings.Contains(l.disowned, "not in trust file 2") {
		t.Errorf("its own report: %+v, disowned %q", found, l.disowned)
	}
}

func TestSaidIsNotSaidAgain(t *testing.T) {
	f := newForge(t)
	l := newTestLedger(t, f)
	good := f.signers["proposer"]
	f.signers["proposer"] = signer(t)
	bad := f.take(l, f.message(events.For("job.proposed", "default", "b", "proposer"), proposal("b")))
	f.signers["proposer"] = good
	for _, commits := range []bool{false, true} {
		if commits {
			commit(t, l, f)
		}
		if u, err := l.unsaid(); err != nil || len(u) != 1 || u[0].Seq != bad.Seq || u[0].Job != "b" {
			t.Errorf("unsaid %+v, %v", u, err)
		}
	}
	f.take(l, f.message(events.For("audit.violation_found", events.SiteScope, site.Epoch, "auditor"), events.AuditViolationFound{Seq: bad.Seq, Code: trust.CodeWrongKey, Detail: "y"}))
	for _, commits := range []bool{false, true} {
		if commits {
			commit(t, l, f)
		}
		if u, err := l.unsaid(); err != nil || len(u) != 0 {
			t.Errorf("unsaid %+v, %v", u, err)
		}
	}
	if c, err := l.counts(); err != nil || c.found != 1 {
		t.Errorf("counts %+v, %v", c, err)
	}
}

func TestJobOf(t *testing.T) {
	for subject, want := range map[string]string{
		"bm.job.default.abc.proposed.proposer": "abc",
		"bm.job.default.abc.weird":             "abc", // malformed, but read with the job
		"bm.job.default.abc.a.b.c":             "abc",
		"bm.job.default.abc":                   "",
		"bm.job.default.A.proposed.x":          "",
		"bm.trust.site.main.published.root":    "",
		"":                                     "",
	} {
		if got := jobOf(subject); got != want {
			t.Errorf("%q belongs to job %q, want %q", subject, got, want)
		}
	}
}

// FuzzTake: no stored message, whatever it is, stops the fold or changes what it
// believes of a good job.
func FuzzTake(f *testing.F) {
	f.Add("bm.job.default.abc.proposed.proposer", "ce-id", "x", []byte("{}"))
	f.Add("bm.audit.site.epoch-1.sealed.auditor", "bm-sig", "ed25519: ", []byte(nil))
	f.Add("bm.gap.site.epoch-1.acknowledged.person", "ce-type", "banksman.gap.acknowledged", []byte("["))
	f.Add("", "", "", []byte{0xff})
	x, err := index.Open(filepath.Join(f.TempDir(), "index.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { x.Close() })
	f.Fuzz(func(t *testing.T, subject, name, value string, data []byte) {
		l := newLedger(trust.New("site-test", ""), x, "")
		st := events.Stored{Seq: 7, Subject: subject, Header: map[string][]string{name: {value}}, Data: data}
		metaOf(st)
		if err := l.take(st, 7); err != nil {
			t.Fatal(err)
		}
		found, said := l.news()
		if len(found) != 1 || len(said) != 0 {
			t.Errorf("found %+v, said %v", found, said)
		}
	})
}
