package proposer

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/localsock"
	"github.com/banksman/banksman/services/internal/query"
)

// yard is a proposer at work on a stage.
type yard struct {
	*stage.Stage
	role   *Role
	log    logged
	tokens map[string]string // by file name
	stop   func() error      // drains it; its result is the proposer's
}

// logged keeps what was logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newYard starts a proposer with the tokens agent.local, agent.other and
// person.p7k2.
func newYard(t *testing.T, o stage.Options) *yard {
	t.Helper()
	y := &yard{Stage: stage.New(t, o), role: New(), tokens: map[string]string{}}
	for _, name := range []string{"agent.local", "agent.other", "person." + stage.Person} {
		y.enter(name, keys.NewToken())
	}
	env := &host.Env{
		Layout: y.Layout, Site: host.SiteConfig{Origin: stage.Origin}, Actor: "proposer", Version: "0.0.1", Log: slog.New(slog.NewTextHandler(&y.log, nil)),
		Bus: y.Conn("proposer"), Append: y.Voice("proposer"), Standing: y.Standing("proposer"),
	}
	ready := make(chan struct{})
	var once sync.Once
	env.Report = func(bool, string) { once.Do(func() { close(ready) }) }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- y.role.Run(ctx, env) }()
	y.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(stage.Patience):
			return errors.New("the proposer did not end")
		}
	})
	t.Cleanup(func() {
		if err := y.stop(); err != nil {
			t.Errorf("the proposer ended with %v; it logged %s", err, &y.log)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	return y
}

// enter writes a token's file.
func (y *yard) enter(name, token string) {
	y.T.Helper()
	y.tokens[name] = token
	stage.Must(y.T, keys.WriteSecret(filepath.Join(y.Layout.Tokens(), name), []byte(token+"\n")))
}

// as is a client that holds a token.
func (y *yard) as(name string) *agentapi.Client {
	return agentapi.NewClient(y.Layout.ProposerSocket(), y.tokens[name])
}

func (y *yard) local() *agentapi.Client { return y.as("agent.local") }

// refused wants an error with a code and a status.
func refused(t testing.TB, err error, code string, status int) *agentapi.Error {
	t.Helper()
	var e *agentapi.Error
	if !errors.As(err, &e) || e.Code != code || e.Status != status || e.Message == "" {
		t.Fatalf("%v, want code %s and status %d", err, code, status)
	}
	return e
}

// raw sends bytes as they are and returns what comes back.
func (y *yard) raw(method, path, authorization string, body io.Reader) (int, agentapi.Error, string) {
	y.T.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return localsock.Dial(ctx, y.Layout.ProposerSocket())
	}}}
	req, err := http.NewRequestWithContext(y.Context(), method, "http://proposer"+path, body)
	stage.Must(y.T, err)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := client.Do(req)
	stage.Must(y.T, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	stage.Must(y.T, err)
	var e agentapi.Envelope
	if json.Unmarshal(text, &e) != nil || e.Error == nil {
		e.Error = &agentapi.Error{}
	}
	return resp.StatusCode, *e.Error, string(text)
}

// gate plays the gate's answers to assessments.
func (y *yard) gate(verdict string, then func(query.AssessRequest)) {
	y.T.Helper()
	stop, err := y.Conn("gate").Serve(y.Context(), "banksman-gate", "0.0.1", "a test", map[string]bus.Endpoint{
		query.Assess: func(_ context.Context, data []byte) (any, error) {
			var q query.AssessRequest
			if err := json.Unmarshal(data, &q); err != nil {
				return nil, err
			}
			if then != nil {
				then(q)
			}
			return query.Assessment{Verdict: verdict, Code: "rule", Reason: "a test", Rule: "r"}, nil
		},
	})
	stage.Must(y.T, err)
	y.T.Cleanup(stop)
}

// auditor plays the auditor: its status, from the state of the stream.
func (y *yard) auditor() {
	y.T.Helper()
	conn := y.Conn("auditor")
	stop, err := conn.Serve(y.Context(), "banksman-auditor", "0.0.1", "a test", map[string]bus.Endpoint{
		query.Audit: func(ctx context.Context, _ []byte) (any, error) {
			s, err := conn.StreamState(ctx)
			return query.AuditStatus{Bytes: int64(s.Bytes), MaxBytes: s.MaxBytes, Dispatch: "open"}, err
		},
	})
	stage.Must(y.T, err)
	y.T.Cleanup(stop)
}

// start lets the worker start a job that the gate has allowed.
func (y *yard) start(id string) uint64 {
	y.T.Helper()
	y.Resolve(id, "/usr/bin/make")
	j := y.Job(id)
	approved := y.Say("gate", "job.approved", "default", id, j.LastSeq, &events.JobApproved{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: "policy", Basis: "policy", ValidS: 60, MaxAttempts: 1, Ruling: events.Ruling{Code: "rule", Reason: "a test"},
	})
	return y.Say("worker", "job.started", "default", id, approved, &events.JobStarted{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: "policy", Approvals: []uint64{approved}, Sealed: approved, Attempt: 1, LeaseS: 15, Bound: "fd",
	})
}

// prints stores a chunk of a job's output.
func (y *yard) prints(id string, n int, stream, text string) {
	y.T.Helper()
	subject := events.PrefixOutput + ".default." + id + ".1." + itoa(n) + ".worker"
	stage.Must(y.T, y.Conn("worker").PutOutput(y.Context(), subject, stream, int64(n), []byte(text)))
}

func remove(t testing.TB, path string) {
	t.Helper()
	stage.Must(t, os.Remove(path))
}
