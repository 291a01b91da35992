package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// insideVariable says that this run is the first process of a pid namespace of its own.
const insideVariable = "PROC_TEST_PID_NAMESPACE"

// A process id that has passed to another process since it was listed is no target any more, neither of a signal nor of a
// sweep. In a namespace of its own the test chooses which id the kernel gives out next.
func TestRecycledIDIsNotHit(t *testing.T) {
	if os.Getenv(insideVariable) == "" {
		if os.Geteuid() != 0 {
			t.Skip("only root makes a pid namespace and chooses ids in it")
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestRecycledIDIsNotHit$", "-test.v")
		cmd.Env = append(os.Environ(), insideVariable+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") && !strings.Contains(string(out), "--- SKIP") {
			t.Fatalf("%v\n%s", err, out)
		}
		if strings.Contains(string(out), "--- SKIP") {
			t.Skipf("%s", out)
		}
		return
	}
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("proc", "/proc", "proc", 0, "")); err != nil {
		t.Skip("mount /proc:", err)
	}
	victim := asleep(t)
	listed, ok := readStat(victim.Process.Pid)
	if !ok {
		t.Fatal("the victim is not listed")
	}
	_ = victim.Process.Kill()
	_, _ = victim.Process.Wait()
	for ticksSinceBoot() <= listed.start+1 { // within one tick the kernel tells nobody apart
		runtime.Gosched()
	}
	if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(listed.pid-1)), 0); err != nil {
		t.Skip("choose the next id:", err)
	}
	stranger := asleep(t)
	if stranger.Process.Pid != listed.pid {
		t.Fatalf("the stranger got id %d and not %d", stranger.Process.Pid, listed.pid)
	}
	if err := signalMember(listed.member, unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the signal to the dead process: %v", err)
	}
	tree := newTree(&job{Marker: "of-nobody"}, listed.pid, "")
	tree.ask([]member{listed.member})
	if now, ok := readStat(stranger.Process.Pid); !ok || !now.alive() || now.start == listed.start {
		t.Errorf("the stranger is %+v, %t", now, ok)
	}
	_ = stranger.Process.Signal(syscall.SIGINT) // which nobody else sends
	var status *exec.ExitError
	if err := stranger.Wait(); !errors.As(err, &status) || status.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("the stranger was hit: %v", err)
	}
}

// asleep starts a process that does nothing.
func asleep(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// The thread of the operating system on which a program was started ends, as Go lets them end. That is not the end of the
// owner, and the program lives on.
func TestEndOfAThreadEndsNothing(t *testing.T) {
	type running struct {
		p      *Process
		thread int
		err    error
	}
	const each = 8
	out := newTap()
	gate := place(t) + "/gate"
	started := make(chan running)
	for range each {
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			spec := shell(t, `trap 'echo hit' TERM INT HUP CONT USR1; echo ready; while [ ! -e "$GATE" ]; do sleep 0.05; done; echo through`, out)
			spec.Env = append(spec.Env, "GATE="+gate)
			p, err := Start(context.Background(), spec)
			started <- running{p, unix.Gettid(), err}
		}()
	}
	var all []running
	for range each {
		r := <-started
		if r.err != nil {
			t.Fatal(r.err)
		}
		all = append(all, r)
	}
	out.awaitCount(t, "ready", each)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, r := range all {
		if r.thread == os.Getpid() {
			continue // Go parks the main thread instead
		}
		for _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", r.thread)); err == nil; _, err = os.Stat(fmt.Sprintf("/proc/self/task/%d", r.thread)) {
			<-tick.C
		}
	}
	written(t, gate, "", 0o644)
	for _, r := range all {
		if o := ended(t, r.p); o.ExitCode != 0 || o.Signal != "" {
			t.Errorf("the program ended as %+v", o)
		}
	}
	if got := out.String(); strings.Contains(got, "hit") || strings.Count(got, "through") != each {
		t.Errorf("the programs said %q", got)
	}
}
