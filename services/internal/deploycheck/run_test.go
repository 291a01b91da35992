package deploycheck

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/banksman/banksman/services/internal/lab"
)

// Every role runs with exactly the files that its unit loads, or its container
// is given, as systemd and docker would hand them over; together they run a job,
// and each says of itself that it is ready and that it drains.
func TestRolesRunWithWhatTheyAreGiven(t *testing.T) {
	for by, given := range map[string]func(*testing.T, string) map[string]string{
		"systemd": func(t *testing.T, role string) map[string]string { return readUnit(t, role).credentials(t) },
		"compose": func(t *testing.T, role string) map[string]string { return readCompose(t).files(t, role) },
	} {
		t.Run(by, func(t *testing.T) {
			s := lab.NewSite(t, filepath.Join(programs, "banksman"))
			door := filepath.Join(t.TempDir(), "door")
			var started []*service
			for _, role := range roles(t) {
				runtime := filepath.Join(t.TempDir(), role)
				if role == "proposer" || role == "supervisor" {
					runtime = door // they share it in both deployments
				}
				started = append(started, start(t, s, role, given(t, role), runtime))
			}
			for _, p := range started {
				p.await("READY=1")
				p.healthy()
			}
			s.Env = []string{"BANKSMAN_SOCKET=" + filepath.Join(door, "proposer", "proposer.sock")}
			if r := s.Must(0, "run", "--", "git", "--version"); !strings.HasPrefix(r.Stdout, "git version") {
				t.Errorf("the job printed something else: %s", r)
			}
			slices.Reverse(started)
			for _, p := range started {
				p.stop()
			}
		})
	}
}

// service is a role's own program under a service manager.
type service struct {
	t     *testing.T
	role  string
	env   []string
	cmd   *exec.Cmd
	ended chan error
	errs  *bytes.Buffer // read after the end only

	mu    sync.Mutex
	heard []string
	more  chan struct{} // closed and replaced when something was heard
}

// start starts a role as its service manager does: with copies of the files that
// it is given, three folders in its environment and a socket to report to.
func start(t *testing.T, s *lab.Site, role string, files map[string]string, runtime string) *service {
	t.Helper()
	base := t.TempDir()
	secrets, state := filepath.Join(base, "secrets"), filepath.Join(base, "state")
	for _, dir := range []string{secrets, state, runtime} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, below := range files {
		data, err := os.ReadFile(filepath.Join(s.Dir, below))
		if err == nil {
			err = os.WriteFile(filepath.Join(secrets, name), data, 0o400)
		}
		if err != nil {
			t.Fatalf("hand over %s: %v", name, err)
		}
	}
	p := &service{t: t, role: role, ended: make(chan error, 1), errs: &bytes.Buffer{}, more: make(chan struct{})}
	p.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + state, "CREDENTIALS_DIRECTORY=" + secrets, "STATE_DIRECTORY=" + state,
		"RUNTIME_DIRECTORY=" + runtime, "NOTIFY_SOCKET=" + p.listen(filepath.Join(base, "n")), "WATCHDOG_USEC=3000000",
	}
	p.cmd = exec.Command(filepath.Join(programs, prefix+role))
	p.cmd.Env, p.cmd.Stderr = p.env, p.errs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.ended <- p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		for range p.ended {
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", role, p.errs)
		}
	})
	return p
}

// listen opens the socket of the service manager and keeps what it hears.
func (p *service) listen(path string) string {
	p.t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		p.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 8192)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.heard = append(p.heard, strings.Split(string(buf[:n]), "\n")...)
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
	}()
	p.t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return path
}

// await waits until the service manager has heard a line.
func (p *service) await(line string) {
	p.t.Helper()
	limit := time.After(lab.Patience)
	for {
		p.mu.Lock()
		heard, more := slices.Clone(p.heard), p.more
		p.mu.Unlock()
		if slices.Contains(heard, line) {
			return
		}
		select {
		case <-more:
		case err := <-p.ended:
			p.t.Fatalf("%s ended: %v\n%s", p.role, err, p.errs)
		case <-limit:
			p.t.Fatalf("%s never said %s, but %q", p.role, line, heard)
		}
	}
}

// healthy asks as the health check of a container does.
func (p *service) healthy() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), lab.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "banksman"), "health")
	cmd.Env = p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Errorf("health of %s: %v\n%s", p.role, err, out)
	}
}

func (p *service) stop() {
	p.t.Helper()
	p.await("WATCHDOG=1")
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Errorf("%s ended with %v", p.role, err)
		}
	case <-time.After(lab.Patience):
		p.t.Fatalf("%s does not drain", p.role)
	}
	lab.Eventually(p.t, p.role+" to have said that it stops", func() bool { // the socket still holds it
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.Contains(p.heard, "STOPPING=1")
	})
}
