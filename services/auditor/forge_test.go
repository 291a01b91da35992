package auditor

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// forge writes real logs from messages that it makes as it likes: nothing stands
// between it and the log, so that each rule can be broken alone.
type forge struct {
	t          testing.TB
	dir        string
	origin     string
	root       *keys.Signer
	signers    map[string]*keys.Signer
	checkpoint note.Signer
	vkey       string
	log        *tlog.Log
	seq        uint64
	at         time.Time
	n          map[string]uint64 // per actor
	last       map[string]uint64 // per filter
	file       events.Stored     // the trust file
}

const forgeOrigin = "site-test"

func signer(t testing.TB) *keys.Signer {
	t.Helper()
	s, err := keys.GenerateSigner()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newForge makes a log that holds a trust file, not yet sealed.
func newForge(t testing.TB) *forge {
	t.Helper()
	f := &forge{
		t: t, dir: t.TempDir(), origin: forgeOrigin, root: signer(t), signers: map[string]*keys.Signer{},
		at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), n: map[string]uint64{}, last: map[string]uint64{},
	}
	key, err := keys.GenerateCheckpointKey(site.CheckpointOrigin(f.origin))
	if err != nil {
		t.Fatal(err)
	}
	f.checkpoint, f.vkey = key.Signer(), key.Verifier()
	file := events.TrustPublished{Version: 1, Origin: f.origin, CheckpointKeys: []string{key.Verifier()}}
	for actor, role := range map[string]events.Role{
		"proposer": events.RoleProposer, "gate": events.RoleGate, "auditor": events.RoleAuditor, "person": events.RoleAdmin,
		"p1": events.RolePerson, "p2": events.RolePerson, "supervisor": events.RoleSupervisor, "worker": events.RoleWorker,
	} {
		f.signers[actor] = signer(t)
		file.Actors = append(file.Actors, events.Actor{Actor: actor, Roles: []events.Role{role}, Sign: string(f.signers[actor].Public())})
	}
	f.signers["root"] = f.root
	if err := os.Mkdir(f.headDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	f.log, err = tlog.Create(f.logDir(), tlog.Genesis{
		Origin: site.CheckpointOrigin(f.origin), Stream: streamName, Created: f.at, Config: sha256.Sum256(nil),
	}, f.checkpoint, tlog.FileLock(f.headDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.log.Close() })
	f.file = f.add(f.message(events.For("trust.published", events.SiteScope, events.TrustID, "root"), file))
	return f
}

func (f *forge) logDir() string  { return filepath.Join(f.dir, "log") }
func (f *forge) headDir() string { return filepath.Join(f.dir, "head") }

// message makes and signs the next message of an actor.
func (f *forge) message(s events.Subject, payload any) events.Message {
	f.t.Helper()
	f.n[s.Actor]++
	id := events.ID{Actor: s.Actor, Session: "0123456789abcdef0123", N: f.n[s.Actor]}
	m, err := events.New(f.origin, s, id, f.at, f.last[s.Filter()], payload)
	if err != nil {
		f.t.Fatal(err)
	}
	if key := f.signers[s.Actor]; key != nil {
		m.Sign(f.origin, string(key.Public()), key.Sign)
	}
	return m
}

// stored is a message as the stream would return it next.
func (f *forge) stored(m events.Message) events.Stored {
	f.seq++
	f.at = f.at.Add(time.Second)
	f.last[m.Subject.Filter()] = f.seq
	return events.Stored{Seq: f.seq, Time: f.at, Subject: m.Subject.String(), Header: m.Header, Data: m.Data}
}

func (f *forge) add(m events.Message) events.Stored {
	f.t.Helper()
	st := f.stored(m)
	if _, err := f.log.Append(recordOf(st), metaOf(st)); err != nil {
		f.t.Fatal(err)
	}
	return st
}

func (f *forge) propose(job string) events.Stored {
	f.t.Helper()
	return f.add(f.message(events.For("job.proposed", "default", job, "proposer"), proposal(job)))
}

func proposal(reason string) events.JobProposed {
	return events.JobProposed{
		Argv: []string{"/bin/true"}, Cwd: "/", Pool: "default", TimeoutS: 10, MaxAttempts: 1, ExpiresS: 3600,
		Reason: reason, Proposer: events.Proposer{Kind: "agent", ID: "local"},
	}
}

func (f *forge) seal() {
	f.t.Helper()
	if _, err := f.log.Seal(); err != nil {
		f.t.Fatal(err)
	}
}

// reported adds the auditor's word about a violation.
func (f *forge) reported(seq uint64, code string) {
	f.t.Helper()
	f.add(f.message(events.For("audit.violation_found", events.SiteScope, site.Epoch, "auditor"), events.AuditViolationFound{Seq: seq, Code: code, Detail: "a test"}))
}

// options are those under which an untouched log verifies, a minute after its last
// event.
func (f *forge) options() Options {
	now := f.at.Add(time.Minute)
	return Options{
		LogDir: f.logDir(), HeadFile: filepath.Join(f.headDir(), "head.lock"), Origin: f.origin, RootKey: f.root.Public(),
		Now: func() time.Time { return now },
	}
}

// verify closes the log, as a stopped auditor does, and verifies it.
func (f *forge) verify(change ...func(*Options)) Report {
	f.t.Helper()
	if err := f.log.Close(); err != nil {
		f.t.Fatal(err)
	}
	o := f.options()
	for _, c := range change {
		c(&o)
	}
	r, err := Verify(f.t.Context(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// verdicts shows a report in four letters, lower case for what is not ok.
func verdicts(r Report) string {
	out := ""
	for _, v := range []struct {
		letter string
		ok     bool
	}{{"i", r.Integrity.OK}, {"a", r.Authenticity.OK}, {"c", r.Completeness.OK}, {"f", r.Freshness.OK}} {
		if v.ok {
			v.letter = string(v.letter[0] - 'a' + 'A')
		}
		out += v.letter
	}
	return out
}
