package logserver_test

import (
	"context"
	"encoding/json/v2"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/logserver"
)

// cli is the nats command line as a reader of a site would have it.
type cli struct {
	t       *testing.T
	program string
	home    string
}

// newCLI writes a context for a reader's key.
func newCLI(t *testing.T, srv *logserver.Server, seedFile, ca string) *cli {
	t.Helper()
	program := need.Program(t, "nats") // github.com/nats-io/natscli
	c := &cli{t: t, program: program, home: t.TempDir()}
	dir := filepath.Join(c.home, "nats", "context")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	context, err := json.Marshal(map[string]any{
		"url": srv.ClientURL(), "nkey": seedFile, "ca": ca, "tls_first": true,
		"inbox_prefix": "_IB.reader", "jetstream_api_prefix": "CORE.API",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "reader.json"), context, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cli) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.program, append([]string{"--context=reader"}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+c.home, "NO_COLOR=1")
	return cmd
}

// run returns what a call prints; it must succeed.
func (c *cli) run(args ...string) string {
	c.t.Helper()
	out, err := c.command(c.t.Context(), args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("nats %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// page runs a call on a terminal, as the pager wants one, and answers every
// question with the return key.
func (c *cli) page(args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	cmd := c.command(ctx, args...)
	tty, err := pty.Start(cmd)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = tty.Close() }()
	_, _ = tty.Write([]byte("\n\n\n"))
	out, _ := io.ReadAll(tty) // ends with an error when the program does
	if err := cmd.Wait(); err != nil {
		c.t.Logf("nats %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// secure makes a certificate for 127.0.0.1 and returns CA, certificate and key
// files.
func secure(t *testing.T) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	authority, err := keys.NewCA("banksman test")
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := authority.IssueServer([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ca, cert, key = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "bus.pem"), filepath.Join(dir, "bus.key")
	for path, pem := range map[string][]byte{ca: authority.CertPEM(), cert: certPEM, key: keyPEM} {
		if err := os.WriteFile(path, pem, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ca, cert, key
}

func TestCommandLineOfAReader(t *testing.T) {
	s := newSite(t, events.RoleAuditor, events.RoleWorker, events.RoleReader)
	seedFile := filepath.Join(t.TempDir(), "reader.nk")
	if err := keys.WriteLogin(seedFile, s.logins["reader"]); err != nil {
		t.Fatal(err)
	}
	o := s.options(t)
	o.Port = 0
	var ca string
	ca, o.CertFile, o.KeyFile = secure(t)
	srv := start(t, o)
	c := newCLI(t, srv, seedFile, ca)

	auditor := connect(t, s.config(srv, "auditor"))
	stop, err := auditor.Serve(t.Context(), "banksman-auditor", "1.2.3", "keeps the log", map[string]bus.Endpoint{
		"bmq.audit.status": func(context.Context, []byte) (any, error) { return map[string]bool{"ok": true}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := auditor.Jobs().Put(t.Context(), "job-1", []byte("a job entry")); err != nil {
		t.Fatal(err)
	}
	worker := connect(t, s.config(srv, "worker"))
	appender := worker.Appender(nobody{})
	subject := events.For("job.started", "default", "job-1", "worker")
	if _, err := appender.Append(t.Context(), subject, 0, events.JobStarted{}); err != nil {
		t.Fatal(err)
	}

	for _, step := range []struct {
		want string
		args []string
	}{
		{"every event of banksman", []string{"stream", "info", "BANKSMAN"}},
		{"BANKSMAN", []string{"stream", "ls"}},
		{"a job entry", []string{"kv", "get", "bm_jobs", "job-1", "--raw"}},
		{"banksman-auditor", []string{"micro", "ls"}},
		{`"ok":true`, []string{"request", "bmq.audit.status", "{}"}},
	} {
		if out := c.run(step.args...); !strings.Contains(out, step.want) {
			t.Errorf("nats %s does not show %q:\n%s", strings.Join(step.args, " "), step.want, out)
		}
	}
	if out := c.page("stream", "view", "BANKSMAN"); !strings.Contains(out, subject.String()) {
		t.Errorf("nats stream view BANKSMAN does not show the event:\n%s", out)
	}

	heard := make(chan string, 1)
	go func() { heard <- c.run("sub", "bml.>", "--count=1") }()
	eventually(t, func() bool {
		_ = worker.Heartbeat("default.worker.s1", []byte("x"))
		select {
		case out := <-heard:
			heard <- out
			return true
		default:
			return false
		}
	})
	if out := <-heard; !strings.Contains(out, "bml.hb.default.worker.s1") {
		t.Errorf("nats sub 'bml.>' heard %s", out)
	}
}

// nobody signs with nothing; the bus does not look.
type nobody struct{}

func (nobody) Key() string        { return "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }
func (nobody) Sign([]byte) []byte { return make([]byte, 64) }

// eventually polls what only an outside process can tell.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not come about in twenty seconds")
		}
	}
}

func TestHandshakeComesFirst(t *testing.T) {
	s := newSite(t, events.RoleReader)
	o := s.options(t)
	o.Port = 0
	var ca string
	ca, o.CertFile, o.KeyFile = secure(t)
	srv := start(t, o)
	cfg := s.config(srv, "reader")
	cfg.InProcess, cfg.URL, cfg.CAFile = nil, srv.ClientURL(), ca
	if _, err := connect(t, cfg).LastSeq(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, err := net.Dial("tcp", strings.TrimPrefix(srv.ClientURL(), "tls://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	if _, err := raw.Write([]byte("CONNECT {}\r\n")); err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(raw); strings.Contains(string(answer), "INFO") {
		t.Errorf("the server spoke before the handshake: %q", answer)
	}
	otherCA, _, _ := secure(t)
	cfg.CAFile = otherCA
	if _, err := bus.Connect(t.Context(), cfg); err == nil {
		t.Error("connected to a bus whose certificate another CA has issued")
	}
}
