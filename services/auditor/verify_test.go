package auditor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// expect compares verdicts and exit code, and looks for a word in the reasons.
func expect(t *testing.T, r Report, letters string, code int, word string) {
	t.Helper()
	reasons := strings.Join([]string{r.Integrity.Reason, r.Authenticity.Reason, r.Completeness.Reason, r.Freshness.Reason}, " | ")
	if verdicts(r) != letters || r.ExitCode() != code || !strings.Contains(reasons, word) {
		t.Errorf("verdicts %s, exit %d, want %s, exit %d, with %q in: %s", verdicts(r), r.ExitCode(), letters, code, word, reasons)
	}
}

// edit changes a file of the log in place.
func edit(t testing.TB, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestVerifyGood(t *testing.T) {
	f := newForge(t)
	f.propose("a")
	f.propose("b")
	f.seal()
	r := f.verify()
	expect(t, r, "IACF", 0, "")
	if r.Size != 4 || r.ThroughSeq != 3 || r.Events != 3 || r.Unsealed != 0 || r.FirstBadLeaf != nil || len(r.Notes) != 0 {
		t.Errorf("report %+v", r)
	}
}

func TestVerifyAuditTailIsComplete(t *testing.T) {
	f := newForge(t)
	f.propose("a")
	f.seal()
	f.published(func(*events.AuditSealed) {})
	r := f.verify()
	expect(t, r, "IACF", 0, "")
	if r.Unsealed != 1 {
		t.Errorf("unsealed %d", r.Unsealed)
	}
}

func TestVerifyIntegrityAlone(t *testing.T) {
	file := func(name string, change func([]byte) []byte) func(*testing.T, *forge) {
		return func(t *testing.T, f *forge) { edit(t, filepath.Join(f.logDir(), name), change) }
	}
	for name, c := range map[string]struct {
		damage func(*testing.T, *forge)
		word   string
	}{
		"a digit of a link": {file("entries.log", func(b []byte) []byte {
			at := bytes.LastIndex(b, []byte("\nprev ")) + 6
			b[at] = "0123456789abcdef0"[strings.IndexByte("0123456789abcdef", b[at])+1]
			return b
		}), "chain_broken"},
		"a letter of a payload": {file("raw.log", func(b []byte) []byte {
			return bytes.Replace(b, []byte("/bin/true"), []byte("/bin/trux"), 1)
		}), "payload_digest"},
		"no checkpoint": {func(t *testing.T, f *forge) {
			if err := os.Rename(filepath.Join(f.logDir(), "checkpoint"), filepath.Join(f.dir, "away")); err != nil {
				t.Fatal(err)
			}
		}, "checkpoint_missing"},
		"an older head file": {func(t *testing.T, f *forge) {
			edit(t, filepath.Join(f.headDir(), "head.lock"), func([]byte) []byte {
				return []byte(site.CheckpointOrigin(f.origin) + "\n1\n" + strings.Repeat("A", 43) + "=\n")
			})
		}, "put back"},
		"another head of the same size": {func(t *testing.T, f *forge) {
			edit(t, filepath.Join(f.headDir(), "head.lock"), func([]byte) []byte {
				return []byte(site.CheckpointOrigin(f.origin) + "\n4\n" + strings.Repeat("A", 43) + "=\n")
			})
		}, "fork"},
		"a head file that is ahead": {func(t *testing.T, f *forge) {
			edit(t, filepath.Join(f.headDir(), "head.lock"), func([]byte) []byte {
				return []byte(site.CheckpointOrigin(f.origin) + "\n9\n" + strings.Repeat("A", 43) + "=\n")
			})
		}, "rollback"},
		"no head file": {func(t *testing.T, f *forge) {
			if err := os.Remove(filepath.Join(f.headDir(), "head.lock")); err != nil {
				t.Fatal(err)
			}
		}, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			f.propose("a")
			f.propose("b")
			f.seal()
			if err := f.log.Close(); err != nil {
				t.Fatal(err)
			}
			c.damage(t, f)
			r := f.verify()
			if name == "no checkpoint" { // without a head nothing else can be complete or fresh
				if r.Integrity.OK || r.ExitCode() != 1 || !strings.Contains(r.Integrity.Reason, c.word) {
					t.Errorf("%+v", r)
				}
				return
			}
			expect(t, r, "iACF", 1, c.word)
			if leaf, named := map[string]int64{"a digit of a link": 3, "a letter of a payload": 2}[name]; named && (r.FirstBadLeaf == nil || *r.FirstBadLeaf != leaf) {
				t.Errorf("first bad leaf %v, want %d", r.FirstBadLeaf, leaf)
			}
		})
	}
}

