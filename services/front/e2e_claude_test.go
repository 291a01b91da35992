package front_test

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// use is a tool that the model wants to use; without a name it is done.
type use struct {
	Tool  string
	Input map[string]any
}

// bash is the use of the shell.
func bash(command string) use { return use{"Bash", map[string]any{"command": command}} }

// model is a provider's API whose model does what a test says: next gets what
// its tools have answered so far.
type model struct {
	mu      sync.Mutex
	results []string
	next    func(results []string) use
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/messages") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var q struct {
		Stream   bool           `json:"stream"`
		Model    string         `json:"model"`
		Tools    []any          `json:"tools"`
		Messages []modelMessage `json:"messages"`
	}
	if err := json.UnmarshalRead(r.Body, &q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	wanted := use{}
	if len(q.Tools) > 0 {
		wanted = m.turn(q.Messages)
	}
	m.reply(w, q.Model, q.Stream, wanted)
}

// modelMessage is a message whose content may be a text or a list.
type modelMessage struct {
	Content jsontext.Value `json:"content"`
}

// turn notes what the tools have answered and asks the test what comes now.
func (m *model) turn(messages []modelMessage) use {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.results = nil
	for _, message := range messages {
		var parts []struct {
			Type    string         `json:"type"`
			Content jsontext.Value `json:"content"`
		}
		if json.Unmarshal(message.Content, &parts) != nil {
			continue
		}
		for _, p := range parts {
			if p.Type == "tool_result" {
				m.results = append(m.results, plain(p.Content))
			}
		}
	}
	return m.next(m.results)
}

// plain is the text of a tool's answer.
func plain(content jsontext.Value) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	json.Unmarshal(content, &parts)
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// reply answers as the provider does, as a stream of events or at once.
func (m *model) reply(w http.ResponseWriter, name string, stream bool, wanted use) {
	block, delta, reason := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": "All done."}, "end_turn"
	if wanted.Tool != "" {
		input, _ := json.Marshal(wanted.Input)
		block = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(m.results)), "name": wanted.Tool, "input": map[string]any{}}
		delta, reason = map[string]any{"type": "input_json_delta", "partial_json": string(input)}, "tool_use"
	}
	message := map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": name, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
	}
	if !stream {
		message["content"], message["stop_reason"] = []any{map[string]any{"type": "text", "text": "All done."}}, "end_turn"
		w.Header().Set("Content-Type", "application/json")
		json.MarshalWrite(w, message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range []map[string]any{
		{"type": "message_start", "message": message},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 1}},
		{"type": "message_stop"},
	} {
		data, _ := json.Marshal(e)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], data)
	}
}

// claude is Claude Code, hooked to a site.
type claude struct {
	t        *testing.T
	site     *lab.Site
	home     string
	cwd      string
	settings string
}

// newClaude installs the hook for the real Claude Code. Without it the test is
// skipped, or fails where BANKSMAN_REQUIRE_CLAUDE is 1.
func newClaude(t *testing.T, s *lab.Site) claude {
	t.Helper()
	if _, err := exec.LookPath("claude"); err != nil {
		if os.Getenv("BANKSMAN_REQUIRE_CLAUDE") == "1" {
			t.Fatalf("the hook with the real Claude Code: %v", err)
		}
		t.Skipf("the hook with the real Claude Code: %v", err)
	}
	c := claude{t: t, site: s, home: t.TempDir(), cwd: t.TempDir()}
	c.settings = filepath.Join(c.home, ".claude", "settings.json")
	s.Must(0, "hook", "install", "claude", "--settings", c.settings)
	return c
}

