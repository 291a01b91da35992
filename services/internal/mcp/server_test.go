package mcp

import (
	"context"
	"encoding/json/v2"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/localsock"
	"github.com/banksman/banksman/services/internal/view"
)

// proposer answers on a real socket with what a test says.
func proposer(t *testing.T, answer http.HandlerFunc) *agentapi.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "proposer.sock")
	listener, err := localsock.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: answer}}
	server.Start()
	t.Cleanup(server.Close)
	return agentapi.NewClient(path, "the-token")
}

func reply(w http.ResponseWriter, v any) { json.MarshalWrite(w, v, json.Deterministic(true)) }

// client is an agent's session over a pipe.
func client(t *testing.T, s *Server) *sdk.ClientSession {
	t.Helper()
	hereIn, thereOut := io.Pipe()
	thereIn, hereOut := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), thereIn, thereOut) }()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: hereIn, Writer: hereOut}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		if err := <-served; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return session
}

// use calls a tool and returns its text.
func use(t *testing.T, c *sdk.ClientSession, name string, arguments any) (text string, isError bool) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// What the schemas promise is what the arguments are: the same members, and
// nothing that may be null or that nobody defined.
func TestSchemasAreWhatIsRead(t *testing.T) {
	for schema, in := range map[string]any{proposeSchema: proposal{}, waitSchema: waiting{}, jobSchema: one{}, cancelSchema: ending{}, listSchema: page{}} {
		var s struct {
			Type       string                    `json:"type"`
			Additional *bool                     `json:"additionalProperties"`
			Required   []string                  `json:"required"`
			Properties map[string]map[string]any `json:"properties"`
		}
		if err := json.Unmarshal([]byte(schema), &s, json.RejectUnknownMembers(true)); err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range reflect.TypeOf(in).NumField() {
			names = append(names, reflect.TypeOf(in).Field(i).Tag.Get("json"))
		}
		if s.Type != "object" || s.Additional == nil || *s.Additional || len(names) != len(s.Properties) {
			t.Errorf("%T: %d members, schema %s", in, len(names), schema)
		}
		for name, p := range s.Properties {
			if _, isText := p["type"].(string); !slices.Contains(names, name) || !isText {
				t.Errorf("%T: member %s of type %v", in, name, p["type"])
			}
		}
		for _, r := range s.Required {
			if s.Properties[r] == nil {
				t.Errorf("%T: %s is required and nowhere", in, r)
			}
		}
	}
}

func TestProposalsReachTheDoorWhole(t *testing.T) {
	var got agentapi.Proposal
	var token string
	s := New(proposer(t, func(w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization")
		if err := json.UnmarshalRead(r.Body, &got); err != nil {
			t.Error(err)
		}
		reply(w, view.Detail{Job: view.Job{Job: "j", Status: lifecycle.Pending}})
	}), "1", "/here")
	c := client(t, s)
	text, isError := use(t, c, "propose_command", map[string]any{
		"command": []string{"a", "b c"}, "env": map[string]string{"N": "V"}, "reason": "r", "timeout_s": 5, "max_attempts": 2, "retry_safe": true,
		"idempotency_key": "k", "labels": map[string]string{"l": "m"}, "pool": "p",
	})
	want := agentapi.Proposal{
		Argv: []string{"a", "b c"}, Cwd: "/here", Env: map[string]string{"N": "V"}, Reason: "r", TimeoutS: 5, MaxAttempts: 2, RetrySafe: true,
		IdempotencyKey: "k", Labels: map[string]string{"l": "m"}, Pool: "p",
	}
	if isError || !reflect.DeepEqual(got, want) || token != "Bearer the-token" {
		t.Errorf("%s\ngot  %+v\nwant %+v", text, got, want)
	}
}

func TestWaitIsBoundedAndSaysHowToGoOn(t *testing.T) {
	var waits []string
	s := New(proposer(t, func(w http.ResponseWriter, r *http.Request) {
		waits = append(waits, r.FormValue("wait_ms"))
		j := view.Detail{Job: view.Job{Job: "j", Status: lifecycle.Pending, LastSeq: 7}}
		if len(waits) > 1 {
			j.Status, j.Ruling, j.DeniedBy = lifecycle.Denied, &events.Ruling{Code: "person", Reason: "no", Instead: "ask later"}, "p7k2"
		}
		reply(w, j)
	}), "1", "/")
	c := client(t, s)
	if text, _ := use(t, c, "wait_for_decision", map[string]any{"job": "j", "wait_s": 0}); !strings.Contains(text, "Call wait_for_decision with this job again") || !strings.Contains(text, `"decided":false`) {
		t.Error(text)
	}
	waits = nil
	text, isError := use(t, c, "wait_for_decision", map[string]any{"job": "j"})
	for _, says := range []string{`"decided":true`, `"why":"no"`, `"instead":"ask later"`, `"denied_by":"p7k2"`} {
		if isError || !strings.Contains(text, says) {
			t.Errorf("%s does not say %s", text, says)
		}
	}
	if len(waits) != 2 || waits[1] == "0" || len(waits[1]) > len("30000") {
		t.Errorf("asked with waits %q", waits)
	}
}