func TestVerifyCheckpointKeyMustBeTrusted(t *testing.T) {
	f := newForge(t)
	key, err := keys.GenerateCheckpointKey(site.CheckpointOrigin(f.origin))
	if err != nil {
		t.Fatal(err)
	}
	f.add(f.message(events.For("trust.published", events.SiteScope, events.TrustID, "root"), events.TrustPublished{
		Version: 2, Origin: f.origin, CheckpointKeys: []string{key.Verifier()},
	}))
	f.seal()
	expect(t, f.verify(), "iACF", 1, "not signed by any key")
}

func TestVerifyOtherRoot(t *testing.T) {
	f := newForge(t)
	f.propose("a")
	f.seal()
	r := f.verify(func(o *Options) { o.RootKey = signer(t).Public() })
	if r.Authenticity.OK || r.Integrity.OK {
		t.Errorf("a log of another root is believed: %+v", r)
	}
	f.at = f.at.Add(0)
	r = f.verify(func(o *Options) { o.Origin = "site-other" })
	if r.Integrity.OK {
		t.Errorf("a log of another site is believed: %+v", r)
	}
}

func TestVerifyAuthenticityAlone(t *testing.T) {
	other := signer(t)
	for name, c := range map[string]struct {
		message func(f *forge) events.Message
		word    string
	}{
		"another key": {func(f *forge) events.Message {
			f.signers["proposer"] = other
			return f.message(events.For("job.proposed", "default", "b", "proposer"), proposal("b"))
		}, "wrong_key"},
		"no right": {func(f *forge) events.Message {
			return f.message(events.For("job.proposed", "default", "b", "gate"), proposal("b"))
		}, "no_right"},
		"a payload changed after signing": {func(f *forge) events.Message {
			m := f.message(events.For("job.proposed", "default", "b", "proposer"), proposal("b"))
			m.Data = bytes.Replace(m.Data, []byte("true"), []byte("trux"), 1)
			return m
		}, "bad_signature"},
		"no event at all": {func(f *forge) events.Message {
			return events.Message{Subject: events.For("job.proposed", "default", "b", "proposer"), Data: []byte("{")}
		}, "malformed"},
		"signed for another place": {func(f *forge) events.Message {
			f.last[events.Filter("job", "b")] = 1
			return f.message(events.For("job.proposed", "default", "b", "proposer"), proposal("b"))
		}, codeWrongPosition},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			f.propose("a")
			st := f.add(c.message(f))
			f.seal()
			r := f.verify()
			expect(t, r, "IaCF", 1, c.word+": ")
			if r.Unbelieved != 1 || r.Unreported != 1 || r.FirstBadLeaf == nil || *r.FirstBadLeaf != int64(st.Seq) {
				t.Errorf("report %+v", r)
			}
			if !strings.Contains(r.Authenticity.Reason, "not reported") {
				t.Errorf("reason %q", r.Authenticity.Reason)
			}
		})
	}
}

// TestVerifyEntryMustNameTheMessage: an auditor that writes other names into its entries
// than the messages have is found, although chain, tree and signature hold.
func TestVerifyEntryMustNameTheMessage(t *testing.T) {
	for name, change := range map[string]func(*tlog.Meta){
		"other id":     func(m *tlog.Meta) { m.ID = "proposer.0123456789abcdef0123.7" },
		"no id":        func(m *tlog.Meta) { m.ID = "" },
		"no signature": func(m *tlog.Meta) { m.ActorSig = "" },
		"other key":    func(m *tlog.Meta) { m.ActorKey = "ed25519:x" },
		"no place":     func(m *tlog.Meta) { m.Expect = "" },
		"other digest": func(m *tlog.Meta) { m.CEDigest[3] ^= 1 },
		"other job":    func(m *tlog.Meta) { m.Job = "other" },
	} {
		f := newForge(t)
		st := f.stored(f.message(events.For("job.proposed", "default", "a", "proposer"), proposal("a")))
		m := metaOf(st)
		change(&m)
		if _, err := f.log.Append(recordOf(st), m); err != nil {
			t.Fatal(err)
		}
		f.seal()
		t.Run(name, func(t *testing.T) { expect(t, f.verify(), "IaCF", 1, "entry_meta") })
	}
}

