package front_test

import (
	"context"
	"encoding/json/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// tools is an agent's session with 'banksman mcp', by the SDK's own client.
type tools struct {
	t *testing.T
	s *mcp.ClientSession
}

// connectTools starts 'banksman mcp' and speaks to it over its standard streams.
func connectTools(t *testing.T, s *lab.Site) tools {
	t.Helper()
	cmd := s.Command(context.Background(), "mcp")
	cmd.Dir, cmd.Stderr = t.TempDir(), t.Output()
	return openTools(t, &mcp.CommandTransport{Command: cmd})
}

func openTools(t *testing.T, over mcp.Transport) tools {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent-of-tests", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), over, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("the server did not end well: %v", err)
		}
	})
	return tools{t, session}
}

// told is what a tool answers: a job, or an error object.
type told struct {
	Job     string           `json:"job"`
	Status  lifecycle.Status `json:"status"`
	Decided bool             `json:"decided"`
	Why     string           `json:"why"`
	Next    string           `json:"next"`
	Exists  bool             `json:"existing"`
	Verdict string           `json:"verdict"`
	Exit    *int             `json:"exit_code"`
	Result  struct {
		Stdout struct {
			Text string `json:"text"`
			Cut  bool   `json:"cut"`
		} `json:"stdout"`
	} `json:"result"`
	Jobs  []told `json:"jobs"`
	Error struct {
		Code string `json:"code"`
		Next string `json:"next"`
	} `json:"error"`
}

// call uses a tool. The error object comes as a tool error, and nothing else
// does.
func (c tools) call(name string, arguments map[string]any) told {
	c.t.Helper()
	r, err := c.s.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	if len(r.Content) != 1 {
		c.t.Fatalf("%s answers %d contents", name, len(r.Content))
	}
	var out told
	text := r.Content[0].(*mcp.TextContent).Text
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		c.t.Fatalf("%s answers %q: %v", name, text, err)
	}
	if r.IsError != (out.Error.Code != "") {
		c.t.Errorf("%s: error %v, text %s", name, r.IsError, text)
	}
	return out
}

