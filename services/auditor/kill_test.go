package auditor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/index"
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
	s := newSiteAt(t, freePort(t))
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	if os.Getenv("BANKSMAN_SOAK") == "1" {
		rounds = 300
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

// TestBusRestart: an auditor outlives the bus, goes on where it was, and fills the
// view of jobs, which the bus has forgotten, again.
func TestBusRestart(t *testing.T) {
	s := newSiteAt(t, freePort(t))
	c := s.child()
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	j := s.propose("a")
	s.sealed(j.last)
	s.checkView("a", lifecycle.Proposed)
	s.stop()
	s.start()
	s.checkView("a", lifecycle.Proposed)
	j = s.propose("b")
	s.sealed(j.last)
	if r := s.verify(); r.ExitCode() != 0 {
		t.Errorf("verify: %+v", r)
	}
}

// checkRebuilt compares the index on disk with one that is made from the log alone.
func (s *testSite) checkRebuilt() {
	s.t.Helper()
	kept := s.dump()
	made := filepath.Join(s.t.TempDir(), "made.db")
	s.openedBy(made).close()
	if again := dumpIndex(s.t, made); again != kept {
		s.t.Errorf("the index kept and the one made again differ:\n%s\n%s", kept, again)
	}
}

// openedBy is an auditor that has opened the log, with an index at the path, and does
// nothing yet.
func (s *testSite) openedBy(indexPath string) *auditor {
	s.t.Helper()
	ring, err := newKeyring(s.layout.CheckpointKey())
	if err != nil {
		s.t.Fatal(err)
	}
	own := DefaultConfig()
	env := &host.Env{Layout: s.layout, Site: s.config, Log: s.log, Bus: s.conn("auditor"), Report: func(bool, string) {}}
	a := &auditor{config: &own, keyring: ring, eraser: newEraser(nil, s.log), slog: s.log, stream: s.conn("reader"), layout: s.layout, epoch: events.FirstEpoch, ledger: newLedger(trust.New(s.plan.Origin, s.plan.RootKey()), nil, s.key("auditor").Public())}
	if a.log, err = a.openLog(s.t.Context(), env); err == nil {
		a.reader, err = tlog.OpenReader(s.layout.AuditLog())
	}
	if err == nil {
		a.index, _, err = a.openIndex(indexPath)
	}
	if err != nil {
		a.close()
		s.t.Fatal(err)
	}
	a.ledger.index = a.index
	a.board = newJobBoard(nil, a.index, s.log, 0)
	if err := a.resume(s.t.Context()); err != nil {
		a.close()
		s.t.Fatal(err)
	}
	return a
}

// takeAndSeal folds and seals what the stream holds, and says nothing about it, as an
// auditor does that is killed between the two.
func (s *testSite) takeAndSeal() {
	s.t.Helper()
	a := s.openedBy(s.layout.AuditIndex())
	defer a.close()
	for {
		page, err := a.stream.Read(s.t.Context(), a.log.LastSeq()+1, everything, 100)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, st := range page {
			if err := a.take(st); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	if _, err := a.seal(); err != nil {
		s.t.Fatal(err)
	}
}

// TestUnsaidIsSaidAfterRestart: what was sealed but not said before a kill, heads and
// violations, is said by the next auditor.
func TestUnsaidIsSaidAfterRestart(t *testing.T) {
	s := newSite(t)
	bad := s.forged("bad")
	j := s.propose("good")
	s.takeAndSeal()
	if sealed, violations, _ := s.audits(); len(sealed)+len(violations) != 0 {
		t.Fatalf("the stream says %v, %v", sealed, violations)
	}
	a := s.audit(nil)
	s.heard("the report", func(p any) bool { v, ok := p.(*events.AuditViolationFound); return ok && v.Seq == bad })
	s.sealed(j.last)
	a.stop(t)
	if _, violations, _ := s.audits(); len(violations) != 1 {
		t.Errorf("violations %+v", violations)
	}
}

// TestForeignIndexIsNotBelieved: an index that is ahead of the log, or that another log
// made, is made anew.
func TestForeignIndexIsNotBelieved(t *testing.T) {
	s := newSite(t)
	s.propose("a")
	s.takeAndSeal()
	kept := s.dump()
	for name, p := range map[string]index.Position{
		"ahead": {Through: 900, Leaves: 901}, "of another log": {Through: 3, Leaves: 4, Last: [32]byte{1}},
		"at nothing, with something in it": {Last: [32]byte{1}},
	} {
		path := filepath.Join(t.TempDir(), "index.db")
		x, err := index.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		j := lifecycle.Job{ID: "never", Status: lifecycle.Failed, ProposedSeq: 1, LastSeq: 1}
		if err := errors.Join(x.Apply(index.Batch{Jobs: []lifecycle.Job{j}, To: p}), x.Close()); err != nil {
			t.Fatal(err)
		}
		s.openedBy(path).close()
		if got := dumpIndex(t, path); got != kept {
			t.Errorf("an index %s: %s, want %s", name, got, kept)
		}
	}
}

// TestSequenceComesAgain: a message that the log covers already is compared with it.
func TestSequenceComesAgain(t *testing.T) {
	s := newSite(t)
	j := s.propose("a")
	s.takeAndSeal()
	a := s.openedBy(s.layout.AuditIndex())
	defer a.close()
	page, err := a.stream.Read(t.Context(), j.proposed, everything, 1)
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	if err := a.take(page[0]); err != nil {
		t.Errorf("the same again: %v", err)
	}
	page[0].Data = append(page[0].Data, ' ')
	var f *Fault
	if err := a.take(page[0]); !errors.As(err, &f) || f.Code != faultFork {
		t.Errorf("another in its place: %v", err)
	}
}
