package lab

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// BuildAll compiles every command of the module into dir.
func BuildAll(dir string) error {
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if RaceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "github.com/banksman/banksman/cmd/...")...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build every command: %w\n%s", err, text)
	}
	return nil
}

// Fleet runs the roles of a site as one process each. They meet on the site's
// bus over TCP and TLS. A member is named by its role, and replicas by role and
// number, such as "worker" and "worker 2".
type Fleet struct {
	Site *Site
	// Wrap is put before each command: a program and arguments that end by
	// executing what follows them, such as nsenter's.
	Wrap []string
	bins string // folder of the binaries

	members map[string]*Process
}

// Roles are the members that a site needs.
var Roles = [...]string{"bus", "proposer", "approver", "auditor", "worker"}

// Fleet makes a fleet without members, with the binaries of a folder.
func (s *Site) Fleet(bins string) *Fleet {
	return &Fleet{Site: s, bins: bins, members: map[string]*Process{}}
}

// Start starts members, or again those that have ended, and does not wait until
// they are ready.
func (f *Fleet) Start(members ...string) {
	f.Site.t.Helper()
	for _, m := range members {
		role, instance, _ := strings.Cut(m, " ")
		cmd := f.Site.Command(context.Background(), "--dir", f.Site.Dir, "--log-level", "info", "--instance", instance)
		path := filepath.Join(f.bins, "banksman-"+role)
		cmd.Path, cmd.Args[0], cmd.Err = path, path, nil
		if len(f.Wrap) > 0 {
			cmd.Path, cmd.Args = f.Wrap[0], slices.Concat(f.Wrap, cmd.Args)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a member's signals are its own
		f.members[m] = f.Site.launch(cmd)
	}
}

// Up starts members and waits until the whole fleet is ready.
func (f *Fleet) Up(members ...string) {
	f.Site.t.Helper()
	f.Start(members...)
	f.Site.Ready()
	for _, m := range members {
		if code, ended := f.Member(m).Ended(); ended {
			f.Site.t.Fatalf("%s ended at once with %d\n%s", m, code, f.Member(m).Stderr())
		}
	}
}

// Member is a member's newest process.
func (f *Fleet) Member(m string) *Process {
	f.Site.t.Helper()
	p := f.members[m]
	if p == nil {
		f.Site.t.Fatalf("the fleet has no %s", m)
	}
	return p
}

// Kill ends a member with kill -9.
func (f *Fleet) Kill(m string) {
	f.Site.t.Helper()
	p := f.Member(m)
	if code, ended := p.Ended(); ended {
		f.Site.t.Errorf("%s ended by itself with %d\n%s", m, code, p.Stderr())
	}
	p.Kill()
}

// Stop drains a member; it has to exit with 0.
func (f *Fleet) Stop(m string) {
	f.Site.t.Helper()
	if code := f.Member(m).Stop(); code != 0 {
		f.Site.t.Errorf("%s exited %d after SIGTERM\n%s", m, code, f.Member(m).Stderr())
	}
}

// Ended says whether the process has ended, and with which code.
func (p *Process) Ended() (code int, ended bool) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), true
	default:
		return 0, false
	}
}
