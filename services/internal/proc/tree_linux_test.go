package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stubborn is a process that TERM does not end; it makes the file $READY once that is so.
const stubborn = `sh -c 'trap "" TERM INT HUP; echo pid $$; : >$READY; while :; do sleep 0.1; done'`

// ready waits until a process of the script has made the file.
const ready = `while [ ! -e $READY ]; do sleep 0.02; done; `

// TestTreeEndsWithDirectChild leaves processes behind in every known way. Each script says "done" when all are in place.
func TestTreeEndsWithDirectChild(t *testing.T) {
	for _, c := range []struct {
		name, script string
		term         bool // TERM is enough
	}{
		{"background child holds the pipes", `sleep 300 & echo pid $!; echo done`, true},
		{"background child has closed the pipes", `sleep 300 >/dev/null 2>&1 & echo pid $!; echo done`, true},
		{"own session", `setsid sh -c 'echo pid $$; : >$READY; exec sleep 300' & ` + ready + `echo done`, true},
		{"double fork", `(setsid sh -c '(sh -c "echo pid \$\$; : >\$READY; exec sleep 300" &) ; exit' &) ; ` + ready + `echo done`, true},
		{"nohup", `nohup sleep 300 >/dev/null & echo pid $!; echo done`, true},
		{"empty environment", `env -i READY=$READY setsid sh -c 'echo pid $$; : >$READY; while :; do sleep 300; done' & ` + ready + `echo done`, true},
		{"stopped", `sleep 300 & echo pid $!; kill -STOP $!; echo done`, true},
		{"stopped and deaf", `(trap '' TERM; : >$READY; exec sleep 300) & echo pid $!; ` + ready + `kill -STOP $!; echo done`, false},
		{"leader gone, rest deaf", stubborn + ` & ` + ready + `echo done`, false},
		{"deaf in an own session without environment", `env -i PATH=$PATH READY=$READY setsid ` + stubborn + ` & ` + ready + `echo done`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := newTap()
			spec := shell(t, c.script, out)
			spec.Env = append(spec.Env, "READY="+place(t)+"/ready")
			if !c.term {
				spec.Grace = 100 * time.Millisecond
			}
			p := begun(t, spec)
			outcome := ended(t, p)
			if outcome.ExitCode != 0 || outcome.TimedOut || outcome.Cancelled || len(outcome.Survivors) > 0 {
				t.Errorf("outcome is %+v", outcome)
			}
			if !strings.Contains(out.String(), "done") || len(namedPIDs(out.String())) != 1 {
				t.Errorf("output is %q", out)
			}
			if outcome.LeftBehind == 0 || len(outcome.Means) == 0 || (outcome.Killed > 0) == c.term {
				t.Errorf("left behind %d, killed %d, means %v", outcome.LeftBehind, outcome.Killed, outcome.Means)
			}
			mustBeGone(t, p.Marker(), out.String())
		})
	}
}

func TestCancelOvertakesForkChain(t *testing.T) {
	chain := written(t, place(t)+"/chain.sh", `[ "$1" -gt 0 ] && sh "$0" $(($1 - 1)) & exit 0`, 0o755)
	for range 5 {
		out := newTap()
		spec := shell(t, fmt.Sprintf(`trap '' TERM; sh %s 100000 & echo ready; sleep 300`, chain), out)
		spec.Grace = time.Millisecond
		p := begun(t, spec)
		out.await(t, "ready")
		p.Cancel("enough")
		if outcome := ended(t, p); !outcome.Cancelled || outcome.CancelReason != "enough" || len(outcome.Survivors) > 0 {
			t.Errorf("outcome is %+v", outcome)
		}
		mustBeGone(t, p.Marker(), "")
	}
}

