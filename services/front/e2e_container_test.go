package front_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// newContained makes a site whose jobs are run by a container engine: a real one
// where BANKSMAN_REQUIRE_DOCKER is 1, otherwise the stand-in, which is a process of
// its own and no part of the worker's tree.
func newContained(t *testing.T) *scripted {
	t.Helper()
	scratch := t.TempDir()
	s := newScripted(t, [3]string{"worker", "scratch", fmt.Sprintf("%q", scratch)}, [3]string{"worker", "env_pass", "[]"})
	var prefix, stop []string
	if os.Getenv("BANKSMAN_REQUIRE_DOCKER") == "1" {
		docker, err := exec.LookPath("docker")
		if err != nil {
			t.Fatal(err)
		}
		image := os.Getenv("BANKSMAN_DOCKER_IMAGE")
		if image == "" {
			image = "alpine:3"
		}
		home := filepath.Dir(s.script)
		prefix = []string{docker, "run", "--rm", "--cidfile", "{cidfile}", "--network", "none", "--volume", home + ":" + home, "--workdir", "{cwd}", "{env}", image}
		stop = []string{docker, "rm", "--force"}
	} else {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(t.TempDir(), "s")
		daemon := exec.Command(self, engineWord, "daemon", socket)
		if err := daemon.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = daemon.Process.Kill()
			_ = daemon.Wait()
		})
		lab.Eventually(t, "the engine to listen", func() bool {
			_, err := os.Stat(socket)
			return err == nil
		})
		prefix, stop = []string{self, engineWord, "run", socket, "{cidfile}", "{env}"}, []string{self, engineWord, "rm", socket}
	}
	list := func(words []string) string {
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = fmt.Sprintf("%q", w)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	s.Set("worker", "exec_prefix", list(prefix))
	s.Set("worker", "exec_stop", list(stop))
	return s
}

// A job that an engine runs is no descendant of its worker. It ends all the same:
// by itself with its status, at its limit, when it is called off, and after its
// worker has died.
func TestContainersEndWithTheirJobs(t *testing.T) {
	t.Parallel()
	s := newContained(t)
	up := s.Up()
	d := s.does(`echo "$TEXT"; cat; echo oops >&2; exit 3`, "--env", "TEXT=given")
	if d.Status != lifecycle.Failed || d.Result.ExitCode != 3 || d.Result.Stdout != "given\n" || d.Result.Stderr != "oops\n" || d.Result.Survivors != 0 {
		t.Errorf("%s: %+v", d.Status, d.Result)
	}
	if a := d.Attempts[0]; a.Bound != "checked" || !slices.Contains(a.Walls, "container") {
		t.Errorf("the start says %+v", a)
	}
	const deaf = `trap '' TERM INT HUP; : >running; while :; do sleep 0.2; done`
	begins := func(flags ...string) string {
		job := s.propose(deaf, flags...)
		s.awaitFile("running")
		if err := os.Remove(filepath.Join(s.work, "running")); err != nil {
			t.Fatal(err)
		}
		if len(s.left()) == 0 {
			t.Fatal("the job runs, and nothing of it is found")
		}
		return job
	}
	gone := func(when string) {
		lab.Eventually(t, "the container to be gone "+when, func() bool { return len(s.left()) == 0 })
	}
	if d := s.ends(begins("--timeout", "5s")); d.Status != lifecycle.TimedOut || d.Result.Survivors != 0 {
		t.Errorf("%s: %+v", d.Status, d.Result)
	} else if left := s.left(); len(left) > 0 {
		t.Errorf("at its limit, and these live on: %q", left)
	}
	job := begins()
	s.Must(0, "cancel", job, "--reason", "no longer wanted")
	if d := s.ends(job); d.Status != lifecycle.Cancelled || d.Receipt == nil || d.Receipt.Survivors != 0 {
		t.Errorf("%s: %+v", d.Status, d.Receipt)
	}
	gone("once called off")
	job = begins()
	up.Kill()
	if len(s.left()) == 0 {
		t.Error("the engine ended the job by itself; then this test shows nothing")
	}
	s.Up()
	gone("after its worker has died")
	if d := s.ends(job); d.Status != lifecycle.Lost {
		t.Errorf("its job is %s", d.Status)
	}
}
