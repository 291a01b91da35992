package auditor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/site"
)

// admin is the JetStream of the bus itself, as who has taken over the server uses it.
func (s *testSite) admin() jetstream.JetStream {
	s.t.Helper()
	login, err := keys.LoadLogin(s.layout.LoginKey("bus"))
	if err != nil {
		s.t.Fatal(err)
	}
	var cfg bus.Config
	s.bus.Use(&cfg)
	nc, err := nats.Connect("", nats.InProcessServer(cfg.InProcess), nats.Nkey(login.Public(), login.SignNonce))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		s.t.Fatal(err)
	}
	return js
}

// settings changes the stream's configuration behind the product's back.
func (s *testSite) settings(change func(*jetstream.StreamConfig)) {
	s.t.Helper()
	js := s.admin()
	st, err := js.Stream(s.t.Context(), grants.Stream)
	if err != nil {
		s.t.Fatal(err)
	}
	c := st.CachedInfo().Config
	change(&c)
	if _, err := js.UpdateStream(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
}

// recreate deletes the stream and makes it again, with the site's first events.
func (s *testSite) recreate(change func(*jetstream.StreamConfig)) {
	s.t.Helper()
	js := s.admin()
	st, err := js.Stream(s.t.Context(), grants.Stream)
	if err != nil {
		s.t.Fatal(err)
	}
	c := st.CachedInfo().Config
	change(&c)
	if err := js.DeleteStream(s.t.Context(), grants.Stream); err != nil {
		s.t.Fatal(err)
	}
	if _, err := js.CreateStream(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	first, err := site.ReadGenesis(s.layout)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range first {
		if _, err := s.conn("bus").AppendRaw(s.t.Context(), m); err != nil {
			s.t.Fatal(err)
		}
	}
}

// unprotected makes a site whose stream lets messages be deleted. The auditor that s
// has is not shown that, so that the loss alone is found.
func unprotected(t *testing.T) *testSite {
	s := newSite(t)
	s.recreate(func(c *jetstream.StreamConfig) { c.DenyDelete, c.DenyPurge = false, false })
	return s
}

// harm does something to the stream itself.
func (s *testSite) harm(do func(ctx context.Context, st jetstream.Stream) error) {
	s.t.Helper()
	st, err := s.admin().Stream(s.t.Context(), grants.Stream)
	if err == nil {
		err = do(s.t.Context(), st)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func protectedAll(in Stream) Stream {
	return other{Stream: in, state: func(s *bus.State) { s.Weak = nil }}
}

// block is the file that holds the stream's messages.
func (s *testSite) block() string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.layout.BusStore(), "jetstream", "*", "streams", grants.Stream, "msgs", "1.blk"))
	if err != nil || len(found) != 1 {
		s.t.Fatal(found, err)
	}
	return found[0]
}

// keep copies the store of a stopped bus, back puts the copy in its place.
func (s *testSite) keep() (back func()) {
	s.t.Helper()
	kept := filepath.Join(s.t.TempDir(), "kept")
	if err := os.CopyFS(kept, os.DirFS(s.layout.BusStore())); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(s.layout.BusStore()); err == nil {
			err = os.CopyFS(s.layout.BusStore(), os.DirFS(kept))
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// closes waits until the auditor lists a fault with a code.
func (r *running) closes(s *testSite, code string) query.Fault {
	s.t.Helper()
	r.until(s.t, "the fault "+code, func(ready bool, reason string) bool { return !ready && strings.Contains(reason, "fault ") })
	s.heard("the fault on the stream", func(p any) bool { f, ok := p.(*events.AuditFaultFound); return ok && f.Code == code })
	s.heard("closed dispatch", func(p any) bool { h, ok := p.(*events.AuditSealed); return ok && h.Dispatch == dispatchClosed })
	var f query.Fault
	eventually(s.t, "the fault in status", func() bool {
		var status query.AuditStatus
		if s.conn(s.plan.Person).Ask(s.t.Context(), query.Audit, struct{}{}, &status) != nil {
			return false
		}
		i := slices.IndexFunc(status.Faults, func(f query.Fault) bool { return f.Code == code })
		if i >= 0 {
			f = status.Faults[i]
		}
		return i >= 0
	})
	return f
}

// drained waits until the auditor has read all that is stored.
func (s *testSite) drained() {
	s.t.Helper()
	eventually(s.t, "the auditor to have read everything", func() bool {
		var status query.AuditStatus
		s.ask(query.Audit, struct{}{}, &status)
		last, err := s.conn("reader").LastSeq(s.t.Context())
		return err == nil && status.LastSeq == last && status.ThroughSeq == s.published()
	})
}

// published is what the newest head on the stream covers.
func (s *testSite) published() uint64 {
	s.t.Helper()
	sealed, _, _ := s.audits()
	if len(sealed) == 0 {
		return 0
	}
	return sealed[len(sealed)-1].ThroughSeq
}

// TestLossIsFoundAndHealed: what the stream loses after it was read has a name and a
// place, closes dispatch, and an admin's word reopens: the log holds what was lost.
func TestLossIsFoundAndHealed(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(s *testSite, lost *story)
	}{
		"deleted": {harm: func(s *testSite, j *story) {
			s.harm(func(ctx context.Context, st jetstream.Stream) error { return st.DeleteMsg(ctx, j.proposed) })
		}},
		"secure deleted": {harm: func(s *testSite, j *story) {
			s.harm(func(ctx context.Context, st jetstream.Stream) error { return st.SecureDeleteMsg(ctx, j.proposed) })
		}},
		"purged by subject": {harm: func(s *testSite, j *story) {
			s.harm(func(ctx context.Context, st jetstream.Stream) error {
				return st.Purge(ctx, jetstream.WithPurgeSubject("bm.job.default."+j.id+".>"))
			})
		}},
	} {
		for _, live := range []bool{true, false} {
			if live && name != "deleted" {
				continue // one way to lose an event is enough beside a running auditor
			}
			t.Run(fmt.Sprintf("%s, live %v", name, live), func(t *testing.T) {
				s := unprotected(t)
				a := s.audit(protectedAll)
				lost := s.propose("lost")
				j := s.propose("kept")
				s.sealed(j.last)
				a.until(t, "readiness", isReady)
				if !live {
					a.stop(t)
				}
				c.harm(s, lost)
				if !live {
					a = s.audit(protectedAll)
				}
				f := a.closes(s, faultStream)
				if want := fmt.Sprintf("events %d to %d", lost.proposed, lost.proposed); !f.Acknowledgeable || !strings.Contains(f.Detail, want) {
					t.Errorf("%+v, want %s", f, want)
				}
				s.healed(a, 1)
			})
		}
	}
}

// healed has an admin acknowledge, wants dispatch open, also after a restart, and the
// log intact with so many acknowledged faults.
func (s *testSite) healed(a *running, n int) {
	t := s.t
	t.Helper()
	s.acknowledge("known")
	a.until(t, "readiness", isReady)
	j := s.propose("after")
	s.approve(j)
	s.sealed(j.last)
	var ready query.ReadyJobs
	if err := s.conn("worker").Ask(t.Context(), query.Ready+".default", query.ReadyRequest{}, &ready); err != nil || !slices.Contains(ready.Jobs, j.id) {
		t.Errorf("ready %v, %v", ready, err)
	}
	a.stop(t)
	a = s.audit(protectedAll)
	a.until(t, "readiness", isReady)
	s.scrubbed()
	if list := s.faults(); len(list) > 0 {
		t.Errorf("after a restart: %+v", list)
	}
	if r := s.verify(); verdicts(r) != "IACF" || !strings.Contains(r.Completeness.Reason, fmt.Sprintf("intact with %d acknowledged fault(s)", n)) {
		t.Errorf("verify: %s %+v", verdicts(r), r)
	}
}

// scrubbed waits until the auditor has compared the stream once.
func (s *testSite) scrubbed() {
	s.t.Helper()
	s.sealed(s.propose("scrubbed").last)
}

// TestOldestDroppedIsNotHealed: a limit that drops the oldest events takes the first
// trust file with it. Nobody's word makes up for that, and the loosened limit is a
// fault of its own.
func TestOldestDroppedIsNotHealed(t *testing.T) {
	s := newSite(t)
	a := s.audit(nil)
	for i := range 5 {
		s.propose(fmt.Sprintf("job%d", i))
	}
	a.until(t, "readiness", isReady)
	last, err := s.conn("reader").LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.settings(func(c *jetstream.StreamConfig) { c.MaxMsgs = int64(last) + 100 })
	weak := a.closes(s, faultWeak)
	if weak.Acknowledgeable || !strings.Contains(weak.Detail, "max_msgs") || !strings.Contains(weak.Next, "set it back") {
		t.Errorf("while it is weak: %+v", weak)
	}
	s.settings(func(c *jetstream.StreamConfig) { c.MaxMsgs = -1 })
	s.heals(faultWeak)
	s.acknowledge("set back")
	a.until(t, "readiness", isReady)

	s.settings(func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 3, jetstream.DiscardOld })
	eventually(t, "both faults", func() bool { return s.has(faultWeak) && s.has(faultStream) })
	var ready query.ReadyJobs
	if err := s.conn("worker").Ask(t.Context(), query.Ready+".default", query.ReadyRequest{}, &ready); err != nil || len(ready.Jobs) > 0 {
		t.Errorf("ready %v, %v", ready, err)
	}
	s.settings(func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = -1, jetstream.DiscardNew })
	s.heals(faultWeak)
	lost := a.closes(s, faultStream)
	if lost.Acknowledgeable || !strings.Contains(lost.Detail, "events 1 to ") || !strings.Contains(lost.Next, "restore a backup") {
		t.Errorf("%+v", lost)
	}
}