// TestManyProcesses ends a tree of hundreds, in a soak of 5,000: ones that hear TERM, and ones that only KILL ends.
func TestManyProcesses(t *testing.T) {
	count := 500
	switch {
	case os.Getenv("BANKSMAN_SOAK") == "1":
		count = 5000
	case testing.Short():
		count = 150
	}
	for name, c := range map[string]struct {
		first  string
		signal string
		killed int
	}{"who hear": {"", "SIGTERM", 0}, "who are deaf": {"trap '' TERM; ", "SIGKILL", count + 1}} {
		t.Run(name, func(t *testing.T) {
			out := newTap()
			spec := shell(t, c.first+fmt.Sprintf(`i=0; while [ $i -lt %d ]; do sleep 300 & i=$((i+1)); done; echo ready; wait; sleep 300`, count), out)
			if c.killed > 0 {
				spec.Grace = 50 * time.Millisecond
			}
			p := begun(t, spec)
			out.await(t, "ready")
			asked := time.Now()
			p.Cancel("enough")
			o := ended(t, p)
			t.Logf("%d processes ended in %v", count, time.Since(asked))
			if o.Signal != c.signal || o.Killed < c.killed || (c.killed == 0) != (o.Killed == 0) || len(o.Survivors) > 0 {
				t.Errorf("outcome is %+v", o)
			}
			mustBeGone(t, p.Marker(), "")
		})
	}
}

// TestTermComesOnce also shows that what a program starts in order to tidy up is not told to end.
func TestTermComesOnce(t *testing.T) {
	out := newTap()
	p := begun(t, shell(t, `n=0; trap 'n=$((n+1))' TERM; echo ready
		while [ $n -eq 0 ]; do sleep 0.05; done
		for i in 1 2 3 4 5; do sleep 0.1 || echo disturbed; done
		echo terms $n; exit 3`, out))
	out.await(t, "ready")
	p.Cancel("first")
	p.Cancel("second")
	outcome := ended(t, p)
	if outcome.ExitCode != 3 || !outcome.Cancelled || outcome.CancelReason != "first" || outcome.Killed != 0 {
		t.Errorf("outcome is %+v", outcome)
	}
	if text := out.String(); !strings.Contains(text, "terms 1\n") || strings.Contains(text, "disturbed") {
		t.Errorf("output is %q", text)
	}
}

func TestTimeLimit(t *testing.T) {
	out := newTap()
	spec := shell(t, `echo part1; sh -c 'sleep 300 & sleep 300; true'; echo part2`, out)
	spec.TimeLimit = 300 * time.Millisecond
	p := begun(t, spec)
	outcome := ended(t, p)
	if !outcome.TimedOut || outcome.Cancelled || outcome.Signal != "SIGTERM" || outcome.ExitCode != -1 || outcome.Wall < spec.TimeLimit {
		t.Errorf("outcome is %+v", outcome)
	}
	if !strings.HasPrefix(out.String(), "part1\n") || strings.Contains(out.String(), "part2") {
		t.Errorf("output is %q", out)
	}
	mustBeGone(t, p.Marker(), "")
}

func TestTimeLimitOfDeafTree(t *testing.T) {
	out := newTap()
	spec := shell(t, `trap '' TERM; `+stubborn+` & `+stubborn, out)
	spec.Env = append(spec.Env, "READY="+place(t)+"/ready")
	spec.TimeLimit, spec.Grace = time.Second, 100*time.Millisecond
	p := begun(t, spec)
	if outcome := ended(t, p); !outcome.TimedOut || outcome.Signal != "SIGKILL" || outcome.Killed < 2 {
		t.Errorf("outcome is %+v", outcome)
	}
	mustBeGone(t, p.Marker(), out.String())
}

func TestContextEndsTree(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	out := newTap()
	p, err := Start(ctx, shell(t, `echo ready; sleep 300`, out))
	if err != nil {
		t.Fatal(err)
	}
	out.await(t, "ready")
	cancel(errors.New("shutting down"))
	if outcome := ended(t, p); !outcome.Cancelled || outcome.CancelReason != "shutting down" {
		t.Errorf("outcome is %+v", outcome)
	}
	if _, err := Start(ctx, shell(t, `true`, out)); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("a program was started for an ended context: %v", err)
	}
}

