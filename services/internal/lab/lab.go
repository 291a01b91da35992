package lab

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience is how long a step may take before the test gives up; far longer
// than any step takes, also on a busy machine.
const Patience = 60 * time.Second

// Build compiles a main package of the module, such as "cmd/banksman", into dir
// and returns its path.
func Build(dir, pkg string) (string, error) {
	return build(filepath.Join(dir, filepath.Base(pkg)), pkg, RaceEnabled)
}

// BuildPlain is Build without the race detector, which makes the hardening of a
// passphrase take minutes.
func BuildPlain(dir, pkg string) (string, error) {
	return build(filepath.Join(dir, filepath.Base(pkg)+"-plain"), pkg, false)
}

func build(out, pkg string, race bool) (string, error) {
	args := []string{"build", "-o", out}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "github.com/banksman/banksman/"+pkg)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return out, nil
}

// Site is a banksman folder with the binary that works on it.
type Site struct {
	t   testing.TB
	Bin string
	Dir string
	Env []string // beside the test's own
}

// NewSite makes a site with init. Extra arguments go to init.
func NewSite(t testing.TB, bin string, args ...string) *Site {
	t.Helper()
	s := &Site{t: t, Bin: bin, Dir: filepath.Join(t.TempDir(), "site")}
	r := s.Run(append([]string{"init", "--no-passphrase"}, args...)...)
	if r.Code != 0 {
		t.Fatalf("init: %s", r)
	}
	return s
}

// Result is what a finished command left.
type Result struct {
	Args   []string
	Code   int
	Stdout string
	Stderr string
}

func (r Result) String() string {
	return fmt.Sprintf("banksman %q exited %d\nstdout: %s\nstderr: %s", r.Args, r.Code, r.Stdout, r.Stderr)
}

// JSON decodes standard output.
func (r Result) JSON(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Stdout), into); err != nil {
		t.Fatalf("decode: %v\n%s", err, r)
	}
}

// Command prepares a verb on the site; --dir is given by the environment.
func (s *Site) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.Bin, args...)
	cmd.Env = append(append(os.Environ(), "BANKSMAN_DIR="+s.Dir, "BANKSMAN_TOKEN=", "BANKSMAN_SOCKET="), s.Env...)
	return cmd
}

// Run runs a verb to its end.
func (s *Site) Run(args ...string) Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), Patience)
	defer cancel()
	cmd := s.Command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	r := Result{Args: args, Stdout: out.String(), Stderr: errs.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.Code = exit.ExitCode()
	} else if err != nil {
		s.t.Fatalf("run banksman %q: %v", args, err)
	}
	if ctx.Err() != nil {
		s.t.Fatalf("gave up after %s: %s", Patience, r)
	}
	return r
}

// Must is Run for a verb that has to exit with a code.
func (s *Site) Must(code int, args ...string) Result {
	s.t.Helper()
	r := s.Run(args...)
	if r.Code != code {
		s.t.Fatalf("want exit %d: %s", code, r)
	}
	return r
}

// Process is a verb that runs in the background.
type Process struct {
	site *Site
	cmd  *exec.Cmd
	out  buffer
	errs buffer
	done chan struct{}
	err  error
}

// Start starts a verb.
func (s *Site) Start(args ...string) *Process {
	s.t.Helper()
	return s.launch(s.Command(context.Background(), args...))
}

// launch starts a prepared command in the background.
func (s *Site) launch(cmd *exec.Cmd) *Process {
	s.t.Helper()
	p := &Process{site: s, cmd: cmd, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	if err := p.cmd.Start(); err != nil {
		s.t.Fatalf("start %q: %v", cmd.Args, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	s.t.Cleanup(func() {
		p.Kill()
		for _, bug := range []string{"DATA RACE", "\npanic: ", "\nfatal error: "} {
			if strings.Contains("\n"+ownFaults(p.errs.String()), bug) {
				s.t.Errorf("process %d, %q, has a bug: %s", p.Pid(), cmd.Args, strings.TrimSpace(bug))
			}
		}
		if s.t.Failed() {
			s.t.Logf("process %d, %q, printed\nstdout: %s\nstderr: %s", p.Pid(), cmd.Args, p.out.String(), p.errs.String())
		}
	})
	return p
}

// ownFaults leaves out what the race detector says of nats-server's own reload of
// its options: it stores the pointer to them under a lock that its reader of
// direct gets does not take (server.go, setOpts).
func ownFaults(text string) string {
	const begin = "WARNING: DATA RACE"
	parts := strings.Split(text, begin)
	kept := parts[:1]
	for _, p := range parts[1:] {
		if !strings.Contains(p, "nats-server/v2/server.(*Server).setOpts()") {
			kept = append(kept, begin, p)
		}
	}
	return strings.Join(kept, "")
}

// Up starts up and waits until every role is ready.
func (s *Site) Up(args ...string) *Process {
	s.t.Helper()
	p := s.Start(append([]string{"up", "--log-level", "info"}, args...)...)
	s.Ready()
	return p
}

// Ready waits until every role that was started is ready.
func (s *Site) Ready() {
	s.t.Helper()
	if r := s.Run("status", "--json", "--wait", "45s"); r.Code != 0 {
		s.t.Fatalf("not ready: %s", r)
	}
}

// Pid is the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Stdout is what it has printed so far.
func (p *Process) Stdout() string { return p.out.String() }

// Stderr is what it has complained about so far.
func (p *Process) Stderr() string { return p.errs.String() }

// Signal sends a signal.
func (p *Process) Signal(sig syscall.Signal) { p.cmd.Process.Signal(sig) }

// Kill ends it at once and waits for its end.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// Wait waits for its end and returns the exit code.
func (p *Process) Wait() int {
	p.site.t.Helper()
	select {
	case <-p.done:
	case <-time.After(Patience):
		p.site.t.Fatalf("banksman %q did not end\nstdout: %s\nstderr: %s", p.cmd.Args[1:], p.out.String(), p.errs.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Stop asks it to drain and returns the exit code.
func (p *Process) Stop() int {
	p.Signal(syscall.SIGTERM)
	return p.Wait()
}

// Eventually waits until a condition of the outside world holds, for what the
// system under test can only show when asked.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Within(Patience, holds) {
		t.Fatalf("gave up waiting: %s", what)
	}
}

// Within says whether a condition of the outside world came to hold in time.
func Within(limit time.Duration, holds func() bool) bool {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			return false
		}
		<-tick.C
	}
	return true
}

// buffer is a bytes.Buffer for two goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

var _ io.Writer = (*buffer)(nil)

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