// Output of any size and any bytes makes a bounded answer.
func TestOutputInAnAnswerIsBounded(t *testing.T) {
	s := New(proposer(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/output") {
			reply(w, view.Detail{Job: view.Job{Job: "j", Status: lifecycle.Succeeded}, Attempts: []view.Attempt{{Attempt: 1}}, Result: &view.Result{}})
			return
		}
		for i := range 64 {
			reply(w, agentapi.Chunk{N: i, Stream: "stdout", Data: []byte(strings.Repeat("\xff\x1b", 1<<15))})
		}
		reply(w, agentapi.Chunk{N: 64, Stream: "stderr", Data: []byte("oops")})
	}), "1", "/")
	text, isError := use(t, client(t, s), "get_job", map[string]any{"job": "j"})
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil || isError {
		t.Fatal(err, text)
	}
	if n := len(a.Result.Stdout.Text); n < 1<<10 || n > 4*maxText || !a.Result.Stdout.Cut || a.Result.Stderr != (stream{Text: "oops"}) {
		t.Errorf("%d bytes, cut %v, stderr %+v", n, a.Result.Stdout.Cut, a.Result.Stderr)
	}
}

func TestFailuresAreToolErrorsWithACode(t *testing.T) {
	away := New(agentapi.NewClient("/no/such/socket", "t"), "1", "/")
	for _, c := range []struct {
		name, code string
		in         any
	}{
		{"get_job", "proposer_away", map[string]any{"job": "j"}},
		{"list_my_jobs", "proposer_away", map[string]any{}},
		{"get_job", "bad_request", map[string]any{"job": nil}},
		{"cancel_job", "bad_request", map[string]any{"job": ""}},
		{"cancel_job", "proposer_away", map[string]any{"job": "j", "reason": "r"}},
		{"get_job", "bad_request", map[string]any{"job": "j", "Job": "k"}},
		{"wait_for_decision", "out_of_range", map[string]any{"job": "j", "wait_s": -1}},
	} {
		text, isError := use(t, client(t, away), c.name, c.in)
		var e agentapi.Envelope
		if err := json.Unmarshal([]byte(text), &e); err != nil || !isError || e.Error == nil || e.Error.Code != c.code {
			t.Errorf("%s %v: %s, want %s", c.name, c.in, text, c.code)
		}
	}
	silent := New(proposer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), "1", "/")
	if text, isError := use(t, client(t, silent), "get_job", map[string]any{"job": "j"}); !isError || !strings.Contains(text, `"code":"failed"`) {
		t.Error(text)
	}
}

// A server ends when it is told to, also while its client says nothing.
func TestServeEndsWithItsContext(t *testing.T) {
	in, _ := io.Pipe()
	_, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(agentapi.NewClient("/no", "t"), "1", "/").Serve(ctx, in, out) }()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}

// bearer adds a token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestHTTPNeedsTheToken(t *testing.T) {
	s := New(proposer(t, func(w http.ResponseWriter, r *http.Request) {
		reply(w, view.Detail{Job: view.Job{Job: "j", Status: lifecycle.Pending}})
	}), "1", "/")
	server := httptest.NewServer(s.Handler("the-token"))
	defer server.Close()
	dial := func(token bearer) (*sdk.ClientSession, error) {
		return sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: server.URL, HTTPClient: &http.Client{Transport: token}, MaxRetries: -1}, nil)
	}
	c, err := dial("the-token")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if text, isError := use(t, c, "get_job", map[string]any{"job": "j"}); isError || !strings.Contains(text, `"job":"j"`) {
		t.Error(text)
	}
	for _, token := range []bearer{"", "another", "the-token-and-more"} {
		if c, err := dial(token); err == nil {
			c.Close()
			t.Errorf("token %q is let in", token)
		}
	}
	open := httptest.NewRecorder()
	s.Handler("").ServeHTTP(open, httptest.NewRequest(http.MethodPost, "/", nil))
	if open.Code != http.StatusUnauthorized {
		t.Errorf("a server without a token answers %d", open.Code)
	}
}

func TestOnlyLoopbackAddresses(t *testing.T) {
	for _, a := range []string{"127.0.0.1:0", "127.1.2.3:7410", "[::1]:7410"} {
		if err := CheckAddress(a); err != nil {
			t.Error(err)
		}
	}
	for _, a := range []string{"", "7410", ":7410", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.org:1", "localhost:1", "127.0.0.1"} {
		if CheckAddress(a) == nil {
			t.Errorf("%q is taken", a)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"command":["a"]}`, `{"command":null}`, `{"command":["a",null]}`, `{"env":{"a":null}}`, `{"command":["a"],"command":["b"]}`, `{"x":1}`, "null", "", "[]", "{}{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := arguments[proposal](data)
		var e *agentapi.Error
		if err != nil && (!errors.As(err, &e) || e.Code != "bad_request") {
			t.Errorf("an error without its code: %v", err)
		}
		if text := strings.TrimSpace(string(data)); err == nil && text != "" && text != "null" && text[0] != '{' {
			t.Errorf("%q is taken for an object", data)
		}
	})
}
