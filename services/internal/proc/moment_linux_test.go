package proc

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// held is a program that ignores TERM and says so, with an end that nobody puts off.
func held(t testing.TB, lives, notice time.Duration) (Spec, *tap) {
	out := newTap()
	spec := shell(t, `trap 'echo asked' TERM; echo runs; while :; do sleep 0.05; done`, out)
	spec.Until, spec.Notice = Boottime().Add(lives), notice
	return spec, out
}

// A tree whose owner says nothing any more is asked to end before the moment at which it has to be gone, and is gone by
// then, however long its grace is.
func TestTreeThatIsNotHeldEnds(t *testing.T) {
	t.Parallel()
	spec, out := held(t, 2*time.Second, 300*time.Millisecond)
	spec.Grace = time.Hour
	until := spec.Until
	p := begun(t, spec)
	o := ended(t, p)
	if !o.Fenced || o.Cancelled || o.TimedOut || !strings.Contains(out.String(), "asked") || o.Killed == 0 {
		t.Errorf("%+v after %q", o, out)
	}
	if early := until.Sub(Boottime()); early > 0 {
		t.Errorf("it was killed %v before its time", early)
	}
	mustBeGone(t, p.Marker(), out.String())
}

// The end can be put off, never brought forward.
func TestHeldTreeRunsOn(t *testing.T) {
	t.Parallel()
	out := newTap()
	spec := shell(t, `echo runs; read line; echo "$line"`, out)
	answers, say, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Close()
	defer say.Close()
	spec.Stdin = answers
	spec.Until, spec.Notice = Boottime().Add(2*time.Second), 300*time.Millisecond
	first := spec.Until
	p := begun(t, spec)
	p.Extend(first.Add(time.Hour))
	p.Extend(first)
	out.await(t, "runs")
	for Boottime() < first { // a condition of the clock that the steward keeps
		unix.Poll(nil, 10)
	}
	if _, err := say.WriteString("still here\n"); err != nil {
		t.Fatal(err)
	}
	if o := ended(t, p); o.Fenced || o.ExitCode != 0 || !strings.Contains(out.String(), "still here") {
		t.Errorf("%+v after %q", o, out)
	}
	p.Extend(first) // of a tree that is gone: nothing to do
}

// The grace of a cancelled tree does not outlast the moment at which it has to be gone.
func TestHoldCutsTheGraceShort(t *testing.T) {
	t.Parallel()
	spec, out := held(t, 2*time.Second, 300*time.Millisecond)
	spec.Grace = time.Hour
	p := begun(t, spec)
	out.await(t, "runs")
	p.Cancel("test")
	if o := ended(t, p); !o.Cancelled || o.Fenced || o.Killed == 0 {
		t.Errorf("%+v", o)
	}
}

// An owner that is stopped holds nothing: its tree ends all the same.
func TestTreeOfAStoppedOwnerEnds(t *testing.T) {
	t.Parallel()
	out := newTap()
	owner := exec.Command("/proc/self/exe")
	owner.Env = append(os.Environ(), "PROC_TEST_HOLD=2s", ownerVariable+`=echo pid $$; trap '' TERM; while :; do sleep 0.05; done`)
	owner.Stdout = out
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = owner.Process.Kill()
		_ = owner.Wait()
	}()
	out.await(t, "pid ")
	if err := owner.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, pid := range namedPIDs(out.String()) {
		awaitGone(t, pid)
	}
	if stat, ok := readStat(owner.Process.Pid); !ok || stat.state != 'T' {
		t.Errorf("the owner is not stopped: %+v, %v", stat, ok)
	}
}

// What comes too late is not started.
func TestLateOrderStartsNothing(t *testing.T) {
	for name, late := range map[string]func(*Spec){
		"start by": func(s *Spec) { s.StartBy = Boottime() },
		"until":    func(s *Spec) { s.Until, s.Notice = Boottime().Add(time.Minute), 2*time.Minute },
	} {
		out := newTap()
		spec := shell(t, "echo runs", out)
		late(&spec)
		_, err := Start(context.Background(), spec)
		codeIs(t, err, CodeTooLate)
		if out.String() != "" {
			t.Errorf("%s: it ran", name)
		}
	}
	spec := shell(t, "true", nil)
	spec.StartBy = Boottime().Add(time.Minute)
	if o := ran(t, spec); o.ExitCode != 0 {
		t.Errorf("on time: %+v", o)
	}
}
