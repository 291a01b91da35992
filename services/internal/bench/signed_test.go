package bench

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/evidence"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// signedOrigin is the site whose log is measured.
const signedOrigin = "site-bench"

// perJob is how many of its events belong to one job.
const perJob = 6

// signedLog makes a log of signed events of about 1 KiB, some to each job, and tells a
// site to believe who signed them. That they make no sense as a story is no matter of
// verify, which knows no jobs.
func signedLog(t *testing.T, s *lab.Site, n int) (dir string) {
	t.Helper()
	base := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := keys.GenerateSigner()
	must(err)
	proposer, err := keys.GenerateSigner()
	must(err)
	key, err := keys.GenerateCheckpointKey(site.CheckpointOrigin(signedOrigin))
	must(err)
	signer, vkey := key.Signer(), key.Verifier()
	s.Set("site", "origin", fmt.Sprintf("%q", signedOrigin))
	s.Set("site", "root_key", fmt.Sprintf("%q", root.Public()))
	dir = filepath.Join(base, "log")
	log, err := tlog.Create(dir, tlog.Genesis{
		Origin: site.CheckpointOrigin(signedOrigin), Stream: "BANKSMAN", Created: time.Now(), Config: sha256.Sum256(nil),
	}, signer, tlog.FileLock(base))
	must(err)
	seq := uint64(0)
	add := func(subject events.Subject, k *keys.Signer, number, expect uint64, payload any) {
		t.Helper()
		seq++
		m, err := events.New(signedOrigin, subject, events.ID{Actor: subject.Actor, Session: strings.Repeat("0", 20), N: number}, time.Now(), expect, payload)
		must(err)
		m.Sign(signedOrigin, string(k.Public()), k.Sign)
		st := events.Stored{Seq: seq, Time: time.Now(), Subject: m.Subject.String(), Header: m.Header, Data: m.Data}
		_, err = log.Append(tlog.Record{Seq: st.Seq, Time: st.Time, Subject: st.Subject, Header: st.Header, Payload: st.Data}, evidence.MetaOf(st))
		must(err)
	}
	add(events.For("trust.published", events.SiteScope, events.TrustID, "root"), root, 1, 0, events.TrustPublished{
		Version: 1, Origin: signedOrigin, CheckpointKeys: []string{vkey},
		Actors: []events.Actor{{Actor: "proposer", Roles: []events.Role{events.RoleProposer}, Sign: string(proposer.Public())}},
	})
	long := strings.Repeat("a long argument ", 40)
	for i := range n {
		expect := seq
		if i%perJob == 0 {
			expect = 0
		}
		add(events.For("job.proposed", "default", fmt.Sprintf("job-%d", i/perJob), "proposer"), proposer, uint64(i+1), expect, events.JobProposed{
			Argv: []string{"/bin/echo", long}, Cwd: "/", Pool: "default", TimeoutS: 10, MaxAttempts: 1, ExpiresS: 3600,
			Reason: "measured", Proposer: events.Proposer{Kind: "agent", ID: "bench"},
		})
	}
	_, err = log.Seal()
	must(err)
	must(log.Close())
	return dir
}
