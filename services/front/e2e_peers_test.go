package front_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// Four agents' processes propose the same forty jobs under the same keys at once,
// and four workers reach for them: every call is answered, each job is there once
// and is executed once, and nobody complains of having lost a race.
func TestSameKeysAtOnce(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Up(append(lab.Roles[:], "worker 2", "worker 3", "worker 4")...)
	o := f.Site.Observe()
	names, jobs := series(y, "shared", 40, "quick")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { f.Site.Propose(jobs...) })
	}
	all.Wait()
	o.AwaitFinal(len(names))
	if len(o.Jobs) != len(names) {
		t.Errorf("%d jobs came of %d keys", len(o.Jobs), len(names))
	}
	once(t, o, y, names)
	o.Check(y, names)
	for _, m := range []string{"worker", "worker 2", "worker 3", "worker 4", "proposer"} {
		if text := f.Member(m).Stderr(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "level=WARN") {
			t.Errorf("%s complains: %s", m, text)
		}
	}
}

// A role that is frozen holds nobody up for ever: every verb answers in bounded
// time, says whom it misses, and what was asked for happens once the role is back.
func TestFrozenRoleHoldsNobody(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	var names []string
	for _, m := range []string{"approver", "auditor", "worker"} {
		f.Member(m).Signal(syscall.SIGSTOP)
		name := "while-" + m
		names = append(names, name)
		f.Site.Propose(y.Job(name, "quick"))
		o.Eventually("the proposal", func() bool { return o.Job(name).Proposal != nil })
		id := o.Job(name).ID
		for verb, r := range atOnce(f.Site, []string{"show", id}, []string{"approve", id}, []string{"ls"}, []string{"status"}) {
			if r.Code < 0 || r.Code != 0 && r.Stdout+r.Stderr == "" {
				t.Errorf("with %s frozen it does not end, or does not say why: %s", m, r)
			}
			if verb == "status" && (r.Code != 75 || !strings.Contains(r.Stdout, m)) {
				t.Errorf("with %s frozen: %s", m, r)
			}
		}
		if m == "auditor" && o.Job(name).Status == lifecycle.Running {
			t.Error("a job was started that no seal covers")
		}
		f.Member(m).Signal(syscall.SIGCONT)
		o.Await(name, lifecycle.Succeeded)
	}
	once(t, o, y, names)
	o.Check(y, names)
}

// atOnce runs verbs beside each other, each for as long as its own patience allows.
func atOnce(s *lab.Site, verbs ...[]string) map[string]lab.Result {
	var mu sync.Mutex
	var all sync.WaitGroup
	results := map[string]lab.Result{}
	for _, args := range verbs {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
			defer cancel()
			cmd := s.Command(ctx, args...)
			var out, errs strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &errs
			_ = cmd.Run() // the code is in the state
			mu.Lock()
			defer mu.Unlock()
			results[args[0]] = lab.Result{Args: args, Code: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: errs.String()}
		})
	}
	all.Wait()
	return results
}

// Nothing that matters lives in a folder for temporary files: roles and jobs work
// where TMPDIR names none.
func TestNoTemporaryFolder(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Site.Env = append(f.Site.Env, "TMPDIR="+filepath.Join(t.TempDir(), "swept", "away"))
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	names, jobs := series(y, "plain", 3, "quick")
	f.Site.Propose(jobs...)
	o.AwaitFinal(len(names))
	once(t, o, y, names)
	o.Check(y, names)
}
