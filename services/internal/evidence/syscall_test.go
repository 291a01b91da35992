package evidence

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/tlog"
)

// The test binary is also the process that exports while its system calls fail.
const (
	exportLogEnv = "EVIDENCE_TEST_LOG"
	exportToEnv  = "EVIDENCE_TEST_TO"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(exportLogEnv); dir != "" {
		if err := exportBoth(dir, os.Getenv(exportToEnv)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// exportBoth writes the bundle of a job and the whole log as tiles.
func exportBoth(log, to string) error {
	r, err := tlog.OpenReader(log)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := Write(context.Background(), Source{Log: r}, "job-a", filepath.Join(to, "bundle")); err != nil {
		return err
	}
	_, err = WriteTiles(context.Background(), r, filepath.Join(to, "tiles"))
	return err
}

// exportCalls are the system calls by which an export reads the log and reaches the disk.
var exportCalls = []string{"openat", "read", "pread64", "write", "close", "mkdirat", "renameat", "renameat2", "rename", "newfstatat", "fstat", "unlinkat", "getdents64"}

// strace runs an export under strace.
func strace(t *testing.T, log, to string, args ...string) (trace string, err error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), "strace", append(append([]string{"-f", "-qq", "-o", out}, args...), os.Args[0])...)
	cmd.Env = append(os.Environ(), exportLogEnv+"="+log, exportToEnv+"="+to, "GOMAXPROCS=1")
	err = cmd.Run()
	b, _ := os.ReadFile(out)
	return string(b), err
}

// whole reads all files below a folder.
func whole(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, dir)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestExportAtEveryFileCall lets each single system call of an export fail once, and
// kills the process at each. What then stands under the name that was asked for is the
// whole export or nothing, the log is as it was, and the next try succeeds.
func TestExportAtEveryFileCall(t *testing.T) {
	t.Parallel()
	need.Program(t, "strace")
	y := story(t)
	y.seal()
	good, before := t.TempDir(), whole(t, y.logDir())
	trace, err := strace(t, y.logDir(), good, "-e", "trace=?"+strings.Join(exportCalls, ",?"))
	if err != nil {
		need.Missing(t, "strace does not work here: %v\n%s", err, trace)
	}
	want := whole(t, good)
	faults := faultsOf(trace)
	if len(want) < 20 || len(faults) < 100 {
		t.Fatalf("%d files, %d faults", len(want), len(faults))
	}
	step := 1
	if os.Getenv("BANKSMAN_SOAK") != "1" {
		step = len(faults)/24 | 1 // odd, so that both kinds of fault have their turn
	}
	for i := 0; i < len(faults); i += step {
		to := t.TempDir()
		strace(t, y.logDir(), to, "-e", "trace="+faults[i].call, "-e", "inject="+faults[i].String())
		checkExport(t, faults[i].String(), to, y.logDir(), want)
	}
	for name, content := range whole(t, y.logDir()) {
		if content != before[name] {
			t.Errorf("%s of the log was changed", name)
		}
	}
	t.Logf("%d faults, every %d. tried", len(faults), step)
}

// fault is one system call that fails, or at which the process dies.
type fault struct {
	call, how string
	when      int
}

func (f fault) String() string { return fmt.Sprintf("%s:%s:when=%d", f.call, f.how, f.when) }

// faultsOf lists the faults that a run can have.
func faultsOf(trace string) (all []fault) {
	seen := map[string]int{}
	name := regexp.MustCompile(`^\d+\s+([a-z0-9_]+)\(`)
	for line := range strings.Lines(trace) {
		if m := name.FindStringSubmatch(line); m != nil {
			seen[m[1]]++
			for _, how := range []string{"error=EIO", "signal=KILL"} {
				all = append(all, fault{m[1], how, seen[m[1]]})
			}
		}
	}
	return all
}

// checkExport looks at what a disturbed export has left, and exports what is missing.
func checkExport(t *testing.T, what, to, log string, want map[string]string) {
	t.Helper()
	r, err := tlog.OpenReader(log)
	if err != nil {
		t.Fatalf("%s: the log does not open: %v", what, err)
	}
	defer r.Close()
	for name, export := range map[string]func(dir string) error{
		"bundle": func(dir string) error {
			_, err := Write(t.Context(), Source{Log: r}, "job-a", dir)
			return err
		},
		"tiles": func(dir string) error {
			_, err := WriteTiles(t.Context(), r, dir)
			return err
		},
	} {
		dir := filepath.Join(to, name)
		if _, err := os.Lstat(dir); err != nil {
			if err := export(dir); err != nil {
				t.Errorf("%s: the next try: %v", what, err)
				continue
			}
		}
		got := whole(t, dir)
		n := 0
		for path, content := range want {
			if rest, ok := strings.CutPrefix(path, "/"+name); ok {
				n++
				if got[rest] != content {
					t.Errorf("%s: %s is missing or another", what, path)
				}
			}
		}
		if len(got) != n {
			t.Errorf("%s: %s has %d files, want %d", what, name, len(got), n)
		}
	}
}