// TestFullStreamIsAnsweredFor: a limit that takes no more events keeps the auditor from
// saying so on the stream. It answers for itself meanwhile, and says it afterwards.
func TestFullStreamIsAnsweredFor(t *testing.T) {
	s := newSite(t)
	a := s.audit(nil)
	s.sealed(s.propose("a").last)
	a.until(t, "readiness", isReady)
	s.settings(func(c *jetstream.StreamConfig) { c.MaxMsgs = 3 })
	eventually(t, "the fault", func() bool { return s.has(faultWeak) })
	a.until(t, "the fault on the board", func(ready bool, reason string) bool { return !ready && strings.Contains(reason, faultWeak) })
	s.settings(func(c *jetstream.StreamConfig) { c.MaxMsgs = -1 })
	a.closes(s, faultWeak)
	s.heals(faultWeak)
	s.acknowledge("set back")
	a.until(t, "readiness", isReady)
}

// has says whether status lists a fault with a code.
func (s *testSite) has(code string) bool {
	return slices.ContainsFunc(s.faults(), func(f query.Fault) bool { return f.Code == code })
}

// heals waits until a fault that is open may be acknowledged.
func (s *testSite) heals(code string) {
	s.t.Helper()
	eventually(s.t, "the fault "+code+" may be acknowledged", func() bool {
		return slices.ContainsFunc(s.faults(), func(f query.Fault) bool { return f.Code == code && f.Acknowledgeable })
	})
}

