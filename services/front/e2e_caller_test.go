package front_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// What its proposer executes is decided as anything else, started by no worker,
// handed over once, and reported by its proposer's own word.
func TestTheCallerExecutesWhatWasApproved(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking+"[[rule]]\nid = \"free\"\nprogram = \"date\"\nexact = true\ndecision = \"allow\"\n"))
	s.Up()
	dir := t.TempDir()
	mark := filepath.Join(dir, "ran")
	ask := func(argv ...string) string {
		t.Helper()
		return propose(t, s, append([]string{"--executor", "caller", "--cwd", dir, "--"}, argv...)...)
	}

	id := ask("sh", "-c", "touch "+mark)
	s.Must(75, "take", id)
	s.Must(125, "run", "--attach", id)
	s.Must(0, "approve", id)
	j := until(t, s, id, lifecycle.Approved)
	if j.Executor != "caller" {
		t.Errorf("it does not say who executes it: %+v", j.Job)
	}
	s.Must(1, "report", id, "--exit-code", "0")
	s.Must(0, "take", id)
	if r := s.Must(1, "take", "--json", id); !strings.Contains(r.Stderr, "handed over before") {
		t.Errorf("taken twice: %s", r)
	}
	s.Must(2, "report", id)
	s.Must(0, "report", id, "--exit-code", "3")
	s.Must(1, "report", id, "--exit-code", "0")
	j = show(t, s, id)
	if j.Status != lifecycle.HandedOver || j.Report == nil || j.Report.ExitCode != 3 || len(j.Attempts) != 0 {
		t.Errorf("%s, report %+v, attempts %+v", j.Status, j.Report, j.Attempts)
	}

	at := strings.TrimSpace(s.Must(0, "propose", "--executor", "caller", "--cwd", dir, "--", "date").Stdout)
	s.Must(0, "take", at, "--wait", "30s") // policy allows it

	denied := ask("sh", "-c", "echo no")
	s.Must(0, "deny", denied, "--reason", "not this")
	if r := s.Must(77, "take", denied); !strings.Contains(r.Stderr, "not this") {
		t.Errorf("want the reason: %s", r)
	}
	revoked := ask("echo", "revoked")
	s.Must(0, "approve", revoked)
	s.Must(0, "revoke", revoked, "--reason", "changed my mind")
	s.Must(1, "take", revoked)

	script := filepath.Join(dir, "job.sh")
	write := func(text string) {
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.Must(0, "policy", "publish", policyFile(t, "[[rule]]\nid = \"scripts\"\nprogram = [\"sh\", \"echo\"]\ncode_args = [\"script\"]\ndecision = \"ask\"\n"))
	write("echo harmless\n")
	changed := ask("sh", script)
	s.Must(0, "approve", changed)
	write("touch " + mark + "\n")
	if r := s.Must(1, "take", "--json", changed); !strings.Contains(r.Stderr, `"changed"`) {
		t.Errorf("want the change named: %s", r)
	}
	if j := until(t, s, changed, lifecycle.Cancelled); !strings.Contains(j.Ending, "changed since it was approved") {
		t.Errorf("ending %q", j.Ending)
	}
	// A worker that has started later jobs has passed over all of these.
	s.Must(0, "cancel", propose(t, s, "--", "echo", "later"))
	worked := propose(t, s, "--", "echo", "worked")
	s.Must(0, "approve", worked)
	until(t, s, worked, lifecycle.Succeeded)
	if exists(mark) {
		t.Error("a worker executed what was for the caller")
	}
	s.Must(1, "propose", "--executor", "caller", "--max-attempts", "2", "--", "echo", "x")
	s.Must(1, "propose", "--executor", "moon", "--", "echo", "x")
	s.Must(0, "audit", "verify")
}

// A program that does not let its hook rewrite a tool's input still asks: what was
// approved is handed over to it, once, and everything else is blocked.
func TestHookForAProgramThatExecutesItself(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up()
	home, cwd := t.TempDir(), t.TempDir()
	settings := filepath.Join(home, "settings.json")
	s.Must(0, "hook", "install", "claude", "--executor", "caller", "--agent-version", "2.1.332", "--settings", settings)
	if text, err := os.ReadFile(settings); err != nil || !strings.Contains(string(text), " hook claude --executor caller || exit 2") {
		t.Fatalf("settings %s (%v)", text, err)
	}
	ask := binary + " hook claude --executor caller --wait 200ms || exit 2"
	command := map[string]any{"command": "echo x >> out.txt"}
	first := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_1", command))
	j := pending(t, s)
	if first.code != 0 || first.Decision != "deny" || !strings.Contains(first.Reason, "approve "+j.Job) || strings.Contains(first.Reason, "--attach") {
		t.Fatalf("want pending: %+v", first)
	}
	s.Must(0, "approve", j.Job)
	until(t, s, j.Job, lifecycle.Approved)
	allowed := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_2", command))
	if allowed.Decision != "allow" || allowed.Command != "" || !strings.Contains(allowed.Reason, j.Job) {
		t.Fatalf("want it allowed as it is: %+v", allowed)
	}
	until(t, s, j.Job, lifecycle.HandedOver)
	if again := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_3", command)); again.Decision != "deny" || strings.Contains(again.Reason, j.Job) {
		t.Errorf("one yes was used twice: %+v", again)
	}
	if exists(filepath.Join(cwd, "out.txt")) {
		t.Error("a worker ran it")
	}
	if r := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_4", map[string]any{"command": "rm -rf /"})); r.Decision != "deny" || !strings.Contains(r.Reason, "whole file system") {
		t.Errorf("want denied with the reason: %+v", r)
	}
	if h := hookCall(t, s, home, binary+" hook claude --executor moon || exit 2", toolUse(t, cwd, "Bash", "toolu_5", command)); h.code != 2 || h.stdout != "" {
		t.Errorf("an unknown executor does not block: %+v", h)
	}
	s.Must(0, "hook", "uninstall", "claude", "--settings", settings)
	if text, err := os.ReadFile(settings); err != nil || strings.Contains(string(text), "banksman") {
		t.Errorf("after uninstall %s (%v)", text, err)
	}
}