func TestVerifyForgeryStaysAfterReport(t *testing.T) {
	f := newForge(t)
	good := f.signers["proposer"]
	f.signers["proposer"] = signer(t)
	m := f.message(events.For("job.proposed", "default", "b", "proposer"), proposal("b"))
	f.signers["proposer"] = good
	f.n["proposer"]--
	st := f.add(m)
	f.reported(st.Seq, "wrong_key")
	f.propose("a")
	f.seal()
	r := f.verify()
	expect(t, r, "IaCF", 1, "(reported by the auditor)")
	if r.Unbelieved != 1 || r.Unreported != 0 {
		t.Errorf("report %+v", r)
	}
}

func TestVerifyCompletenessAlone(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, f *forge)
		word string
	}{
		"gap": {func(t *testing.T, f *forge) {
			f.seq += 2
			if _, err := f.log.AppendGap(f.seq-1, f.seq); err != nil {
				t.Fatal(err)
			}
			f.propose("b")
			f.seal()
		}, "lost sequences 3 to 4"},
		"session hole": {func(t *testing.T, f *forge) {
			f.message(events.For("job.proposed", "default", "lost", "proposer"), proposal("lost"))
			f.propose("b")
			f.seal()
		}, codeSessionHole},
		"number used twice": {func(t *testing.T, f *forge) {
			f.n["proposer"]--
			f.propose("b")
			f.seal()
		}, codeIDReused},
		"unsealed tail": {func(t *testing.T, f *forge) {
			f.seal()
			f.propose("b")
			f.propose("c")
		}, "2 event(s) up to sequence 4"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			f.propose("a")
			c.do(t, f)
			expect(t, f.verify(), "IAcF", 1, c.word)
		})
	}
}

