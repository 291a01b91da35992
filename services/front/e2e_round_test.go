package front_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/query"
)

// diary is the head of an agent that writes its process id into its folder, and says
// so when another one is at work there.
const diary = `exec 9>.lock
flock -n 9 || echo overlap >>overlaps
echo $$ >>pids
`

// pids are the agents that have begun in a folder.
func pids(t *testing.T, repo string) (list []int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, "pids"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && strings.HasSuffix(line, "\n") {
			list = append(list, n)
		}
	}
	return list
}

// agents waits until so many agents have begun in a folder.
func agents(t *testing.T, repo string, n int) []int {
	t.Helper()
	var list []int
	lab.Eventually(t, strconv.Itoa(n)+" agents in "+repo, func() bool { list = pids(t, repo); return len(list) >= n })
	return list
}

// gone waits for the end of a process.
func gone(t *testing.T, pid int) {
	t.Helper()
	lab.Eventually(t, "process "+strconv.Itoa(pid)+" to end", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// endedRounds are the rounds of a project that have ended, newest first.
func endedRounds(t *testing.T, s *lab.Site, name string) (list []query.RoundView) {
	t.Helper()
	var rounds query.RoundList
	s.Must(0, "round", "ls", "--json", name).JSON(t, &rounds)
	for _, r := range rounds.Rounds {
		if r.State == "ended" {
			list = append(list, r)
		}
	}
	return list
}

// oneAtATime wants no two agents to have been at work in a folder at once.
func oneAtATime(t *testing.T, repo string) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(repo, "overlaps")); err == nil {
		t.Errorf("two agents were at work in %s at once: %s", repo, text)
	}
}

// A site that is killed takes its agents along. The next one begins a round of its
// own, never beside the old one, and tells that the first was interrupted.
func TestKilledSiteTakesItsAgentsAlong(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	repo := project(t, s, "long", diary+"echo half >work.txt\ntrap '' TERM\nsleep 1000 & sleep 1000\n", "")
	up := s.Up()
	first := agents(t, repo, 1)[0]
	up.Kill()
	s.Up()
	agents(t, repo, 2)
	gone(t, first)
	oneAtATime(t, repo)
	ended := endedRounds(t, s, "long")
	if len(ended) != 1 || ended[0].Outcome != "interrupted" || ended[0].Salvage == nil || git(t, repo, "show", ended[0].Salvage.Ref+":work.txt") != "half" {
		t.Errorf("the first round ended as %+v", ended)
	}
	s.Must(0, "loop", "kill", "long", "--reason", "enough")
	lab.Eventually(t, "the order to be confirmed", func() bool { return loopState(t, s, "long").State == query.LoopStopped })
	noViolation(t, s)
}

// Orders to kill reach every agent, also those that do not listen to TERM, and are
// confirmed when nothing of them is left.
func TestAgentsThatDoNotListenAreKilled(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Set("supervisor", "grace_s", "1")
	names := []string{"one", "two", "three"}
	repos := map[string]string{}
	for _, name := range names {
		repos[name] = project(t, s, name, diary+"trap '' TERM INT HUP\n(trap '' TERM; exec setsid sleep 1000) &\nwhile :; do sleep 0.1; done\n", "")
	}
	s.Up()
	for _, name := range names {
		agents(t, repos[name], 1)
	}
	for _, name := range names {
		s.Must(0, "loop", "kill", name, "--reason", "stop everything")
	}
	for _, name := range names {
		lab.Eventually(t, name+" to be stopped", func() bool { return loopState(t, s, name).State == query.LoopStopped })
		for _, pid := range pids(t, repos[name]) {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("%s is confirmed as stopped and agent %d is there: %v", name, pid, err)
			}
		}
		if ended := endedRounds(t, s, name); len(ended) == 0 || ended[0].Survivors != 0 {
			t.Errorf("the rounds of %s: %+v", name, ended)
		}
	}
	noViolation(t, s)
}

// A site that is frozen with a round under way keeps the round's limit all the same.
// When it wakes, it says how that round ended, once, and goes on with one more, not
// with all that it has missed.
func TestFrozenSiteKeepsTheLimit(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Set("supervisor", "grace_s", "1")
	repo := project(t, s, "slow", diary+"sleep 1000\n", "round_time_limit_s = 3\nmax_rounds = 2\n")
	up := s.Up()
	first := agents(t, repo, 1)[0]
	up.Signal(syscall.SIGSTOP)
	gone(t, first)
	if n := len(pids(t, repo)); n != 1 {
		t.Errorf("%d agents began while the site was frozen", n)
	}
	up.Signal(syscall.SIGCONT)
	lab.Eventually(t, "the second round to end", func() bool { return loopState(t, s, "slow").State == query.LoopHalted })
	ended := endedRounds(t, s, "slow")
	if len(ended) != 2 || len(pids(t, repo)) != 2 {
		t.Fatalf("%d rounds, %d agents, want two of each: %+v", len(ended), len(pids(t, repo)), ended)
	}
	for _, r := range ended {
		if r.Outcome != "timed_out" || r.Survivors != 0 {
			t.Errorf("%s ended as %+v", r.Round, r)
		}
	}
	oneAtATime(t, repo)
	noViolation(t, s)
}

// Keeping what a round left signs nothing and runs nothing of the repository's: a
// signing program and hooks that never return hold nobody up.
func TestKeepingWorkAsksNobody(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	repo := project(t, s, "signed", "echo worth keeping >work.txt\n", "max_rounds = 1\n")
	trap := filepath.Join(t.TempDir(), "never-returns")
	if err := os.WriteFile(trap, []byte("#!/bin/sh\necho $$ >>'"+trap+".ran'\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, setting := range [][2]string{{"commit.gpgsign", "true"}, {"gpg.program", trap}, {"core.fsmonitor", trap}, {"core.editor", trap}} {
		git(t, repo, "config", setting[0], setting[1])
	}
	for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"} {
		if err := os.Symlink(trap, filepath.Join(repo, ".git", "hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	s.Up()
	lab.Eventually(t, "the round and what it left", func() bool { return loopState(t, s, "signed").State == query.LoopHalted })
	ended := endedRounds(t, s, "signed")
	if len(ended) != 1 || ended[0].Salvage == nil || ended[0].Salvage.Ref == "" {
		t.Fatalf("nothing was kept: %+v", ended)
	}
	git(t, repo, "config", "--unset", "core.fsmonitor")
	if text := git(t, repo, "show", ended[0].Salvage.Ref+":work.txt"); text != "worth keeping" {
		t.Errorf("what was kept is %q", text)
	}
	if _, err := os.Stat(trap + ".ran"); err == nil {
		t.Error("a program that the repository names was run")
	}
	noViolation(t, s)
}
