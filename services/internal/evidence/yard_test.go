package evidence

import (
	"context"
	"crypto/sha256"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// yard makes real logs of signed events.
type yard struct {
	t       testing.TB
	dir     string
	log     *tlog.Log
	signer  note.Signer // of its heads
	signers map[string]*keys.Signer
	file    events.TrustPublished
	seq     uint64
	at      time.Time
	n       map[string]uint64
	last    map[string]uint64
	texts   map[string][]byte
}

// Texts implements [Texts].
func (y *yard) Texts(context.Context, []string) (map[string][]byte, error) { return y.texts, nil }

// keep keeps a text and returns what stands for it in an event.
func (y *yard) keep(text string) string {
	ref, kept := events.KeepText([events.TextNonceBytes]byte{1, 2, 3}, text)
	y.texts[ref.Digest] = kept
	return ref.String()
}

// erase orders a text to be erased and erases it.
func (y *yard) erase(ref string) int64 {
	t, _ := events.ParseText(ref)
	delete(y.texts, t.Digest)
	return y.say("admin", "text.erased", events.SiteScope, t.Digest, events.TextErased{Reason: "a test"})
}

const yardOrigin = "site-yard"

func newYard(t testing.TB) *yard {
	t.Helper()
	y := &yard{t: t, dir: t.TempDir(), signers: map[string]*keys.Signer{}, n: map[string]uint64{}, last: map[string]uint64{}, texts: map[string][]byte{},
		at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	signer, vkey := checkpointKey(t)
	y.signer = signer
	y.file = events.TrustPublished{Origin: yardOrigin, CheckpointKeys: []string{vkey}}
	for _, actor := range []string{"root", "proposer", "gate", "worker", "admin"} {
		key, err := keys.GenerateSigner()
		if err != nil {
			t.Fatal(err)
		}
		y.signers[actor] = key
		if actor != "root" {
			y.file.Actors = append(y.file.Actors, events.Actor{Actor: actor, Roles: []events.Role{events.Role(actor)}, Sign: string(key.Public())})
		}
	}
	y.file.Actors[2].Pools = []string{"default"}
	var err error
	y.log, err = tlog.Create(y.logDir(), tlog.Genesis{
		Origin: site.CheckpointOrigin(yardOrigin), Stream: "BANKSMAN", Created: y.at, Config: sha256.Sum256(nil),
	}, signer, tlog.FileLock(y.dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { y.log.Close() })
	y.trust()
	return y
}

func checkpointKey(t testing.TB) (note.Signer, string) {
	t.Helper()
	key, err := keys.GenerateCheckpointKey(site.CheckpointOrigin(yardOrigin))
	if err != nil {
		t.Fatal(err)
	}
	return key.Signer(), key.Verifier()
}

func (y *yard) logDir() string { return filepath.Join(y.dir, "log") }

// trust publishes the trust file as it is now.
func (y *yard) trust() int64 {
	y.file.Version++
	return y.say("root", "trust.published", events.SiteScope, events.TrustID, y.file)
}

// say signs and logs an event and returns its leaf.
func (y *yard) say(actor string, kind events.Kind, scope, id string, payload any) int64 {
	y.t.Helper()
	return y.put(y.message(actor, kind, scope, id, payload))
}

func (y *yard) message(actor string, kind events.Kind, scope, id string, payload any) events.Message {
	y.t.Helper()
	y.n[actor]++
	s := events.For(kind, scope, id, actor)
	m, err := events.New(yardOrigin, s, events.ID{Actor: actor, Session: "0123456789abcdef0123", N: y.n[actor]}, y.at, y.last[s.Filter()], payload)
	if err != nil {
		y.t.Fatal(err)
	}
	m.Sign(yardOrigin, string(y.signers[actor].Public()), y.signers[actor].Sign)
	return m
}

func (y *yard) put(m events.Message) int64 {
	y.t.Helper()
	y.seq++
	y.at = y.at.Add(time.Second)
	y.last[m.Subject.Filter()] = y.seq
	st := events.Stored{Seq: y.seq, Time: y.at, Subject: m.Subject.String(), Header: m.Header, Data: m.Data}
	leaf, err := y.log.Append(tlog.Record{Seq: st.Seq, Time: st.Time, Subject: st.Subject, Header: st.Header, Payload: st.Data}, MetaOf(st))
	if err != nil {
		y.t.Fatal(err)
	}
	return leaf
}

func (y *yard) propose(job string) int64 { return y.proposeFor(job, "a test") }

func (y *yard) proposeFor(job, reason string) int64 {
	return y.say("proposer", "job.proposed", "default", job, events.JobProposed{
		Argv: []string{"/bin/true"}, Cwd: "/", Pool: "default", TimeoutS: 10, MaxAttempts: 1, ExpiresS: 3600,
		Reason: reason, Proposer: events.Proposer{Kind: "agent", ID: "local"},
	})
}

func (y *yard) deny(job string) int64 {
	return y.say("gate", "job.denied", "default", job, events.JobDenied{Basis: "policy", Ruling: events.Ruling{Code: "rule", Reason: "a test"}})
}

// seal signs the log and opens it for reading.
func (y *yard) seal() *tlog.Reader {
	y.t.Helper()
	if _, err := y.log.Seal(); err != nil {
		y.t.Fatal(err)
	}
	r, err := tlog.OpenReader(y.logDir())
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { r.Close() })
	return r
}

// export makes a bundle in a new folder.
func (y *yard) export(job string) string {
	y.t.Helper()
	dir := filepath.Join(y.t.TempDir(), "bundle")
	if _, err := Write(y.t.Context(), Source{Log: y.seal(), Texts: y}, job, dir); err != nil {
		y.t.Fatal(err)
	}
	return dir
}

// verify checks a bundle a minute after the last event.
func (y *yard) verify(dir string) Report {
	y.t.Helper()
	now := y.at.Add(time.Minute)
	r, err := Verify(y.t.Context(), Options{Dir: dir, Origin: yardOrigin, RootKey: y.signers["root"].Public(), Now: func() time.Time { return now }})
	if err != nil {
		return Report{Integrity: Verdict{Reason: err.Error()}}
	}
	return r
}

// story is a log with three jobs and two trust files; "job-a" is the one to look at.
func story(t testing.TB) *yard {
	y := newYard(t)
	y.propose("job-b")
	y.propose("job-a")
	y.deny("job-b")
	y.trust()
	y.deny("job-a")
	y.propose("job-c")
	y.deny("job-c")
	return y
}

// told is a log with a job whose proposal names a text that is kept, and whose denial
// names one that was erased. The leaves: 0 genesis, 1 trust, 2 and 3 the job, 4 another,
// 5 the order, 6 another.
func told(t testing.TB) *yard {
	y := newYard(t)
	kept, erased := y.keep("words that stay"), y.keep("words that go")
	y.proposeFor("job-a", kept)
	y.say("gate", "job.denied", "default", "job-a", events.JobDenied{Basis: "policy", Ruling: events.Ruling{Code: "rule", Reason: erased}})
	y.propose("job-b")
	y.erase(erased)
	y.deny("job-b")
	return y
}

// shell runs the shell verifier and says whether it passes the bundle.
func (y *yard) shell(dir string) (ok bool, said string) {
	y.t.Helper()
	out, err := exec.Command("../../../scripts/verify.sh", dir, yardOrigin, string(y.signers["root"].Public())).CombinedOutput()
	return err == nil, string(out)
}

// needShell skips where the tools of the shell verifier are missing.
func needShell(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"sh", "sha256sum", "openssl", "xxd", "base64", "awk"} {
		need.Program(t, tool)
	}
}
