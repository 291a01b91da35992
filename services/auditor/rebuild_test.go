package auditor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/tlog"
)

func (s *testSite) rebuild(change ...func(*RebuildOptions)) (Rebuilt, error) {
	s.t.Helper()
	o := RebuildOptions{
		Layout: s.layout, Origin: s.plan.Origin, RootKey: s.plan.RootKey(), Own: s.key("auditor").Public(),
		Stream: s.conn("reader"), Dir: filepath.Join(s.t.TempDir(), "made"),
	}
	for _, f := range change {
		f(&o)
	}
	return Rebuild(s.t.Context(), o)
}

// audited is a site whose auditor has read everything, a forged event among it, and is
// gone.
func audited(t *testing.T) *testSite {
	s := newSite(t)
	a := s.audit(nil)
	s.forged("bad")
	j := s.propose("a")
	s.sealed(j.last) // so that there is a head before the last
	s.approve(j)
	s.finish(j)
	s.sealed(s.propose("b").last)
	a.until(t, "readiness", isReady)
	s.drained()
	a.stop(t)
	return s
}

func TestRebuildMakesTheSame(t *testing.T) {
	s := audited(t)
	r, err := s.rebuild()
	if err != nil || !r.Same() || r.Index != sameAgain || r.Sealed < 5 || r.Root == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	was, err := os.ReadFile(filepath.Join(s.layout.AuditLog(), "entries.log"))
	is, err2 := os.ReadFile(filepath.Join(r.Dir, "log", "entries.log"))
	if err != nil || err2 != nil || !bytes.HasPrefix(is, was) {
		t.Errorf("entries.log differs: %v, %v", err, err2)
	}
	r, err = s.rebuild(func(o *RebuildOptions) { o.Running = true })
	if err != nil || !r.Same() || r.Index != inUse {
		t.Errorf("beside an auditor: %+v, %v", r, err)
	}
	if _, err := s.rebuild(func(o *RebuildOptions) { o.Running, o.Replace = true, true }); err == nil || !strings.Contains(err.Error(), "stop it") {
		t.Errorf("replaced beside an auditor: %v", err)
	}
	if _, err := s.rebuild(func(o *RebuildOptions) { o.Dir = s.layout.State() }); err == nil {
		t.Error("rebuilt into a folder that was there")
	}
}

// TestRebuildReplaces: what is damaged or lost is named, left alone without a word, and
// made good with it.
func TestRebuildReplaces(t *testing.T) {
	for name, c := range map[string]struct {
		harm       func(s *testSite)
		log, index string
	}{
		"a changed entry": {func(s *testSite) {
			edit(s.t, filepath.Join(s.layout.AuditLog(), "entries.log"), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		}, differs, sameAgain},
		"an entry that is none": {func(s *testSite) {
			edit(s.t, filepath.Join(s.layout.AuditLog(), "entries.log"), func(b []byte) []byte { copy(b[len(b)/2:], "\n\n\n\n"); return b })
		}, unreadable, sameAgain},
		"no log":   {func(s *testSite) { os.RemoveAll(s.layout.AuditLog()) }, missing, sameAgain},
		"no index": {func(s *testSite) { os.Remove(s.layout.AuditIndex()) }, sameAgain, missing},
		"a damaged index": {func(s *testSite) {
			edit(s.t, s.layout.AuditIndex(), func(b []byte) []byte { return b[:len(b)/2] })
		}, sameAgain, differs},
	} {
		t.Run(name, func(t *testing.T) {
			s := audited(t)
			c.harm(s)
			r, err := s.rebuild()
			if (name != "a changed entry" || r.Log != unreadable) && r.Log != c.log || r.Index != c.index || err != nil || r.Same() {
				t.Errorf("%+v, %v; want log %s, index %s", r, err, c.log, c.index)
			}
			r, err = s.rebuild(func(o *RebuildOptions) { o.Replace = true })
			if err != nil || !r.ReplacedIndex || (r.ReplacedLog != "") != (c.log == differs || c.log == unreadable) {
				t.Fatalf("%+v, %v", r, err)
			}
			a := s.audit(nil)
			a.until(t, "readiness", isReady)
			s.sealed(s.propose("after").last)
			s.drained()
			a.stop(t)
			if r := s.verify(); verdicts(r) != "IaCF" || r.Unreported != 0 { // the forged event is there for ever
				t.Errorf("verify: %s %+v", verdicts(r), r)
			}
			if r, err := s.rebuild(); err != nil || !r.Same() {
				t.Errorf("afterwards: %+v, %v", r, err)
			}
		})
	}
}

// TestRebuildReplacesNoOtherHistory: a stream that does not lead to the head that is
// kept elsewhere makes no log of the site.
func TestRebuildReplacesNoOtherHistory(t *testing.T) {
	s := newSite(t)
	a := s.audit(nil)
	s.sealed(s.propose("a").last)
	a.until(t, "readiness", isReady)
	s.drained()
	a.stop(t)
	head, err := tlog.ReadLockFile(mustRead(t, s.layout.AuditHead()))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(head), "\n")
	lines[2] = strings.Repeat("A", 43) + "="
	if err := os.WriteFile(s.layout.AuditHead(), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.layout.AuditLog()); err != nil {
		t.Fatal(err)
	}
	if r, err := s.rebuild(func(o *RebuildOptions) { o.Replace = true }); err == nil || !strings.Contains(err.Error(), "does not lead to") || r.ReplacedIndex {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(s.layout.AuditLog()); err == nil {
		t.Error("another log was put in place")
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// In a later epoch the log that is made again begins with what was carried, also while the
// stream still holds what was not.
func TestRebuildOfALaterEpoch(t *testing.T) {
	s := twoEpochs(t)
	r, err := s.rebuild()
	if err != nil || !r.Same() || r.Epoch != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRestartsLeaveNoTrace: an auditor that was stopped and started again all the time,
// with a few more events to read each time, holds the entries of one that has read
// everything at once.
func TestRestartsLeaveNoTrace(t *testing.T) {
	s := newSite(t)
	restarts := 12
	if os.Getenv("BANKSMAN_SOAK") == "1" {
		restarts = 50
	}
	for i := range restarts {
		var j *story
		for k := range 1 + i%4 {
			j = s.propose(fmt.Sprintf("job%d-%d", i, k))
			if k%2 == 0 {
				s.approve(j)
			}
		}
		a := s.audit(nil)
		s.sealed(j.last)
		a.stop(t)
	}
	r, err := s.rebuild()
	if err != nil || !r.Same() || r.Index != sameAgain {
		t.Fatalf("%+v, %v", r, err)
	}
	was, err := os.ReadFile(filepath.Join(s.layout.AuditLog(), "entries.log"))
	is, err2 := os.ReadFile(filepath.Join(r.Dir, "log", "entries.log"))
	if err != nil || err2 != nil || !bytes.HasPrefix(is, was) || len(was) < 1000*restarts {
		t.Errorf("entries.log of %d bytes differs: %v, %v", len(was), err, err2)
	}
	if r := s.verify(); r.ExitCode() != 0 {
		t.Errorf("verify: %s %+v", verdicts(r), r)
	}
}
