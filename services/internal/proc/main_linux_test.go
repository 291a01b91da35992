package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// ownerVariable makes the test binary an owner process that a test may kill.
const ownerVariable = "PROC_TEST_OWNER"

// ordinaryVariable says that this run is the one under an ordinary uid.
const ordinaryVariable = "PROC_TEST_ORDINARY"

// whereVariable makes the test binary a program that says where it is, as the kernel tells it.
const whereVariable = "PROC_TEST_WHERE"

// patient is how long a test waits for what must happen; it is never waited out by a passing test.
const patient = 60 * time.Second

func TestMain(m *testing.M) {
	StewardMain()
	if script := os.Getenv(ownerVariable); script != "" {
		actOwner(script)
	}
	if os.Getenv(whereVariable) != "" {
		fmt.Println(os.Getwd())
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// TestAsOrdinaryUser runs all tests of this package once more without root's rights, where control groups cannot be made
// and namespaces need capabilities of their own.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // this run is one
	}
	if testing.Short() {
		t.Skip("runs the whole package a second time")
	}
	const nobody = 65534
	cmd := exec.Command("/proc/self/exe", "-test.run=.", "-test.short")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), ordinaryVariable+"=1", "TMPDIR=/tmp", "HOME=/nonexistent")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the tests as uid %d: %v\n%s", nobody, err, out)
	}
}

// A tap is a writer that a test can wait on.
type tap struct {
	mu   sync.Mutex
	cond *sync.Cond
	text bytes.Buffer
	over bool
}

func newTap() *tap {
	w := &tap{}
	w.cond = sync.NewCond(&w.mu)
	return w
}

func (w *tap) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cond.Broadcast()
	return w.text.Write(b)
}

func (w *tap) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// await returns when the text has appeared.
func (w *tap) await(t *testing.T, text string) {
	t.Helper()
	w.awaitCount(t, text, 1)
}

// awaitCount returns when the text has appeared so many times.
func (w *tap) awaitCount(t *testing.T, text string, count int) {
	t.Helper()
	timer := time.AfterFunc(patient, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.over = true
		w.cond.Broadcast()
	})
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for strings.Count(w.text.String(), text) < count {
		if w.over {
			t.Fatalf("%q did not appear in %q", text, w.text.String())
		}
		w.cond.Wait()
	}
}

// shell is a Spec that runs a script given as text.
func shell(t testing.TB, script string, out io.Writer) Spec {
	t.Helper()
	sh, err := Resolve("sh", "/", os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Argv: []string{"sh", "-c", script}, Path: sh, Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH")},
		Stdout: out, Stderr: out, Grace: 30 * time.Second}
}

// begun starts a program that is ended with the test at the latest.
func begun(t testing.TB, spec Spec) *Process {
	t.Helper()
	p, err := Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Cancel("the test is over")
		p.Wait()
	})
	return p
}

// ended waits for the outcome and fails rather than hangs.
func ended(t testing.TB, p *Process) Outcome {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patient):
		t.Fatalf("the tree of %d has not ended", p.PID())
	}
	outcome, err := p.Wait()
	if err != nil && !errors.Is(err, ErrStewardLost) {
		t.Fatal(err)
	}
	return outcome
}

// ran starts a program and waits for its end.
func ran(t testing.TB, spec Spec) Outcome {
	t.Helper()
	return ended(t, begun(t, spec))
}

// mustBeGone fails for each process that carries the marker or whose id the output names behind "pid ".
func mustBeGone(t testing.TB, marker, output string) {
	t.Helper()
	for _, m := range carriers(marker, 0) {
		t.Errorf("process %d still carries the marker", m.pid)
	}
	for _, pid := range namedPIDs(output) {
		if stat, ok := readStat(pid); ok && stat.alive() {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func namedPIDs(output string) []int {
	var out []int
	for line := range strings.Lines(output) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "pid "); ok {
			if pid, err := strconv.Atoi(text); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}

// awaitGone waits for the end of any process, which need not be a child.
func awaitGone(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patient/time.Millisecond))
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			t.Fatalf("process %d does not end", pid)
		}
		return
	}
}

// place is a folder with all symlinks resolved.
func place(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func written(t testing.TB, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func digestOf(t testing.TB, path string) string {
	t.Helper()
	digest, _, err := DigestFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func codeIs(t testing.TB, err error, code string) {
	t.Helper()
	if !errors.Is(err, &StartError{Code: code}) {
		t.Errorf("error is %v, want code %s", err, code)
	}
}

// actOwner runs a script, says so, and stays until it is killed.
func actOwner(script string) {
	spec := Spec{Argv: []string{"sh", "-c", script}, Path: "/bin/sh", Dir: "/", Env: os.Environ(), Stdout: os.Stdout,
		Grace: 200 * time.Millisecond}
	spec.Path, _ = Resolve("sh", "/", os.Getenv("PATH"))
	if hide := os.Getenv("PROC_TEST_HIDE"); hide != "" {
		spec.Hide = []string{hide}
	}
	if hold, err := time.ParseDuration(os.Getenv("PROC_TEST_HOLD")); err == nil {
		spec.Until = Boottime().Add(hold)
	}
	p, err := Start(context.Background(), spec)
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fmt.Printf("marker %s\n", p.Marker())
	p.Wait()
	os.Exit(0)
}
