package front_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// git runs git in a folder and returns what it prints.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// project writes a project's repository, agent and table of the configuration.
func project(t *testing.T, s *lab.Site, name, script, more string) (repo string) {
	t.Helper()
	repo = filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	projectIn(t, s, repo, name, script, more)
	return repo
}

// projectIn is project with a folder that exists.
func projectIn(t *testing.T, s *lab.Site, repo, name, script, more string) {
	t.Helper()
	git(t, repo, "init", "-q")
	agent := filepath.Join(t.TempDir(), "agent.sh")
	for path, text := range map[string]string{agent: "#!/bin/sh\n" + script, filepath.Join(repo, "PROMPT.md"): "do it\n"} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git(t, repo, "add", ".")
	git(t, repo, "commit", "-qm", "start")
	f, err := os.OpenFile(filepath.Join(s.Dir, "banksman.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "\n[projects.%s]\nenabled = true\nwork_dir = %q\nagent = [%q]\nprompt_file = \"PROMPT.md\"\nrestart_delay_s = 1\n%s\n", name, repo, agent, more)
}

// loopState returns where a project stands.
func loopState(t *testing.T, s *lab.Site, name string) query.LoopView {
	t.Helper()
	var list query.LoopList
	s.Must(0, "loop", "status", "--json", name).JSON(t, &list)
	return list.Loops[0]
}

// Three rounds of an agent that leaves its work uncommitted: nothing is lost,
// nothing of the user's is touched, and what it proposes is joined to its round.
func TestRoundsLeaveNothingBehindAndLoseNothing(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	repo := project(t, s, "notes", `cat >>notes.txt
echo left >"new file"
echo "round $(wc -l <notes.txt)"
printf '\033]0;owned\007\033[2Jerased\n'
`+binary+` propose -- true >/dev/null
(setsid sleep 1000 &) # must not outlive the round
`, "max_rounds = 3")
	s.Up()
	lab.Eventually(t, "three rounds", func() bool { return loopState(t, s, "notes").State == query.LoopHalted })

	var rounds query.RoundList
	s.Must(0, "round", "ls", "--json", "notes").JSON(t, &rounds)
	if len(rounds.Rounds) != 3 {
		t.Fatalf("%d rounds, want 3", len(rounds.Rounds))
	}
	for _, r := range rounds.Rounds {
		if r.Outcome != "succeeded" || r.Salvage == nil || r.Salvage.Ref == "" || r.Survivors != 0 {
			t.Errorf("round %+v", r)
		}
		if got := git(t, repo, "show", r.Salvage.Ref+":new file"); got != "left" {
			t.Errorf("salvage of %s holds %q", r.Round, got)
		}
		if r := s.Must(0, "round", "tail", r.Round); !strings.HasPrefix(r.Stdout, "round ") {
			t.Errorf("the round's output: %s", r)
		}
	}
	if seen := onScreen(t, s, "round", "tail", rounds.Rounds[0].Round); strings.ContainsAny(seen, "\x1b\a") || !strings.Contains(seen, "erased\r\n") {
		t.Errorf("a terminal got %q", seen)
	}
	if seen := onScreen(t, s, "round", "tail", "--raw", rounds.Rounds[0].Round); !strings.Contains(seen, "\x1b[2Jerased") {
		t.Errorf("a terminal that asked for everything got %q", seen)
	}
	if got := git(t, repo, "status", "--porcelain"); !strings.Contains(got, "notes.txt") || git(t, repo, "stash", "list") != "" {
		t.Errorf("the user's tree was touched: %q", got)
	}
	var list view.List
	s.Must(0, "ls", "--json").JSON(t, &list)
	if len(list.Jobs) != 3 || !strings.HasPrefix(list.Jobs[0].Proposer, "agent:notes-") {
		t.Errorf("proposals are not joined to their rounds: %+v", list.Jobs)
	}
	s.Must(0, "loop", "start", "notes", "--reason", "three more")
	lab.Eventually(t, "a fourth round", func() bool { return loopState(t, s, "notes").Rounds > 3 })
	s.Must(0, "audit", "verify")
}

// A round's whole tree ends at its limit, and a stopped project stays stopped
// over a restart until somebody lifts the order.
func TestLimitStopAndLift(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	project(t, s, "slow", "sleep 1000 & trap '' TERM; echo begun; sleep 1000\n", "round_time_limit_s = 1\n")
	up := s.Up()
	var first query.RoundView
	lab.Eventually(t, "the limit to end a round", func() bool {
		var rounds query.RoundList
		s.Must(0, "round", "ls", "--json", "slow").JSON(t, &rounds)
		for _, r := range rounds.Rounds {
			if r.State == "ended" {
				first = r
			}
		}
		return first.Round != ""
	})
	if first.Outcome != "timed_out" || first.Survivors != 0 {
		t.Errorf("the round ended as %+v", first)
	}
	s.Must(0, "loop", "kill", "slow", "--reason", "enough")
	lab.Eventually(t, "the order to be confirmed", func() bool { return loopState(t, s, "slow").State == query.LoopStopped })
	rounds := loopState(t, s, "slow").Rounds
	if code := up.Stop(); code != 0 {
		t.Errorf("up exited %d", code)
	}
	s.Up()
	if v := loopState(t, s, "slow"); v.State != query.LoopStopped || v.Stop == nil || v.Stop.Reason != "enough" || v.Rounds != rounds {
		t.Errorf("the order did not outlive the restart: %+v", v)
	}
	s.Must(0, "loop", "start", "slow")
	lab.Eventually(t, "rounds to go on", func() bool { return loopState(t, s, "slow").Rounds > rounds })
	noViolation(t, s)
}
