package front_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/view"
)

// A job ends when its direct child does, whatever that leaves behind: nothing of
// it holds the job up, changes its result, runs it again, or lives on.
func TestWhatAJobLeavesEndsWithIt(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.Up()
	for name, script := range map[string]string{
		"a background child that holds the output":         `sleep 300 & echo DONE`,
		"a daemon in a session of its own":                 `setsid sh -c ': >daemon; exec sleep 300' </dev/null >/dev/null 2>&1 & while [ ! -e daemon ]; do sleep 0.02; done; rm daemon; echo DONE`,
		"an orphan of a double fork without environment":   `(env -i setsid sh -c '(sleep 300 &) ; exit' &); sleep 0.1; echo DONE`,
		"a child that ignores TERM and the leader is gone": `(trap '' TERM INT; : >deaf; while :; do sleep 0.2; done) & while [ ! -e deaf ]; do sleep 0.02; done; rm deaf; echo DONE`,
		"a stopped child":                `sleep 300 & kill -STOP $!; echo DONE`,
		"children that nobody waits for": `i=0; while [ $i -lt 200 ]; do (exit 0) & i=$((i+1)); done; sleep 300 & echo DONE`,
	} {
		d := s.does(script, "--max-attempts", "3")
		if d.Status != lifecycle.Succeeded || len(d.Attempts) != 1 || d.Result.Stdout != "DONE\n" || d.Result.Survivors != 0 || len(d.Result.Means) == 0 || d.Result.LeftBehind == 0 {
			t.Errorf("%s: %s after %d attempts, %+v", name, d.Status, len(d.Attempts), d.Result)
		}
		if left := s.left(); len(left) > 0 {
			t.Errorf("%s: these live on: %q", name, left)
		}
	}
}

// A job that kills or stops the process that watches it gains nothing: it fails, or
// ends at its limit, and nothing of it lives on. Behind Landlock it cannot even try.
func TestJobThatAttacksItsWatcher(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.Up()
	const more = `setsid sh -c 'trap "" TERM; : >deaf; while :; do sleep 0.2; done' & while [ ! -e deaf ]; do sleep 0.02; done; `
	if d := s.does(more + `kill -9 $PPID; sleep 300`); d.Status != lifecycle.Failed || d.Result.ExitCode != -1 || !strings.Contains(d.Result.Error, "exit status is unknown") {
		t.Errorf("after the watcher was killed: %s, %+v", d.Status, d.Result)
	}
	if d := s.does(more+`kill -STOP $PPID; sleep 300`, "--timeout", "3s"); d.Status != lifecycle.TimedOut {
		t.Errorf("after the watcher was stopped: %s, %+v", d.Status, d.Result)
	}
	lab.Eventually(t, "nothing to be left", func() bool { return len(s.left()) == 0 })
	if d := s.does("echo next"); d.Status != lifecycle.Succeeded {
		t.Errorf("the next job is %s", d.Status)
	}
}

