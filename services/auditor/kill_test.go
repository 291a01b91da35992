package auditor

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/trust"
)

// childEnv names the site folder in which this binary is to be an auditor.
const childEnv = "BANKSMAN_AUDITOR_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		err := host.Run(context.Background(), host.Options{
			Layout: site.Layout{Dir: dir}, Command: "auditor", Roles: []host.Role{New()}, Version: "0.0.1", Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// child starts an auditor as a process of its own, which reaches the bus over TLS.
func (s *testSite) child() *exec.Cmd {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), childEnv+"="+s.layout.Dir)
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// TestKill kills the auditor at random moments while jobs go through. Afterwards the
// log verifies, the violation is reported once, and the index that survived is the one
// that the log makes.
func TestKill(t *testing.T) {
	s := newSite(t)
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	s.forged("bad")
	stop := make(chan struct{})
	done := make(chan *story)
	go func() {
		defer close(done)
		var j *story
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- j
				return
			default:
			}
			j = s.propose(fmt.Sprintf("job%d", i))
			s.approve(j)
			if i%2 == 0 {
				s.finish(j)
			}
		}
	}()
	for range rounds {
		c := s.child()
		moment := time.NewTimer(time.Duration(50+rand.IntN(600)) * time.Millisecond)
		<-moment.C // the moment of death is the point, not a wait for anything
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
	}
	close(stop)
	last := <-done
	if last == nil {
		t.Fatal("the jobs stopped")
	}
	a := s.audit(nil)
	a.until(t, "readiness", isReady)
	s.sealed(last.last)
	a.stop(t)
	r := s.verify()
	if verdicts(r) != "IaCF" || r.Unbelieved != 1 || r.Unreported != 0 {
		t.Errorf("verify: %s %+v", verdicts(r), r)
	}
	if _, violations, _ := s.audits(); len(violations) != 1 {
		t.Errorf("%d reports: %+v", len(violations), violations)
	}
	s.checkRebuilt()
}

// checkRebuilt compares the index on disk with one that is made from the log alone.
func (s *testSite) checkRebuilt() {
	s.t.Helper()
	kept := s.dump()
	signer, vkey, err := keys.LoadCheckpointKey(s.layout.CheckpointKey())
	if err != nil {
		s.t.Fatal(err)
	}
	a := &auditor{vkey: vkey, slog: s.log, ledger: newLedger(trust.New(s.plan.Origin, s.plan.RootKey()), nil, s.key("auditor").Public())}
	defer a.close()
	if a.log, err = tlog.Open(s.layout.AuditLog(), signer, tlog.FileLock(filepath.Dir(s.layout.AuditHead()))); err == nil {
		a.reader, err = tlog.OpenReader(s.layout.AuditLog())
	}
	made := filepath.Join(s.t.TempDir(), "made.db")
	if err == nil {
		a.index, _, err = openIndex(made, a.log, a.reader)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	a.ledger.index = a.index
	if err := a.resume(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if err := a.index.Close(); err != nil {
		s.t.Fatal(err)
	}
	if again := dumpIndex(s.t, made); again != kept {
		s.t.Errorf("the index kept and the one made again differ:\n%s\n%s", kept, again)
	}
}
