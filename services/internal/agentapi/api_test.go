package agentapi_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/localsock"
)

// served answers every request on a socket with a function.
func served(t *testing.T, do http.HandlerFunc) *agentapi.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.sock")
	l, err := localsock.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	server, done := &http.Server{Handler: do}, make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return agentapi.NewClient(path, "bmt_x")
}

func TestClientSendsWhatTheDoorReads(t *testing.T) {
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		var p agentapi.Proposal
		err := json.UnmarshalRead(r.Body, &p, json.RejectUnknownMembers(true))
		if r.Header.Get("Authorization") != "Bearer bmt_x" || r.URL.Path != "/v1/jobs" || r.Method != "POST" || err != nil || !slices.Equal(p.Argv, []string{"a", ""}) || p.Cwd != "/" {
			t.Errorf("%s %s %s %+v, %v", r.Method, r.URL, r.Header, p, err)
		}
		io.WriteString(w, `{"job":"j1","status":"proposed"}`)
	})
	got, err := c.Propose(t.Context(), agentapi.Proposal{Argv: []string{"a", ""}, Cwd: "/"})
	if err != nil || got.Job.Job != "j1" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestClientAsksForOneJobWhateverItsId(t *testing.T) {
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() != "/v1/jobs/a%2Fb%3Fc" || r.FormValue("after") != "7" || r.FormValue("wait_ms") != "1500" {
			t.Errorf("%s", r.URL)
		}
		io.WriteString(w, `{}`)
	})
	if _, err := c.Job(t.Context(), "a/b?c", 7, 1500*time.Millisecond); err != nil {
		t.Error(err)
	}
}

func TestRefusalsAreErrors(t *testing.T) {
	answer := `{"error":{"code":"secret","message":"proposal refused","next":"do this"}}`
	c := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(422)
		io.WriteString(w, answer)
	})
	_, err := c.Propose(t.Context(), agentapi.Proposal{})
	var e *agentapi.Error
	if !errors.As(err, &e) || e.Code != "secret" || e.Next != "do this" || e.Status != 422 || e.Error() != "proposal refused" {
		t.Errorf("%+v", err)
	}
	for _, answer = range []string{"", "{}", "<html>"} {
		if _, err := c.Propose(t.Context(), agentapi.Proposal{}); err == nil || !strings.Contains(err.Error(), "without a reason") {
			t.Errorf("%q: %v", answer, err)
		}
	}
	if _, err := c.Propose(t.Context(), agentapi.Proposal{Argv: []string{"\xff"}}); !errors.As(err, &e) || e.Code != "invalid_text" {
		t.Errorf("%v", err)
	}
}

func TestNobodyListens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	_, err := agentapi.NewClient(path, "x").Propose(t.Context(), agentapi.Proposal{})
	var e *agentapi.Error
	if !errors.As(err, &e) || e.Code != "proposer_away" || !strings.Contains(e.Message, path) || e.Next == "" {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := agentapi.NewClient(path, "x").Propose(ctx, agentapi.Proposal{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// An output that was cut off is not a whole one; what came of it was shown.
func TestOutputThatWasCutOff(t *testing.T) {
	for what, rest := range map[string]string{"between two lines": "", "inside of a line": `{"n":3,"str`} {
		c := served(t, func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "{\"n\":1,\"stream\":\"stdout\",\"data\":\"eA==\"}\n{\"n\":2,\"stream\":\"stdout\",\"data\":\"eQ==\"}\n"+rest)
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		var seen string
		next, err := c.Output(t.Context(), "j1", 1, 0, func(c agentapi.Chunk) error { seen += string(c.Data); return nil })
		if err == nil || next != 3 || seen != "xy" {
			t.Errorf("%s: next %d, %q, %v", what, next, seen, err)
		}
	}
}

func TestOutputStopsWhenItsReaderDoes(t *testing.T) {
	c := served(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{\"n\":1}\n{\"n\":2}\n") })
	stop := errors.New("stop")
	if next, err := c.Output(t.Context(), "j1", 1, 0, func(agentapi.Chunk) error { return stop }); !errors.Is(err, stop) || next != 2 {
		t.Errorf("%d, %v", next, err)
	}
}