// TestDamagedBlock: damage on the disk of the bus, of which the server itself tells
// nothing or too little, is found by comparing.
func TestDamagedBlock(t *testing.T) {
	flip := func(from int) func([]byte) []byte {
		return func(b []byte) []byte {
			at := from
			if at < 0 {
				at += len(b)
			} else {
				at = len(b) / 2
			}
			b[at] ^= 1
			return b
		}
	}
	for name, c := range map[string]struct {
		change  func([]byte) []byte
		noIndex bool
		code    string
	}{
		"a bit in the middle":                       {change: flip(0), code: faultStream},
		"a bit of the last event":                   {change: flip(-20), code: faultStream},
		"a bit of the last checksum":                {change: flip(-4), code: faultStream},
		"the last bytes are missing":                {change: func(b []byte) []byte { return b[:len(b)-5] }, code: faultStream},
		"half is missing":                           {change: func(b []byte) []byte { return b[:len(b)/2] }, code: faultStream},
		"a bit in the middle, and the server's map": {change: flip(0), noIndex: true, code: faultRollback},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			a := s.audit(nil)
			var last uint64
			for i := range 8 {
				last = s.propose(fmt.Sprintf("job%d", i)).last
			}
			s.sealed(last)
			a.until(t, "readiness", isReady)
			s.drained()
			a.stop(t)
			s.stop()
			edit(t, s.block(), c.change)
			if c.noIndex {
				if err := os.Remove(filepath.Join(filepath.Dir(s.block()), "index.db")); err != nil {
					t.Fatal(err)
				}
			}
			s.start()
			a = s.audit(nil)
			f := a.closes(s, c.code)
			if f.Acknowledgeable != (c.code == faultStream) {
				t.Errorf("%+v", f)
			}
			if f.Acknowledgeable {
				s.healed(a, 1)
			}
		})
	}
}

// TestOtherStream: a stream that is not the audited one is refused with its name, live
// and at the next start, and nobody's word heals it.
func TestOtherStream(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, s *testSite, stop func())
		code string
	}{
		"recreated, live": {func(t *testing.T, s *testSite, _ func()) { s.recreate(func(*jetstream.StreamConfig) {}) }, faultRecreated},
		"recreated, and longer": {func(t *testing.T, s *testSite, stop func()) {
			stop()
			s.recreate(func(*jetstream.StreamConfig) {})
			for i := range 9 {
				s.propose(fmt.Sprintf("other%d", i))
			}
		}, faultRecreated},
		"rolled back": {func(t *testing.T, s *testSite, stop func()) {
			s.stop()
			back := s.keep()
			s.start()
			s.sealed(s.propose("more").last)
			stop()
			s.stop()
			back()
			s.start()
		}, faultRollback},
		"rolled back, and its sequences used again": {func(t *testing.T, s *testSite, stop func()) {
			s.stop()
			back := s.keep()
			s.start()
			s.sealed(s.propose("more").last)
			stop()
			s.stop()
			back()
			s.start()
			for i := range 9 {
				s.propose(fmt.Sprintf("other%d", i))
			}
		}, faultFork},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiteAt(t, freePort(t))
			child := s.child()
			ended := false
			stop := func() {
				if !ended {
					_ = child.Process.Kill()
					_ = child.Wait()
					ended = true
				}
			}
			defer stop()
			s.sealed(s.propose("a").last)
			s.sealed(s.propose("b").last)
			c.do(t, s, stop)
			if !ended { // it finds it while it runs
				eventually(t, "the fault", func() bool {
					var status query.AuditStatus
					err := s.conn(s.plan.Person).Ask(t.Context(), query.Audit, struct{}{}, &status)
					return err == nil && len(status.Faults) > 0 && status.Faults[0].Code == c.code
				})
				stop()
			}
			a := s.audit(nil)
			f := a.closes(s, c.code)
			if f.Acknowledgeable || !strings.Contains(f.Next, "restore a backup") {
				t.Errorf("%+v", f)
			}
		})
	}
}

// eventually waits for what the system under test shows only when it is asked.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}
