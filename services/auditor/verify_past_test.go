package auditor

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/site"
)

// published adds the auditor's word about the head that there is.
func (f *forge) published(change func(*events.AuditSealed)) {
	f.t.Helper()
	h := f.log.Head()
	p := events.AuditSealed{Note: string(h.Note), Size: h.Size, Root: base64.StdEncoding.EncodeToString(h.Root[:]), ThroughSeq: f.seq, Dispatch: dispatchOpen}
	change(&p)
	f.add(f.message(events.For("audit.sealed", events.SiteScope, site.Epoch, "auditor"), p))
}

// TestVerifyPastHeads: what the auditor has published must be a head of this log.
func TestVerifyPastHeads(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*events.AuditSealed)
		letters string
		code    int
		word    string
	}{
		"the head":            {func(*events.AuditSealed) {}, "IACF", 0, ""},
		"another root":        {func(p *events.AuditSealed) { p.Root = base64.StdEncoding.EncodeToString(make([]byte, 32)) }, "iACF", 1, "fork: leaf"},
		"more than there was": {func(p *events.AuditSealed) { p.Size = 4 }, "iACF", 1, "more than lie before"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			f.propose("a")
			f.seal()
			f.published(c.change)
			f.propose("b")
			f.seal()
			expect(t, f.verify(), c.letters, c.code, c.word)
		})
	}
}

func TestVerifyAgainstAnchor(t *testing.T) {
	f := newForge(t)
	f.propose("a")
	f.seal()
	anchor := f.log.Head().Note
	f.propose("b")
	f.seal()
	expect(t, f.verify(func(o *Options) { o.Anchor = anchor }), "IACF", 0, "")
	expect(t, f.verify(func(o *Options) { o.Anchor = append(anchor[:len(anchor)-5:len(anchor)-5], "AA==\n"...) }), "iACF", 1, "the anchor is not signed")

	ahead := f.log.Head().Note
	g := newForge(t)
	g.propose("other")
	g.seal()
	foreign := g.log.Head().Note
	expect(t, f.verify(func(o *Options) { o.Anchor = foreign }), "iACF", 1, "the anchor is not signed")
	expect(t, f.verify(func(o *Options) { o.Anchor = ahead }), "IACF", 0, "")
}

// TestVerifyForkFromAnchor: the same key tells another history.
func TestVerifyForkFromAnchor(t *testing.T) {
	d := drill{}
	var err error
	if d.site, err = newDrillSite(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	defer d.site.stop()
	if err := d.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := d.site
	told := append(s.history[:2:2], s.history[3:]...)
	other, err := s.build("other", s.signer, told, len(told))
	if err != nil {
		t.Fatal(err)
	}
	anchor := func(h drillHost) []byte { return (&verifier{options: Options{LogDir: h.log()}}).readCheckpoint() }
	for name, c := range map[string]struct {
		host   drillHost
		anchor []byte
		word   string
	}{
		"fork":     {other, anchor(d.old), "fork: the anchor"},
		"rollback": {d.old, anchor(d.now), "rollback: the anchor"},
		"growth":   {d.now, anchor(d.old), ""},
	} {
		r, err := Verify(t.Context(), Options{LogDir: c.host.log(), Origin: drillOrigin, RootKey: s.signers["root"].Public(), Anchor: c.anchor})
		if err != nil || r.Integrity.OK != (c.word == "") || !strings.Contains(r.Integrity.Reason, c.word) {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}
