package auditor

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// closeEpoch is an admin's request to close an epoch.
func (s *testSite) closeEpoch(n int) {
	s.t.Helper()
	s.say(s.plan.Person, events.For("epoch.close_requested", events.SiteScope, events.EpochID(n), s.plan.Person), 0, events.EpochCloseRequested{Reason: "a test"})
}

// sealedIn waits until a head of an epoch covers a sequence.
func (s *testSite) sealedIn(epoch int, seq uint64) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	found := errors.New("found")
	err := s.conn("reader").Follow(ctx, 1, auditFilter(epoch), func(st events.Stored) error {
		if e, err := events.Open(s.plan.Origin, st); err != nil {
			return err
		} else if p, ok := e.Payload.(*events.AuditSealed); ok && p.ThroughSeq >= seq {
			return found
		}
		return nil
	})
	if !errors.Is(err, found) {
		s.t.Fatalf("waiting for a head of epoch %d that covers %d: %v", epoch, seq, err)
	}
}

// verifyAll verifies the logs of every epoch.
func (s *testSite) verifyAll() Report {
	s.t.Helper()
	o := Options{Origin: s.plan.Origin, RootKey: s.plan.RootKey(), Bus: NewestOf(s.conn("reader"))}
	o.AllEpochs(s.layout)
	r, err := Verify(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// twoEpochs is a site with a job that ended in the first epoch and one that ends in the
// second. No auditor runs.
func twoEpochs(t *testing.T, set ...func(*Config)) *testSite {
	t.Helper()
	s := newSite(t)
	over, open := s.propose("over"), s.propose("open")
	s.approve(over)
	s.finish(over)
	a := s.audit(nil, set...)
	s.sealed(over.last)
	s.closeEpoch(1)
	s.sealedIn(2, over.last+1)
	s.approve(open)
	s.finish(open)
	s.sealedIn(2, open.last)
	a.stop(t)
	return s
}

// Where an epoch begins, and what its log holds, is a function of the stream: an auditor
// that starts from nothing, or goes on wherever another one was killed, makes the same
// bytes and the same index.
func TestEpochIsAFunctionOfTheStream(t *testing.T) {
	s := twoEpochs(t, headInFile) // a bucket would remember what is taken away here
	logs := []string{filepath.Join(s.layout.AuditLogOf(1), "entries.log"), filepath.Join(s.layout.AuditLogOf(2), "entries.log")}
	var was [][]byte
	for _, path := range logs {
		was = append(was, bytesOf(t, path))
	}
	end, err := s.conn("reader").LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Its first line is the position; what the auditor has said since it was killed is no
	// matter here.
	jobs := func() string {
		lines := strings.Split(s.dump(), "\n")[1:]
		return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, factAudit) || strings.HasPrefix(l, factSession+"auditor")
		}), "\n")
	}
	index := jobs()
	uncounted := func(size int64) { // as Continue leaves it before its head is written
		remove(t, filepath.Dir(s.layout.AuditHeadOf(2)))
		remove(t, filepath.Join(s.layout.AuditLogOf(2), "checkpoint"))
		if err := os.Truncate(logs[1], size); err != nil {
			t.Fatal(err)
		}
	}
	for _, kill := range []struct {
		name string
		do   func()
	}{
		{"nothing is left", func() {
			remove(t, filepath.Join(s.layout.State(), "audit"))
			remove(t, filepath.Join(s.layout.State(), "head"))
		}},
		{"the event is stored and no more", func() { remove(t, filepath.Dir(s.layout.AuditHeadOf(2))); remove(t, s.layout.AuditLogOf(2)) }},
		{"half of what is carried is written", func() { uncounted(700) }},
		{"the head is not written", func() { uncounted(int64(len(was[1]))) }},
		{"the index has not gone over", func() { remove(t, s.layout.AuditIndex()) }},
	} {
		kill.do()
		a := s.audit(nil, headInFile)
		a.until(t, "readiness after "+kill.name, isReady)
		s.sealedIn(2, end-1) // the last event is a head
		a.stop(t)
		for i, path := range logs {
			if now := bytesOf(t, path); !bytes.HasPrefix(now, was[i]) {
				t.Errorf("%s: log %d has other bytes", kill.name, i+1)
			}
		}
		if now := jobs(); now != index {
			t.Errorf("%s: the index was\n%s\nand is\n%s", kill.name, index, now)
		}
		if r := s.verifyAll(); !r.Integrity.OK || !r.Authenticity.OK || !r.Completeness.OK || len(r.Epochs) != 1 {
			t.Errorf("%s: %+v", kill.name, r)
		}
	}
	if n := s.layout.Epoch(); n != 2 {
		t.Errorf("there are %d epochs", n)
	}
}