// change replaces a text of the settings.
func (c claude) change(from, to string) claude {
	c.t.Helper()
	text, err := os.ReadFile(c.settings)
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		c.t.Fatalf("the settings have no %q: %s", from, text)
	}
	if err := os.WriteFile(c.settings, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// impatient lets the hook answer soon where nobody decides.
func (c claude) impatient() claude {
	return c.change(" hook claude ||", " hook claude --wait 200ms ||")
}

// run is work that has to succeed.
func (c claude) run(next func(results []string) use, args ...string) []string {
	c.t.Helper()
	got, err := c.work(next, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return got
}

// work lets it work until the model is done, and returns what the model saw of
// its tools. Its own permissions are off, so that the hook alone holds it.
func (c claude) work(next func(results []string) use, args ...string) ([]string, error) {
	m := &model{next: next}
	api := httptest.NewServer(m)
	defer api.Close()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*lab.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "claude", append([]string{"-p", "--verbose", "--output-format", "stream-json", "--dangerously-skip-permissions"}, append(args, "--", "say done")...)...)
	cmd.Dir = c.cwd
	cmd.Env = append(c.site.Command(ctx).Env, "HOME="+c.home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "TMPDIR="+c.t.TempDir(),
		"ANTHROPIC_BASE_URL="+api.URL, "ANTHROPIC_API_KEY=sk-ant-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=1", "IS_SANDBOX=1", "CLAUDECODE=")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("claude: %w\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "All done.") {
		return nil, fmt.Errorf("claude did not end:\n%s", out.String())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.results, nil
}

// one wants a tool once.
func one(u use) func([]string) use {
	return func(results []string) use {
		if len(results) == 0 {
			return u
		}
		return use{}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The real Claude Code asks, is told no with the reason, waits, asks again, and
// a worker runs what was approved, once.
func TestRealClaudeIsGated(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()

	t.Run("denied with the reason", func(t *testing.T) {
		got := newClaude(t, s).run(one(bash("rm -rf /")))
		if len(got) != 1 || !strings.Contains(got[0], "whole file system") || !strings.Contains(got[0], "Instead") {
			t.Errorf("the model saw %q", got)
		}
	})
	t.Run("approved while it waits", func(t *testing.T) {
		c := newClaude(t, s)
		var got []string
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err = c.work(one(bash("echo made by a worker; echo x >> out.txt; exit 3")))
		}()
		s.Must(0, "approve", pending(t, s).Job)
		<-done
		if err != nil || len(got) != 1 || !strings.Contains(got[0], "made by a worker") || !strings.Contains(got[0], "3") {
			t.Errorf("the model saw %q (%v)", got, err)
		}
		if text, err := os.ReadFile(filepath.Join(c.cwd, "out.txt")); err != nil || string(text) != "x\n" {
			t.Errorf("it ran more than once, or not at all: %q (%v)", text, err)
		}
	})
	t.Run("pending and asked again", func(t *testing.T) {
		c := newClaude(t, s).impatient()
		ask := bash("echo later; echo x >> out.txt")
		got := c.run(func(results []string) use {
			switch len(results) {
			case 0:
				return ask
			case 1:
				s.Must(0, "approve", pending(t, s).Job)
				lab.Eventually(t, "the job to have run", func() bool { return exists(filepath.Join(c.cwd, "out.txt")) && len(inbox(t, s)) == 0 })
				return ask
			}
			return use{}
		})
		if len(got) != 2 || !strings.Contains(got[0], "pending") || !strings.Contains(got[0], "approve") || !strings.Contains(got[1], "later") {
			t.Errorf("the model saw %q", got)
		}
		if text, err := os.ReadFile(filepath.Join(c.cwd, "out.txt")); err != nil || string(text) != "x\n" {
			t.Errorf("it ran more than once, or not at all: %q (%v)", text, err)
		}
	})
	t.Run("it executes what was approved itself", func(t *testing.T) {
		c := newClaude(t, s).change(" hook claude ||", " hook claude --executor caller --wait 200ms ||")
		ask := bash("echo made by the agent; echo x >> out.txt")
		var job string
		got := c.run(func(results []string) use {
			switch len(results) {
			case 0:
				return ask
			case 1:
				job = pending(t, s).Job
				s.Must(0, "approve", job)
				return ask
			}
			return use{}
		})
		if len(got) != 2 || !strings.Contains(got[0], "pending") || !strings.Contains(got[1], "made by the agent") {
			t.Errorf("the model saw %q", got)
		}
		if text, err := os.ReadFile(filepath.Join(c.cwd, "out.txt")); err != nil || string(text) != "x\n" {
			t.Errorf("it ran more than once, or not at all: %q (%v)", text, err)
		}
		if j := show(t, s, job); j.Status != lifecycle.HandedOver || len(j.Attempts) != 0 {
			t.Errorf("%s, attempts %+v", j.Status, j.Attempts)
		}
	})
	t.Run("it cannot approve itself", func(t *testing.T) { approvesItself(t, s) })
	t.Run("by its tools", func(t *testing.T) {
		config := filepath.Join(t.TempDir(), "mcp.json")
		text, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"banksman": map[string]any{"command": binary, "args": []string{"--dir", s.Dir, "mcp"}}}})
		if err := os.WriteFile(config, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got := newClaude(t, s).run(one(use{"mcp__banksman__propose_command", map[string]any{"command": []string{"git", "--version"}}}), "--mcp-config", config)
		if len(got) != 1 || !strings.Contains(got[0], `"job"`) || strings.Contains(got[0], "denied") {
			t.Errorf("the model saw %q", got)
		}
	})
	t.Run("the gate is down", func(t *testing.T) {
		c := newClaude(t, s)
		up.Stop()
		c.blocked(t, "proposer")
	})
	t.Run("banksman is missing", func(t *testing.T) {
		newClaude(t, s).change(binary, "/no/such/banksman").blocked(t, "")
	})
}

// blocked asserts that a command does not run, and what the model sees of why.
func (c claude) blocked(t *testing.T, says string) {
	t.Helper()
	got := c.run(one(bash("echo ran > out.txt")))
	if len(got) != 1 || !strings.Contains(got[0], says) {
		t.Errorf("the model saw %q", got)
	}
	if exists(filepath.Join(c.cwd, "out.txt")) {
		t.Error("the command ran")
	}
}

// approvesItself lets the agent try every way to approve what it has asked for.
func approvesItself(t *testing.T, s *lab.Site) {
	target := strings.TrimSpace(s.Must(0, "propose", "--", "sh", "-c", "echo owned").Stdout)
	lab.Eventually(t, "the target to wait", func() bool { return show(t, s, target).Status == lifecycle.Pending })
	token, socket := filepath.Join(s.Dir, "tokens", "agent.local"), filepath.Join(s.Dir, "run", "proposer", "proposer.sock")
	ways := []string{
		binary + " approve " + target,
		binary + " run --attach " + target + " --wait 1ms; " + binary + " approve " + target,
		"env BANKSMAN_DIR=" + s.Dir + " " + binary + " approve " + target,
		"sh -c '" + binary + " approve " + target + "'",
		"cp -r " + s.Dir + "/keys .",
		"curl -s --unix-socket " + socket + " -H \"Authorization: Bearer $(cat " + token + ")\" -X POST http://x/v1/jobs/" + target + "/approve",
	}
	c := newClaude(t, s).impatient()
	got := c.run(func(results []string) use {
		if len(results) < len(ways) {
			return bash(ways[len(results)])
		}
		return use{}
	})
	if len(got) != len(ways) {
		t.Fatalf("the model saw %q", got)
	}
	for i, r := range got {
		if !strings.Contains(r, "pending") && !strings.Contains(r, "denied") && !strings.Contains(r, "refused") {
			t.Errorf("%s: the model saw %q", ways[i], r)
		}
	}
	if j := show(t, s, target); j.Status != lifecycle.Pending {
		t.Errorf("the target is %s", j.Status)
	}
	for _, j := range inbox(t, s) {
		s.Must(0, "deny", j.Job, "--reason", "the test is over")
	}
}
