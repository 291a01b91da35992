package front_test

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
)

// hooked is what a hook answered: its exit code, and its standard streams.
type hooked struct {
	code                      int
	stdout, stderr            string
	Decision, Reason, Command string
}

// hookCall runs a shell text as Claude Code runs a hook, and feeds it a call of
// a tool.
func hookCall(t *testing.T, s *lab.Site, home, text, input string) hooked {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", text)
	cmd.Env = append(s.Command(ctx).Env, "HOME="+home, "XDG_CACHE_HOME=")
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	h := hooked{code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errs.String()}
	if h.stdout == "" {
		return h
	}
	var answer struct {
		Specific struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
			Input    struct {
				Command string `json:"command"`
			} `json:"updatedInput"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		t.Fatalf("the hook answers %q: %v", h.stdout, err)
	}
	h.Decision, h.Reason, h.Command = answer.Specific.Decision, answer.Specific.Reason, answer.Specific.Input.Command
	return h
}

// toolUse is the input of a hook.
func toolUse(t *testing.T, cwd, tool, id string, input map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": cwd, "tool_name": tool, "tool_use_id": id, "tool_input": input})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shell runs the text that a hook put in place of the agent's command, as the
// agent's program would.
func shell(t *testing.T, s *lab.Site, text string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", text)
	cmd.Env = s.Command(ctx).Env
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// What a worker runs is what the hook proposed, and it runs once, also when the
// agent had to ask again.
func TestHookHandsCommandsToAWorker(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up()
	home, cwd := t.TempDir(), t.TempDir()
	file := filepath.Join(cwd, "out.txt")
	command := map[string]any{"command": "echo line >> " + file + "; cat " + file + "; exit 5", "description": "append"}
	ask := binary + " hook claude --wait 200ms || exit 2"

	first := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_1", command))
	j := pending(t, s)
	if first.code != 0 || first.Decision != "deny" || !strings.Contains(first.Reason, "pending") || !strings.Contains(first.Reason, "approve "+j.Job) {
		t.Fatalf("want pending, and who can change it: %+v", first)
	}
	again := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_2", command))
	if again.Decision != "deny" || !strings.Contains(again.Reason, j.Job) {
		t.Errorf("asking again is another job: %+v", again)
	}
	s.Must(0, "approve", j.Job)
	lab.Eventually(t, "the job to end", func() bool { return show(t, s, j.Job).Status.Final() })
	allowed := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_3", command))
	if allowed.Decision != "allow" || allowed.Command != binary+" run --attach "+j.Job {
		t.Fatalf("want the job that has run: %+v", allowed)
	}
	for range 2 {
		if code, out := shell(t, s, allowed.Command); code != 5 || out != "line\n" {
			t.Errorf("attached: exit %d, output %q", code, out)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "line\n" {
		t.Errorf("it ran more than once, or not at all: %q (%v)", text, err)
	}
	if p := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_4", map[string]any{"command": allowed.Command})); p.Decision != "allow" || p.Command != "" {
		t.Errorf("following a job is gated: %+v", p)
	}
	if p := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_5", command)); p.Decision != "deny" || strings.Contains(p.Reason, j.Job) {
		t.Errorf("the same command later is the old job: %+v", p)
	}
	s.Must(2, "run", "--attach", j.Job, "--", "true")
	s.Must(125, "run", "--attach", "no-such-job")
}

func TestHookAnswersAtOnce(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up()
	home, cwd := t.TempDir(), t.TempDir()
	ask := binary + " hook claude --wait 100ms || exit 2"
	denied := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_1", map[string]any{"command": "cd /tmp && rm -rf /"}))
	if denied.code != 0 || denied.Decision != "deny" || !strings.Contains(denied.Reason, "whole file system") || !strings.Contains(denied.Reason, "Instead") {
		t.Errorf("want denied with the reason: %+v", denied)
	}
	if r := hookCall(t, s, home, ask, toolUse(t, cwd, "Bash", "toolu_2", map[string]any{"command": "echo \x1b[2J"})); r.Decision != "deny" || !strings.Contains(r.Reason, "control_character") {
		t.Errorf("want the refusal's code: %+v", r)
	}
	if r := hookCall(t, s, home, ask, toolUse(t, cwd, "Read", "toolu_3", map[string]any{"file_path": "/etc/passwd"})); r.code != 0 || r.stdout != "" {
		t.Errorf("want other tools left to the program: %+v", r)
	}
	if r := hookCall(t, s, home, ask, toolUse(t, cwd, "Monitor", "toolu_4", map[string]any{"command": "id"})); r.Decision != "deny" {
		t.Errorf("want code that no worker can run denied: %+v", r)
	}
}

// Whatever goes wrong, the status is 2, which blocks the tool.
func TestHookFailsClosed(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	home := t.TempDir()
	good := toolUse(t, home, "Bash", "toolu_1", map[string]any{"command": "true"})
	hook := binary + " hook claude || exit 2"
	for name, c := range map[string]struct{ text, input string }{
		"the gate is down":       {hook, good},
		"banksman is missing":    {"/no/such/banksman hook claude || exit 2", good},
		"there is no site":       {binary + " --dir /no/such/site hook claude || exit 2", good},
		"no input":               {hook, ""},
		"no JSON":                {hook, "hello"},
		"cut off":                {hook, good[:len(good)/2]},
		"no command":             {hook, toolUse(t, home, "Bash", "toolu_1", map[string]any{})},
		"an unknown flag":        {binary + " hook claude --no-such-flag || exit 2", good},
		"it is killed":           {"timeout -s KILL 0.001 " + hook, good},
		"the token is a strange": {"BANKSMAN_TOKEN=x " + hook, good},
	} {
		if h := hookCall(t, s, home, c.text, c.input); h.code != 2 || h.stdout != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", name, h.code, h.stdout, h.stderr)
		}
	}
	// Alone, without the shell's help, too.
	if h := hookCall(t, s, home, binary+" hook claude", good); h.code != 2 || !strings.Contains(h.stderr, "reach the proposer") {
		t.Errorf("%+v", h)
	}
}

// The doctor tries the hook as it is installed, and runs nothing but what install
// writes.
func TestDoctorProvesTheHook(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	file := filepath.Join(t.TempDir(), "settings.json")
	var report struct {
		Findings []struct {
			Check  string `json:"check"`
			State  string `json:"state"`
			Detail string `json:"detail"`
		} `json:"findings"`
	}
	says := func(state, detail string) {
		t.Helper()
		r := s.Run("doctor", "--json", "--settings", file)
		r.JSON(t, &report)
		for _, f := range report.Findings {
			if f.Check == "hook" && f.State == state && strings.Contains(f.Detail, detail) {
				return
			}
		}
		t.Errorf("no finding %s, %s: %s", state, detail, r)
	}
	says("ok", "not installed")
	s.Must(0, "hook", "install", "claude", "--agent-version", "2.1.332", "--settings", file)
	says("ok", "it denies, blocks when it fails")
	if list := inbox(t, s); len(list) != 0 {
		t.Errorf("trying the hook made jobs: %+v", list)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) {
		t.Helper()
		if !strings.Contains(string(text), from) {
			t.Fatalf("the settings have no %q: %s", from, text)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change(`"onFailure": "block"`, `"onFailure": "continue"`)
	says("warn", "blocking failure mode")
	change(`Bash|`, ``)
	says("fail", "every tool that runs commands")
	mark := filepath.Join(t.TempDir(), "ran")
	change(binary, "touch "+mark+"; "+binary)
	says("fail", "not what this banksman installs")
	if _, err := os.Stat(mark); err == nil {
		t.Error("the doctor ran what somebody wrote into the settings")
	}
	change("", "")
	up.Stop()
	says("warn", "it blocks everything now")
}

// The hook is written into settings, shown, kept apart from the rest, and taken
// out again.
func TestHookIsInstalled(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	dir := t.TempDir()
	file, link := filepath.Join(dir, "kept", "settings.json"), filepath.Join(dir, "settings.json")
	mine := "{\n  \"model\": \"opus\"\n}\n"
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(mine), 0o640), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	install := func(code int, args ...string) lab.Result {
		t.Helper()
		return s.Must(code, append([]string{"hook", "install", "claude", "--settings", link}, args...)...)
	}
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	install(1, "--agent-version", "2.1.196")
	install(2, "--agent-version", "newest")
	if r := install(0, "--agent-version", "2.1.332", "--dry-run"); !strings.Contains(r.Stdout, "+ ") || read() != mine {
		t.Errorf("a dry run shows nothing, or writes: %s", r)
	}
	if r := install(0, "--agent-version", "2.1.197 (Claude Code)"); !strings.Contains(r.Stderr, "no blocking failure mode") || !strings.Contains(r.Stdout, "+") {
		t.Errorf("want the difference, and a note on the version: %s", r)
	}
	text := read()
	if !strings.Contains(text, binary+" hook claude || exit 2") || !strings.Contains(text, `"model": "opus"`) {
		t.Errorf("settings %s", text)
	}
	if r := install(0, "--agent-version", "2.1.332"); !strings.Contains(r.Stdout, "needs no change") || read() != text || r.Stderr != "" {
		t.Errorf("installing again: %s", r)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	s.Must(0, "hook", "uninstall", "claude", "--settings", link)
	if read() != mine {
		t.Errorf("after uninstall %q, want %q", read(), mine)
	}
	if target, err := os.Readlink(link); err != nil || target != file {
		t.Errorf("the link is gone: %q %v", target, err)
	}
	if err := os.WriteFile(file, []byte("{ // mine\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
	install(1, "--agent-version", "2.1.332")
	if read() != "{ // mine\n}" {
		t.Error("settings that cannot be read were overwritten")
	}
}