// The logs of two epochs must fit: what is spoilt, exchanged or left out is found, and the
// epoch is named.
func TestVerifySeesWhatDoesNotFit(t *testing.T) {
	s, other := twoEpochs(t), twoEpochs(t)
	flip := func(path string) func() {
		return func() {
			b := bytesOf(t, path)
			b[len(b)/2] ^= 1
			write(t, path, b)
		}
	}
	one, two := s.layout.AuditLogOf(1), s.layout.AuditLogOf(2)
	for _, c := range []struct {
		name, in string
		do       func()
	}{
		{"a bit of the first log", "epoch-1", flip(filepath.Join(one, "raw.log"))},
		{"a bit of the second log", "epoch-2", flip(filepath.Join(two, "raw.log"))},
		{"the first log is another site's", "epoch-2", func() { exchange(t, one, other.layout.AuditLogOf(1)) }},
		{"the first log is cut", "epoch-1", func() {
			b := bytesOf(t, filepath.Join(one, "entries.log"))
			write(t, filepath.Join(one, "entries.log"), b[:len(b)-1200])
		}},
	} {
		keep := t.TempDir()
		exchange(t, filepath.Join(keep, "one"), one)
		exchange(t, filepath.Join(keep, "two"), two)
		c.do()
		if r := s.verifyAll(); r.Integrity.OK || !strings.Contains(r.Integrity.Reason, c.in+": ") {
			t.Errorf("%s: %+v", c.name, r.Integrity)
		}
		exchange(t, one, filepath.Join(keep, "one"))
		exchange(t, two, filepath.Join(keep, "two"))
	}
	if r := s.verifyAll(); !r.Integrity.OK {
		t.Errorf("as it was: %+v", r)
	}
	alone, err := Verify(t.Context(), Options{LogDir: two, Origin: s.plan.Origin, RootKey: s.plan.RootKey()})
	if err != nil || !alone.Integrity.OK || !alone.Authenticity.OK || alone.Completeness.OK || !strings.Contains(alone.Completeness.Reason, "not here") {
		t.Errorf("the newest log alone: %+v, %v", alone, err)
	}
}

// Only the auditor opens an epoch, and only behind a head that the log before has.
func TestWrongOpeningsOpenNothing(t *testing.T) {
	s := newSite(t)
	j := s.propose("a-job")
	a := s.audit(nil)
	s.sealed(j.last)
	a.stop(t)
	open := events.EpochOpened{
		Epoch: 2, Why: events.EpochRequested, Origin: site.CheckpointOrigin(s.plan.Origin), Size: 2, Through: 1, Carried: map[string][]string{},
		Root: base64.StdEncoding.EncodeToString(make([]byte, 32)),
	}
	subject := events.For("epoch.opened", events.SiteScope, events.EpochID(2), "auditor")
	seq := s.say("auditor", subject, 0, open)
	thief := signer(t)
	id := events.ID{Actor: "auditor", Session: "ffffffffffffffffffff", N: 1}
	m, err := events.New(s.plan.Origin, events.For("epoch.opened", events.SiteScope, events.EpochID(3), "auditor"), id, time.Now(), 0, open)
	if err != nil {
		t.Fatal(err)
	}
	m.Sign(s.plan.Origin, string(thief.Public()), thief.Sign)
	forged, err := s.conn("auditor").AppendRaw(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	a = s.audit(nil)
	s.sealed(forged)
	s.heard("a report", func(p any) bool {
		v, ok := p.(*events.AuditViolationFound)
		return ok && v.Seq == seq && v.Code == codeWrongEpoch
	})
	a.stop(t)
	if n := s.layout.Epoch(); n != 1 {
		t.Errorf("epoch %d was opened", n)
	}
	if r := s.verifyAll(); r.Authenticity.OK || !strings.Contains(r.Authenticity.Reason, codeWrongEpoch) {
		t.Errorf("verify: %+v", r.Authenticity)
	}
}

func bytesOf(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// exchange puts a copy of one folder in the place of another.
func exchange(t *testing.T, to, from string) {
	t.Helper()
	remove(t, to)
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// What was carried ends behind the last carried leaf, whether states stand between or a
// state follows.
func TestCarriedLeavesEndBehindTheLast(t *testing.T) {
	for carried, want := range map[uint64]int64{3: 4, 1023: 1024, 1024: 1026, 1100: 1102} {
		dir := t.TempDir()
		g := tlog.Genesis{Origin: site.CheckpointOriginOf("site-a", 2), Stream: streamName, Created: time.Unix(1, 0)}
		g.Old = tlog.Before{Origin: site.CheckpointOriginOf("site-a", 1), Size: 9000, Through: 8000, Why: "requested"}
		key, err := keys.GenerateCheckpointKey(g.Origin)
		if err != nil {
			t.Fatal(err)
		}
		record := func(seq uint64) tlog.Record { return tlog.Record{Seq: seq, Time: g.Created, Subject: "bm.x"} }
		log, err := tlog.Continue(dir, g, func(add func(tlog.Record, tlog.Meta) error) error {
			for i := range carried {
				if err := add(record(2*i+1), tlog.Meta{}); err != nil {
					return err
				}
			}
			return nil
		}, key.Signer(), tlog.FileLock(dir))
		if err != nil {
			t.Fatal(err)
		}
		for seq := uint64(8001); seq < 8004 && err == nil; seq++ {
			_, err = log.Append(record(seq), tlog.Meta{})
		}
		if err == nil {
			_, err = log.Seal()
		}
		if err = errors.Join(err, log.Close()); err != nil {
			t.Fatal(err)
		}
		r, err := tlog.OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		n := uint64(0)
		got, err := carriedLeaves(r, func(int64, tlog.Entry) { n++ })
		if err != nil || got != want || n != carried {
			t.Errorf("%d carried: %d in %d leaves, want %d: %v", carried, n, got, want, err)
		}
	}
}
