package localsock

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets this binary be the stranger that dials.
func TestMain(m *testing.M) {
	if path := os.Getenv("LOCALSOCK_DIAL"); path != "" {
		c, err := Dial(context.Background(), path)
		if err != nil {
			io.WriteString(os.Stderr, err.Error())
			os.Exit(1)
		}
		c.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestShareWithAGroup(t *testing.T) {
	gid := os.Getgid()
	if os.Getuid() == 0 {
		gid = 1 // daemon everywhere
	}
	group, err := user.LookupGroupId(strconv.Itoa(gid))
	if err != nil {
		t.Skipf("this machine has no name for group %d: %v", gid, err)
	}
	dir := filepath.Join(t.TempDir(), "agent")
	path := filepath.Join(dir, "a.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := Share(path, group.Name); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o660, dir: 0o710} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want || int(info.Sys().(*syscall.Stat_t).Gid) != gid {
			t.Errorf("%s is %v, %v; want %v of group %d", name, info, err, want, gid)
		}
	}
	if os.Getuid() != 0 {
		return // nobody else can be asked
	}
	const nobody = 65534
	if said := dialAs(t, path, nobody, gid); said != "" {
		t.Errorf("a member of the group: %s", said)
	}
	if said := dialAs(t, path, nobody, nobody); !strings.Contains(said, "permission denied") {
		t.Errorf("a stranger: %q, want permission denied", said)
	}
}

func TestShareWithNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := Share(path, "no-such-group-here"); err == nil || !strings.Contains(err.Error(), "no-such-group-here") {
		t.Errorf("sharing with a group that does not exist: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v after a refusal, want 0600", info, err)
	}
}

// dialAs connects as another user, by a copy of this program where that user can
// read it, and returns what it said.
func dialAs(t *testing.T, path string, uid, gid int) string {
	t.Helper()
	for dir := filepath.Dir(filepath.Dir(path)); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(filepath.Dir(filepath.Dir(path)), "stranger")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{"LOCALSOCK_DIAL=" + path}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}
