package tlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab/need"
)

// callsDirEnv lets the test binary be the process whose system calls fail.
const callsDirEnv = "TLOG_TEST_CALLS_DIR"

// callsEnd is the last record of the short life of that process.
const callsEnd = 40

// liveShortly makes or opens a log, appends, seals twice and closes.
func liveShortly(dir string) error {
	tb := &testing.T{}
	signer, _ := keys(tb, testOrigin)
	l, err := Open(dir, signer, FileLock(dir))
	if errors.Is(err, ErrNoHead) {
		l, err = Create(dir, genesis(), signer, FileLock(dir))
	}
	if err != nil {
		return err
	}
	for _, to := range []uint64{20, callsEnd} {
		cp, err := feedAndSeal(l, max(to, l.LastSeq()+1))
		if err != nil {
			return err
		}
		fmt.Println("sealed", cp.Size)
	}
	return l.Close()
}

// fileCalls are the system calls by which a log reaches the disk.
var fileCalls = []string{
	"openat", "write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "renameat", "renameat2", "rename", "unlinkat", "linkat", "mkdirat",
	"flock", "read", "pread64", "fstat", "newfstatat",
}

// strace runs the process under strace and returns what it printed.
func strace(t *testing.T, dir string, args ...string) (stdout, trace string, err error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), "strace", append(append([]string{"-f", "-qq", "-o", out}, args...), os.Args[0])...)
	cmd.Env = append(os.Environ(), callsDirEnv+"="+dir, "GOMAXPROCS=1")
	var buf bytes.Buffer
	cmd.Stdout = &buf
	err = cmd.Run()
	b, _ := os.ReadFile(out)
	return buf.String(), string(b), err
}

// callName reads the name of a system call from a line of strace.
var callName = regexp.MustCompile(`^\d+\s+([a-z0-9_]+)\(`)

// TestEveryFileCallFails lets each single system call by which a log reaches the disk
// fail once, and kills the process at each. Whatever happened, the log opens, verifies,
// has lost no head that was shown, and grows into the one that was never disturbed.
func TestEveryFileCallFails(t *testing.T) {
	t.Parallel()
	need.Program(t, "strace")
	_, trace, err := strace(t, t.TempDir(), "-e", "trace=?"+strings.Join(fileCalls, ",?")) // not every machine has all
	if err != nil {
		need.Missing(t, "strace does not work here: %v\n%s", err, trace)
	}
	counts := map[string]int{}
	for line := range strings.Lines(trace) {
		if m := callName.FindStringSubmatch(line); m != nil {
			counts[m[1]]++
		}
	}
	type fault struct {
		call, how string
		when      int
	}
	var all []fault
	for _, call := range fileCalls {
		for n := 1; n <= counts[call]; n++ {
			for _, how := range []string{"error=EIO", "signal=KILL"} {
				all = append(all, fault{call, how, n})
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d faults: %v", len(all), counts)
	}
	step := 1
	if os.Getenv("BANKSMAN_SOAK") != "1" {
		step = len(all)/24 | 1 // odd, so that both kinds of fault have their turn
	}
	want := sealedLog(t, t.TempDir(), callsEnd+1)
	tried := 0
	for i := 0; i < len(all); i += step {
		f := all[i]
		dir := t.TempDir()
		shown, _, _ := strace(t, dir, "-e", "trace="+f.call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", f.call, f.how, f.when))
		tried++
		if why := recovers(t, dir, shown, want); why != "" {
			t.Errorf("%s of %s number %d: %s", f.how, f.call, f.when, why)
		}
	}
	t.Logf("%d of %d faults, calls %v", tried, len(all), counts)
}

// recovers opens what a disturbed process has left and goes on to the end.
func recovers(t *testing.T, dir, shown string, want Checkpoint) string {
	t.Helper()
	signer, verifiers := keys(t, testOrigin)
	l, err := Open(dir, signer, FileLock(dir))
	if errors.Is(err, ErrNoHead) {
		l, err = Create(dir, genesis(), signer, FileLock(dir))
	}
	if err != nil {
		return fmt.Sprintf("it does not open: %v", err)
	}
	for line := range strings.Lines(shown) {
		size, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(line, "sealed ")), 10, 64)
		if err == nil && size > l.SealedSize() {
			return fmt.Sprintf("a head of %d leaves was shown, %d are sealed", size, l.SealedSize())
		}
	}
	got, err := feedAndSeal(l, callsEnd+1)
	if err := errors.Join(err, l.Close()); err != nil {
		return fmt.Sprintf("it does not go on: %v", err)
	}
	if got.Root != want.Root {
		return "it has another root"
	}
	r, err := Verify(t.Context(), dir, verifiers, nil)
	if _, bad := r.FirstBad(); err != nil || bad || len(r.Problems) > 0 {
		return fmt.Sprintf("it does not verify: %v, %v", err, r.Problems)
	}
	return ""
}
