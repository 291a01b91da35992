package proc

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// groupPrefix begins the name of every group of this package.
const groupPrefix = "banksman-"

// staleAfter is the age from which an empty group is taken for one whose owner was killed. A younger one may be about to
// receive its steward.
const staleAfter = time.Minute

// A group is a control group (version 2) that one steward and its trees live in. A nil group stands for a machine where
// none can be made, and does nothing.
type group struct{ path string }

// newGroup makes a group below this process's own, or returns nil where that folder does not exist or is not writable.
func newGroup() *group {
	own := ownGroup()
	if own == "" {
		return nil
	}
	removeStale(own)
	path := filepath.Join(own, groupPrefix+strings.ToLower(rand.Text()))
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil
	}
	return &group{path: path}
}

// removeStale removes groups that killed owners left. The kernel removes none that has a process in it.
func removeStale(own string) {
	entries, err := os.ReadDir(own)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), groupPrefix) {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = syscall.Rmdir(filepath.Join(own, entry.Name())) // refused while it is in use
		}
	}
}

// ownGroup is the folder of this process's control group in the version 2 hierarchy.
func ownGroup() string {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(membership)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			if mount := groupMount(string(mounts)); mount != "" {
				return filepath.Join(mount, strings.TrimSuffix(path, "\n"))
			}
		}
	}
	return ""
}

// groupMount is where the version 2 hierarchy is mounted, from its root on.
func groupMount(mounts string) string {
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if ok && len(fields) > 4 && strings.HasPrefix(after, "cgroup2 ") && fields[3] == "/" {
			return fields[4]
		}
	}
	return ""
}

// start starts a steward inside the group.
func (g *group) start(attr *os.ProcAttr) (*os.Process, error) {
	if g == nil {
		return nil, errors.New("no control group")
	}
	dir, err := os.Open(g.path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	sys := *attr.Sys
	sys.UseCgroupFD, sys.CgroupFD = true, int(dir.Fd())
	inside := *attr
	inside.Sys = &sys
	process, err := os.StartProcess("/proc/self/exe", []string{stewardName}, &inside)
	if err != nil {
		g.remove()
		g.path = ""
	}
	return process, err
}

// kill ends every process in the group at once, and reports whether the kernel could do that.
func (g *group) kill() bool {
	if g == nil || g.path == "" {
		return false
	}
	return os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0) == nil
}

// remove takes the empty group away. The kernel refuses for a moment after the last process has died.
func (g *group) remove() {
	if g == nil || g.path == "" {
		return
	}
	for range 200 {
		err := syscall.Rmdir(g.path)
		if err == nil || !errors.Is(err, syscall.EBUSY) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
