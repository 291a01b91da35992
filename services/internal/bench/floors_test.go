package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// spread is what a series of equal steps took, sorted.
type spread []time.Duration

// measure takes the time of each of n steps.
func measure(n int, step func(int) error) (spread, error) {
	took := make(spread, 0, n)
	for i := range n {
		start := time.Now()
		if err := step(i); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took, nil
}

// at is the value below which a share of the steps lies.
func (s spread) at(share float64) time.Duration {
	return s[min(int(share*float64(len(s))), len(s)-1)]
}

// syncs appends records of a kilobyte, each made durable before the next.
func syncs(t *testing.T, n int) spread {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "floor"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	record := make([]byte, 1024)
	took, err := measure(n, func(int) error {
		if _, err := file.Write(record); err != nil {
			return err
		}
		return file.Sync()
	})
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// spawns runs a command n times to its end.
func spawns(t *testing.T, n int, env []string, argv ...string) spread {
	t.Helper()
	took, err := measure(n, func(int) error {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("run %q: %w\n%s", argv, err, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// resident is a process's memory in bytes, proc_pid_status(5).
func resident(t *testing.T, pid int) int64 { return memoryOf(t, pid, "VmRSS:") }

// memoryOf is one of the kernel's figures of a process's memory.
func memoryOf(t *testing.T, pid int, name string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("process %d has no %s", pid, name)
	return 0
}

// ownCPU is the processor time of this process.
func ownCPU(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// exactCPU is the processor time of a process itself, clock_getcpuclockid(3), which knows
// nanoseconds where cpu knows ticks.
func exactCPU(t *testing.T, pid int) time.Duration {
	t.Helper()
	const schedulerClock = 2
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedulerClock), &at); err != nil {
		t.Fatalf("read the clock of process %d: %v", pid, err)
	}
	return time.Duration(at.Nano())
}

// clockTicks per second are 100 on every Linux that Go runs on, proc_pid_stat(5).
const clockTicks = 100

// cpu is the processor time of a process itself, and of the children that it has
// waited for.
func cpu(t *testing.T, pid int) (own, children time.Duration) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	ticks := func(i int) time.Duration { // field i of the manual page; the first here is its third
		n, err := strconv.ParseInt(fields[i-3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(n) * time.Second / clockTicks
	}
	return ticks(14) + ticks(15), ticks(16) + ticks(17)
}
