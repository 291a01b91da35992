package front_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/lab/need"
)

// onTerminal starts a site on a terminal of its own, on which somebody types.
func (s *scripted) onTerminal(typed string) {
	s.t.Helper()
	cmd := s.Command(s.t.Context(), "up", "--log-level", "info")
	screen, err := pty.Start(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, screen) // its end is an error on Linux
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		screen.Close()
		<-read
	})
	if _, err := io.WriteString(screen, typed); err != nil {
		s.t.Fatal(err)
	}
	s.Ready()
}

// open lets every user reach a folder.
func open(t *testing.T, dir string) {
	t.Helper()
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode()&0o011 != 0o011 {
			if err := os.Chmod(dir, info.Mode()|0o011); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A job gets what its worker is configured to give and nothing of the worker's own:
// no input, no terminal, no descriptor, no variable, no privilege.
func TestJobGetsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	s := newScripted(t, [3]string{"worker", "scratch", fmt.Sprintf("%q", scratch)}, [3]string{"worker", "env_pass", `["LANG"]`},
		[3]string{"worker", "umask", "63"}, [3]string{"worker", "nice", "7"}, [3]string{"worker", "limit_open_files", "50"})
	s.Env = append(s.Env, "LANG=C", "AWS_SECRET_ACCESS_KEY=of-the-operator", "LD_PRELOAD=", "BASH_ENV=/etc/passwd")
	s.onTerminal("typed by the operator\n")
	const script = `read line && echo "input $line"
echo "session $(($(cut -d' ' -f6 /proc/$$/stat) == $$))"
echo "descriptors" $(ls /proc/self/fd)
(: </dev/tty) 2>/dev/null && echo terminal
echo "mask $(umask), nice $(nice), files $(ulimit -n)"
grep NoNewPrivs /proc/self/status
touch "$HOME/h" "$TMPDIR/t" && echo "own $HOME $TMPDIR"
echo "variables" $(env | cut -d= -f1 | sort)`
	d := s.does(script, "--env", "TEXT=given")
	home := filepath.Join(scratch, "banksman-"+d.Job.Job+".1.")
	got := strings.Split(strings.TrimSpace(d.Result.Stdout), "\n")
	for i, want := range []string{
		"session 1", "descriptors 0 1 2 3", "mask 0077, nice 7, files 50", "NoNewPrivs:\t1", "own " + home,
		"variables " + strings.Join(slices.Sorted(slices.Values([]string{"BANKSMAN_MARKER", "HOME", "LANG", "PATH", "PWD", "TEXT", "TMPDIR"})), " "),
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) || len(got) != 6 {
			t.Fatalf("line %d is not %q, or there are others:\n%s%s", i, want, d.Result.Stdout, d.Result.Stderr)
		}
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("what the job had to itself is left: %v, %v", left, err)
	}
}

// An operator's loop that reads its work from standard input is not eaten by the
// commands in it.
func TestLoopKeepsItsInput(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.Up()
	cmd := s.Command(t.Context(), "run")
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `while read -r line; do "$0" run --cwd "$1" -- "$2" "cat; echo \"$line\""; done; echo over`, s.Bin, s.work, s.script}
	cmd.Stdin = strings.NewReader("first\nsecond\nthird\n")
	out, err := cmd.Output()
	if err != nil || string(out) != "first\nsecond\nthird\nover\n" {
		t.Errorf("the loop said %q, %v", out, err)
	}
}

// Where root runs the worker, jobs may run as somebody else, who has no more
// processes than allowed, owns what the job had to itself, and cannot reach the
// site.
func TestJobOfAnotherUser(t *testing.T) {
	t.Parallel()
	need.Root(t, "give its jobs another user")
	scratch := t.TempDir()
	s := newScripted(t, [3]string{"worker", "scratch", fmt.Sprintf("%q", scratch)}, [3]string{"worker", "user", `"nobody"`}, [3]string{"worker", "limit_processes", "400"})
	for _, dir := range []string{s.work, scratch, s.script} {
		open(t, dir)
	}
	s.Up()
	d := s.does(`id -un; echo "$USER"; touch "$HOME/h" "$TMPDIR/t" && stat -c %U "$HOME/h"; cat ` + s.Dir + `/banksman.toml || echo hidden`)
	if d.Status != lifecycle.Succeeded || d.Result.Stdout != "nobody\nnobody\nnobody\nhidden\n" {
		t.Errorf("%s: %+v", d.Status, d.Result)
	}
	if walls := d.Attempts[0].Walls; !slices.Contains(walls, "user") {
		t.Errorf("the start names the walls %q", walls)
	}
	d = s.does(`i=0; while [ $i -lt 1000 ]; do sleep 300 & i=$((i+1)); done; echo all`)
	if d.Result.ExitCode == 0 || strings.Contains(d.Result.Stdout, "all") || d.Result.Survivors != 0 {
		t.Errorf("with a limit of 400 processes: %+v", d.Result)
	}
	lab.Eventually(t, "nothing to be left", func() bool { return len(s.left()) == 0 })
}

// A worker on a kernel that can keeps jobs to the folders that it is configured
// for, and the record says so.
func TestJobKeepsToItsFolders(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	s := newScripted(t, [3]string{"worker", "reach_write", `["{cwd}"]`})
	var doctor struct {
		Findings []struct {
			Check string `json:"check"`
			State string `json:"state"`
		} `json:"findings"`
	}
	if r := s.Run("doctor", "--json"); !strings.Contains(r.Stdout, `"landlock"`) {
		t.Fatalf("the doctor does not look at Landlock: %s", r)
	} else {
		r.JSON(t, &doctor)
	}
	for _, f := range doctor.Findings {
		switch {
		case f.Check != "landlock" || f.State == "ok":
		case os.Getenv("BANKSMAN_REQUIRE") == "1":
			t.Fatal("this kernel has no Landlock")
		default:
			up := s.Start("up")
			if code := up.Wait(); code == 0 || !strings.Contains(up.Stderr(), "reach_write") {
				t.Errorf("without Landlock the worker starts: exit %d, %s", code, up.Stderr())
			}
			return
		}
	}
	s.Up()
	d := s.does(`echo in >in && cat in; echo out >` + outside + `/out; kill -9 $PPID 2>/dev/null; echo over`)
	if d.Status != lifecycle.Succeeded || d.Result.Stdout != "in\nover\n" || !strings.Contains(d.Result.Stderr, "Permission denied") {
		t.Errorf("%s: %+v", d.Status, d.Result)
	}
	if _, err := os.Stat(filepath.Join(outside, "out")); err == nil {
		t.Error("the job has written outside its folder")
	}
	if walls := d.Attempts[0].Walls; !slices.Contains(walls, "landlock") {
		t.Errorf("the start names the walls %q", walls)
	}
}