// TestVerifyLiveTail: what a live auditor has taken in and not sealed yet is given time;
// what it never seals is incomplete all the same.
func TestVerifyLiveTail(t *testing.T) {
	f := newForge(t)
	f.propose("a")
	f.seal()
	f.propose("b")
	write := func(sealed bool) {
		if err := f.log.Close(); err != nil { // so that the tail is in the file
			t.Fatal(err)
		}
		var err error
		if f.log, err = tlog.Open(f.logDir(), f.checkpoint, tlog.FileLock(f.headDir())); err != nil {
			t.Fatal(err)
		}
		if sealed {
			f.seal()
		}
	}
	write(false)
	v := &verifier{options: f.options(), tail: 1, tailSeq: f.seq}
	v.sealedTrust = &events.TrustPublished{CheckpointKeys: []string{f.vkey}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	v.judgeTail(ctx, true)
	if v.completeness.Verdict("").OK {
		t.Errorf("a tail that is never sealed: %+v", v.completeness)
	}
	write(true)
	for _, live := range []bool{true, false} {
		v.completeness = reasons{}
		v.judgeTail(t.Context(), live)
		if v.completeness.Verdict("").OK != live {
			t.Errorf("live %v, a tail that was sealed meanwhile: %+v", live, v.completeness)
		}
	}
	v.completeness = reasons{}
	v.sealedTrust = &events.TrustPublished{}
	v.judgeTail(t.Context(), true)
	if v.completeness.Verdict("").OK {
		t.Errorf("a seal by nobody: %+v", v.completeness)
	}
}

type busHolds struct {
	seq uint64
	err error
}

func (b busHolds) LastNonAuditSeq(context.Context) (uint64, error) { return b.seq, b.err }

func TestVerifyFreshnessAlone(t *testing.T) {
	f := newForge(t)
	f.propose("a")
	f.seal()
	late := func(by time.Duration) func(*Options) {
		return func(o *Options) { now := f.at.Add(by); o.Now = func() time.Time { return now } }
	}
	expect(t, f.verify(late(23*time.Hour)), "IACF", 0, "old")
	expect(t, f.verify(late(25*time.Hour)), "IACf", 3, "unknown: ")
	expect(t, f.verify(late(25*time.Hour), func(o *Options) { o.MaxAge = 26 * time.Hour }), "IACF", 0, "")
	ask := func(b busHolds) func(*Options) { return func(o *Options) { o.Bus = b } }
	expect(t, f.verify(late(25*time.Hour), ask(busHolds{seq: 2})), "IACF", 0, "last event of the bus, 2")
	expect(t, f.verify(ask(busHolds{err: errors.New("away")})), "IACf", 3, "away")
}

// TestVerifyFreshnessWaits: a head that does not come within the time allowed is a
// failure, not an unknown; one that comes is waited for.
func TestVerifyFreshnessWaits(t *testing.T) {
	f := newForge(t)
	f.propose("a")
	f.seal()
	f.propose("b")
	o := f.options()
	o.Bus = busHolds{seq: 3}
	done := make(chan Report)
	go func() {
		r, err := Verify(t.Context(), o)
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	f.seal()
	expect(t, <-done, "IACF", 0, "event of the bus, 3")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	o.Bus = busHolds{seq: 4}
	if seq, err := o.target(ctx); seq != 4 || err != nil {
		t.Errorf("target %d, %v", seq, err)
	}
	v := &verifier{options: o}
	v.signers.size, v.headTime, v.report.ThroughSeq = 4, f.at, 3
	if got := v.freshness(4, nil); got.OK || strings.HasPrefix(got.Reason, unknownFreshness) {
		t.Errorf("a head behind the bus: %+v", got)
	}
}

// TestVerifyEveryByte: no single changed byte of what is signed, or of the signature,
// leaves a log that verifies.
func TestVerifyEveryByte(t *testing.T) {
	f := newForge(t)
	f.propose("a")
	f.seal()
	if err := f.log.Close(); err != nil {
		t.Fatal(err)
	}
	step := 1
	if testing.Short() {
		step = 13
	}
	for _, name := range []string{"entries.log", "raw.log", "checkpoint"} {
		path := filepath.Join(f.logDir(), name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(whole); at += step {
			bad := bytes.Clone(whole)
			bad[at] ^= 1
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Verify(t.Context(), f.options())
			if err == nil && r.OK() {
				t.Errorf("%s: byte %d of %d (%q) may be changed", name, at, len(whole), whole[max(0, at-8):min(len(whole), at+8)])
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, f.verify(), "IACF", 0, "")
}

func TestVerifyBadRootKey(t *testing.T) {
	if _, err := Verify(t.Context(), Options{LogDir: t.TempDir(), RootKey: "nonsense"}); !errors.Is(err, keys.ErrBadPublicKey) {
		t.Errorf("%v", err)
	}
	if _, err := Verify(t.Context(), Options{LogDir: filepath.Join(t.TempDir(), "none"), RootKey: signer(t).Public()}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestReasonsAreBounded(t *testing.T) {
	var r reasons
	for i := range 1000 {
		r.Add(fmt.Sprint(i))
	}
	if v := r.Verdict(""); v.OK || !strings.HasSuffix(v.Reason, "9; and more") {
		t.Errorf("%+v", v)
	}
}

func TestSeqOf(t *testing.T) {
	v := &verifier{}
	for leaf, seq := range map[int64]uint64{} {
		v.note(leaf, seq)
	}
	for _, r := range []run{{1, 1}, {2, 2}, {4, 9}, {5, 10}, {6, 11}} {
		v.note(r.leaf, r.seq)
	}
	for leaf, want := range map[int64]uint64{-1: 0, 0: 0, 1: 1, 2: 2, 4: 9, 5: 10, 6: 11} {
		if got := v.seqOf(leaf); got != want {
			t.Errorf("leaf %d has sequence %d, want %d", leaf, got, want)
		}
	}
	if len(v.runs) != 2 {
		t.Errorf("%d runs", len(v.runs))
	}
}