// TestOwnerKilled kills the owner with no chance to say a word.
func TestOwnerKilled(t *testing.T) {
	for _, c := range []struct{ hide, stop bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			out := newTap()
			owner := exec.Command("/proc/self/exe")
			owner.Env = append(os.Environ(), "READY="+place(t)+"/ready", ownerVariable+`=echo pid $PPID; env -i setsid sleep 300 & echo pid $!; eval "$LAST"; `+stubborn)
			if c.stop {
				owner.Env = append(owner.Env, "LAST=sleep 0.2; kill -STOP $PPID")
			}
			if c.hide {
				needNamespaces(t)
				owner.Env = append(owner.Env, "PROC_TEST_HIDE="+place(t))
			}
			owner.Stdout = out
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			out.await(t, "marker ")
			out.awaitCount(t, "pid ", 3)
			_, marker, _ := strings.Cut(out.String(), "marker ")
			marker, _, _ = strings.Cut(marker, "\n")
			if err := owner.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			pids := namedPIDs(out.String())
			for _, pid := range pids {
				awaitGone(t, pid)
			}
			owner.Wait()
			mustBeGone(t, marker, out.String())
		})
	}
}

// TestStewardKilled lets the job kill what watches it.
func TestStewardKilled(t *testing.T) {
	out := newTap()
	spec := shell(t, `setsid sleep 300 & echo pid $!; `+stubborn+` & `+ready+`kill -9 $PPID; sleep 300`, out)
	spec.Env = append(spec.Env, "READY="+place(t)+"/ready")
	p := begun(t, spec)
	outcome := ended(t, p)
	if _, err := p.Wait(); !errors.Is(err, ErrStewardLost) {
		t.Errorf("error is %v", err)
	}
	if outcome.ExitCode != -1 || len(outcome.Means) == 0 || len(outcome.Survivors) > 0 {
		t.Errorf("outcome is %+v", outcome)
	}
	mustBeGone(t, p.Marker(), out.String())
}

// TestStewardStopped lets the job stop what keeps its time.
func TestStewardStopped(t *testing.T) {
	spec := shell(t, `kill -STOP $PPID; sleep 300`, newTap())
	spec.TimeLimit = 100 * time.Millisecond
	p := begun(t, spec)
	if outcome := ended(t, p); !outcome.TimedOut {
		t.Errorf("outcome is %+v", outcome)
	}
	p = begun(t, shell(t, `kill -STOP $PPID; sleep 300`, newTap()))
	p.Cancel("enough")
	if outcome := ended(t, p); !outcome.Cancelled {
		t.Errorf("outcome is %+v", outcome)
	}
}

func TestSweepMarker(t *testing.T) {
	out := newTap()
	stray := exec.Command("sh", "-c", `env -i sleep 300 & echo pid $!; sleep 300 & echo pid $!; echo pid $$; wait`)
	stray.Env = append(os.Environ(), MarkerVariable+"=sweep-test-"+fmt.Sprint(os.Getpid()))
	stray.Stdout = out
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "300")
	other.Env = append(os.Environ(), MarkerVariable+"=sweep-test-"+fmt.Sprint(os.Getpid())+"0")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	out.await(t, fmt.Sprintf("pid %d\n", stray.Process.Pid))
	killed, err := SweepMarker("sweep-test-" + fmt.Sprint(os.Getpid()))
	if err != nil || len(killed) != 3 {
		t.Errorf("swept %v, %v", killed, err)
	}
	stray.Wait()
	mustBeGone(t, "", out.String())
	if err := other.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("a process with another marker was ended: %v", err)
	}
	other.Process.Kill()
	other.Wait()
	if _, err := SweepMarker(""); err == nil {
		t.Error("an empty marker was accepted")
	}
}