// A limit ends the whole tree, is no success, and keeps what was written before.
func TestLimitEndsTheTree(t *testing.T) {
	t.Parallel()
	s := newScripted(t, [3]string{"worker", "slots", "5"})
	s.Up()
	chain := filepath.Join(s.work, "chain.sh")
	if err := os.WriteFile(chain, []byte(`[ "$1" -gt 0 ] && sh "$0" $(($1 - 1)) & exit 0`), 0o755); err != nil {
		t.Fatal(err)
	}
	jobs := map[string]string{}
	for name, script := range map[string]string{
		"a grandchild that holds the output":    `echo part1; sh -c 'sleep 300 & sleep 300; true'; echo part2`,
		"layers of shells":                      `echo part1; sh -c "sh -c 'sh -c \"while :; do sleep 0.2; done\"; true'; true"; echo part2`,
		"a job that ignores TERM":               `trap '' TERM; echo part1; while :; do sleep 0.2; done; echo part2`,
		"processes that fork while they end":    `trap '' TERM; echo part1; sh ./chain.sh 100000 & while :; do sleep 0.2; done; echo part2`,
		"more output than is kept, and a sleep": `echo part1; yes | head -c 10000000; sleep 300; echo part2`,
	} {
		jobs[name] = s.propose(script, "--timeout", "5s")
	}
	for name, job := range jobs {
		d := s.ends(job)
		if d.Status != lifecycle.TimedOut || !strings.HasPrefix(d.Result.Stdout, "part1\n") || strings.Contains(d.Result.Stdout, "part2") || d.Result.Survivors != 0 {
			t.Errorf("%s: %s, %d bytes, exit %d %s", name, d.Status, len(d.Result.Stdout), d.Result.ExitCode, d.Result.Signal)
		}
		if strings.HasPrefix(name, "more output") && d.Result.StdoutInfo.CutBytes == 0 {
			t.Errorf("%s: nothing says that output was left out: %+v", name, d.Result.StdoutInfo)
		}
	}
	if left := s.left(); len(left) > 0 {
		t.Errorf("these live on: %q", left)
	}
	// The slots are free again, without a restart.
	if d := s.does("echo next"); d.Status != lifecycle.Succeeded {
		t.Errorf("the next job is %s", d.Status)
	}
}

// A job that is called off says so only when its tree has ended: what it held is
// free for the next one. It hears TERM once.
func TestCancelledJobLetsGo(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.Up()
	const holds = `exec 9>>held; flock -n 9 || exit 9; n=0; trap 'n=$((n+1))' TERM; : >holding
		while [ $n -eq 0 ]; do sleep 0.05; done; for i in 1 2 3 4; do sleep 0.1; done; echo terms $n; exit 0`
	called := func() view.Detail {
		job := s.propose(`(` + holds + `) & wait; wait`)
		s.awaitFile("holding")
		if err := os.Remove(filepath.Join(s.work, "holding")); err != nil {
			t.Fatal(err)
		}
		s.Must(0, "cancel", job, "--reason", "no longer wanted")
		return s.ends(job)
	}
	for range 2 {
		d := called()
		if d.Status != lifecycle.Cancelled || d.Receipt == nil || d.Receipt.Survivors != 0 || !strings.Contains(d.Ending, "no longer wanted") {
			t.Errorf("%s, %q, receipt %+v", d.Status, d.Ending, d.Receipt)
		}
		if left := s.left(); len(left) > 0 {
			t.Errorf("called off, and these live on: %q", left)
		}
		if r := s.Must(0, "tail", d.Job.Job); r.Stdout != "terms 1\n" {
			t.Errorf("the job said %s", r)
		}
	}
}

// Jobs are not hit by what goes on around them: eight wait while thirty others
// begin, fail and end.
func TestBusyWorkerLeavesItsJobsAlone(t *testing.T) {
	t.Parallel()
	s := newScripted(t, [3]string{"worker", "slots", "12"})
	s.Up()
	var waiting []string
	for range 8 {
		waiting = append(waiting, s.propose(`trap 'echo hit' TERM INT HUP CONT USR1 USR2; while [ ! -e gate ]; do sleep 0.05; done; echo through`))
	}
	var quick []string
	for range 30 {
		quick = append(quick, s.propose(`echo out; echo err >&2; exit 7`))
	}
	for _, job := range quick {
		if d := s.ends(job); d.Result.ExitCode != 7 || d.Result.Stdout != "out\n" || d.Result.Stderr != "err\n" {
			t.Errorf("a failing job: %+v", d.Result)
		}
	}
	if err := os.WriteFile(filepath.Join(s.work, "gate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, job := range waiting {
		if d := s.ends(job); d.Status != lifecycle.Succeeded || d.Result.Stdout != "through\n" {
			t.Errorf("a waiting job: %s, %+v", d.Status, d.Result)
		}
	}
	lab.Eventually(t, "nothing to be left", func() bool { return len(s.left()) == 0 })
}