// An agent asks, waits and reads by MCP; a person decides elsewhere.
func TestAgentAsksByMCP(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	c := connectTools(t, s)

	t.Run("no tool decides", func(t *testing.T) {
		list, err := c.s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		want := []string{"assess_command", "cancel_job", "get_job", "list_my_jobs", "propose_command", "wait_for_decision"}
		if !slices.Equal(names, want) {
			t.Errorf("tools %q, want %q", names, want)
		}
	})
	t.Run("assessed", func(t *testing.T) {
		for verdict, command := range map[string][]any{"allow": {"git", "--version"}, "ask": {"bash", "-c", "x"}, "deny": {"rm", "-rf", "/"}} {
			if got := c.call("assess_command", map[string]any{"command": command}); got.Verdict != verdict {
				t.Errorf("%v: %+v", command, got)
			}
		}
	})
	t.Run("pending, approved, read", func(t *testing.T) {
		ask := map[string]any{"command": []any{"sh", "-c", "echo made; pwd; exit 3"}, "idempotency_key": "k", "cwd": "/", "reason": "to see"}
		job := c.call("propose_command", ask)
		if job.Decided || !strings.Contains(job.Next, "wait_for_decision") {
			t.Fatalf("want undecided, and how to go on: %+v", job)
		}
		if again := c.call("propose_command", ask); again.Job != job.Job || !again.Exists {
			t.Errorf("the same key is another job: %+v", again)
		}
		lab.Eventually(t, "the job to wait", func() bool { return show(t, s, job.Job).Status == lifecycle.Pending })
		if still := c.call("wait_for_decision", map[string]any{"job": job.Job, "wait_s": 0}); still.Decided || still.Status != lifecycle.Pending || !strings.Contains(still.Next, "banksman approve "+job.Job) {
			t.Errorf("want pending, and who can change it: %+v", still)
		}
		s.Must(0, "approve", job.Job)
		if decided := c.call("wait_for_decision", map[string]any{"job": job.Job, "wait_s": 45}); !decided.Decided {
			t.Errorf("want decided: %+v", decided)
		}
		var got told
		lab.Eventually(t, "the job to end", func() bool { got = c.call("get_job", map[string]any{"job": job.Job}); return got.Status.Final() })
		if got.Exit == nil || *got.Exit != 3 || got.Result.Stdout.Text != "made\n/\n" {
			t.Errorf("result %+v", got)
		}
	})
	t.Run("denied with the reason", func(t *testing.T) {
		got := c.call("propose_command", map[string]any{"command": []any{"rm", "-rf", "/"}})
		if got.Status != lifecycle.Denied || !strings.Contains(got.Why, "whole file system") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		job := c.call("propose_command", map[string]any{"command": []any{"sh", "-c", "echo never"}}).Job
		if got := c.call("cancel_job", map[string]any{"job": job, "reason": "changed my mind"}); got.Status != lifecycle.Cancelled {
			t.Errorf("%+v", got)
		}
		if got := c.call("cancel_job", map[string]any{"job": "no-such-job"}); got.Error.Code != "unknown_job" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("refused with a code", func(t *testing.T) {
		for _, r := range []struct {
			tool string
			in   map[string]any
			code string
		}{
			{"propose_command", map[string]any{}, "no_command"},
			{"propose_command", map[string]any{"command": nil}, "bad_request"},
			{"propose_command", map[string]any{"command": []any{"true", nil}}, "bad_request"},
			{"propose_command", map[string]any{"command": "true"}, "bad_request"},
			{"propose_command", map[string]any{"command": []any{"true"}, "approve": true}, "bad_request"},
			{"propose_command", map[string]any{"command": []any{"true"}, "cwd": "here"}, "bad_cwd"},
			{"propose_command", map[string]any{"command": []any{"echo", "\x1b[2J"}}, "control_character"},
			{"wait_for_decision", map[string]any{"job": "x", "wait_s": 46}, "out_of_range"},
			{"wait_for_decision", map[string]any{"job": "no-such-job"}, "unknown_job"},
			{"get_job", map[string]any{}, "bad_request"},
			{"get_job", map[string]any{"job": "no-such-job"}, "unknown_job"},
			{"list_my_jobs", map[string]any{"limit": 101}, "bad_request"},
			{"list_my_jobs", map[string]any{"limit": -1}, "bad_request"},
			{"list_my_jobs", map[string]any{"before": "no-such-job"}, "unknown_job"},
		} {
			if got := c.call(r.tool, r.in); got.Error.Code != r.code {
				t.Errorf("%s %v: code %q, want %q", r.tool, r.in, got.Error.Code, r.code)
			}
		}
	})
	t.Run("own jobs, newest first", func(t *testing.T) {
		other := agent(t, s, "stranger")
		foreign := strings.TrimSpace(other.Must(0, "propose", "--", "true").Stdout)
		list := c.call("list_my_jobs", nil)
		if len(list.Jobs) != 3 || list.Jobs[0].Status != lifecycle.Cancelled || list.Jobs[1].Status != lifecycle.Denied || list.Next != "" {
			t.Errorf("list %+v", list)
		}
		first := c.call("list_my_jobs", map[string]any{"limit": 1})
		if len(first.Jobs) != 1 || first.Jobs[0].Job != list.Jobs[0].Job || !strings.Contains(first.Next, first.Jobs[0].Job) {
			t.Fatalf("first page %+v", first)
		}
		second := c.call("list_my_jobs", map[string]any{"limit": 1, "before": first.Jobs[0].Job})
		if len(second.Jobs) != 1 || second.Jobs[0].Job != list.Jobs[1].Job || second.Next == "" {
			t.Errorf("second page %+v", second)
		}
		for _, tool := range []string{"get_job", "wait_for_decision", "cancel_job"} {
			if got := c.call(tool, map[string]any{"job": foreign}); got.Error.Code != "unknown_job" {
				t.Errorf("%s shows another agent's job: %+v", tool, got)
			}
		}
	})
	if code := up.Stop(); code != 0 {
		t.Errorf("up exited %d", code)
	}
	if got := c.call("propose_command", map[string]any{"command": []any{"true"}}); got.Error.Code != "proposer_away" || got.Error.Next == "" {
		t.Errorf("without the proposer: %+v", got)
	}
}

// bearer adds a token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// The same tools over HTTP, for who holds the token.
func TestAgentAsksOverHTTP(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Must(2, "mcp", "--http", "0.0.0.0:0")
	s.Up()
	p := s.Start("mcp", "--http", "127.0.0.1:0")
	address := ""
	lab.Eventually(t, "the server to listen", func() bool {
		_, after, _ := strings.Cut(p.Stderr(), "serving agents on ")
		line, _, whole := strings.Cut(after, "\n")
		address = line
		return whole
	})
	token, err := os.ReadFile(filepath.Join(s.Dir, "tokens", "agent.local"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("with the token", func(t *testing.T) {
		c := openTools(t, &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: bearer(strings.TrimSpace(string(token)))}})
		if got := c.call("assess_command", map[string]any{"command": []any{"git", "--version"}}); got.Verdict != "allow" {
			t.Errorf("%+v", got)
		}
	})
	r, err := http.Post(address, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %s", r.Status)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("it exited %d", code)
	}
}

// agent is the site as another agent sees it.
func agent(t *testing.T, s *lab.Site, name string) *lab.Site {
	t.Helper()
	token := "token-of-" + name + "-0123456789abcdef"
	if err := os.WriteFile(filepath.Join(s.Dir, "tokens", "agent."+name), []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := *s
	other.Env = append(slices.Clone(s.Env), "BANKSMAN_TOKEN="+token)
	return &other
}
