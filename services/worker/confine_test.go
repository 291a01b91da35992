package worker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/proc"
)

// ranAs runs one shell text to its end on a worker that is configured like this.
func ranAs(y *yard, text string, change func(*Config)) (lifecycle.Job, string) {
	y.t.Helper()
	w := y.hire("worker", "", change).run()
	id := y.propose([]string{"sh", "-c", text})
	y.approve(id)
	y.seal()
	j := y.ends(id)
	w.leave()
	return j, string(y.output(id, 1, "stdout"))
}

func TestAttemptHasItsOwnHomeAndLeavesNothing(t *testing.T) {
	y := newYard(t, rules)
	scratch := y.work("scratch")
	must(t, os.Mkdir(scratch, 0o755))
	j, got := ranAs(y, `echo "$HOME $TMPDIR"; cd "$HOME" && mkdir -p deep/er && touch deep/er/x "$TMPDIR/y" && chmod 0 deep/er deep && ls "`+scratch+`"`,
		func(c *Config) { c.Scratch = scratch })
	own := filepath.Join(scratch, "banksman-"+j.ID+".1."+j.Current().Session)
	want := own + "/home " + own + "/tmp\n" + filepath.Base(own) + "\n"
	if j.Status != lifecycle.Succeeded || got != want {
		t.Errorf("status %q, output %q, want %q", j.Status, got, want)
	}
	nothingIn(t, scratch)
}

func TestFolderOfADeadAttemptIsClearedAtTheNextStart(t *testing.T) {
	y := newYard(t, rules)
	scratch := y.work("scratch")
	must(t, os.Mkdir(scratch, 0o755))
	w := y.hire("worker", "", func(c *Config) { c.Scratch = scratch })
	r := record{Job: "job9", Pool: "default", Attempt: 1, Session: "gone", Marker: "marker-of-nobody"}
	must(t, w.shift.journal.Put(r, false))
	_, err := w.shift.furnish(r)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.shift.room(r).tmp(), "left"), nil, 0o600))
	w.run().shows("that it is ready", func(line string) bool { return strings.HasPrefix(line, "true") })
	nothingIn(t, scratch)
}

func TestJobIsConfinedAsConfigured(t *testing.T) {
	y := newYard(t, rules)
	j, got := ranAs(y, `ulimit -n; ulimit -t; ulimit -v; ulimit -f; nice; umask`, func(c *Config) {
		c.LimitOpenFiles, c.LimitCPUS, c.LimitMemoryBytes, c.LimitFileBytes, c.Nice, c.Umask = 99, 11, 1<<30, 5120, 5, 0o077
	})
	if want := "99\n11\n1048576\n10\n5\n0077\n"; j.Status != lifecycle.Succeeded || got != want {
		t.Errorf("status %q, output %q, want %q", j.Status, got, want)
	}
}

func TestJobRunsAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		if _, err := lookUpAccount("nobody"); err == nil || !strings.Contains(err.Error(), "root") {
			t.Errorf("an ordinary user's worker takes a user: %v", err)
		}
		return
	}
	if _, err := lookUpAccount("no-such-user"); err == nil || !strings.Contains(err.Error(), "no-such-user") {
		t.Errorf("a user that does not exist: %v", err)
	}
	y := newYard(t, rules)
	for dir := y.ground; dir != "/"; dir = filepath.Dir(dir) { // its own temporary folders are for root alone
		if info, err := os.Stat(dir); err == nil && info.Mode()&0o001 == 0 {
			must(t, os.Chmod(dir, info.Mode()|0o011))
		}
	}
	scratch := y.work("scratch")
	must(t, os.Mkdir(scratch, 0o755))
	j, got := ranAs(y, `id -un; echo "$USER $LOGNAME"; touch "$HOME/x" "$TMPDIR/y" && echo can write`, func(c *Config) {
		c.User, c.Scratch = "nobody", scratch
	})
	if want := "nobody\nnobody nobody\ncan write\n"; j.Status != lifecycle.Succeeded || got != want {
		t.Errorf("status %q, output %q, want %q; %+v", j.Status, got, want, j.Current().Result)
	}
	nothingIn(t, scratch)
}

// engine stands in for a container engine: its run leaves the command to a process
// that is no descendant, as the daemon of a real one does, and its rm ends it.
const engine = `#!/bin/sh
verb=$1; shift
case $verb in
run)
	echo "cid-7" > "$1"; shift
	for a in "$@"; do echo "arg $a"; done
	while [ "$1" = --env ]; do shift 2; done
	exec "$@" ;;
rm) echo "$1" >> STOPPED ;;
esac
`

func TestPrefixRunsTheCommandAndItsContainerIsStopped(t *testing.T) {
	y := newYard(t, rules)
	scratch, stopped := y.work("scratch"), y.work("stopped")
	must(t, os.Mkdir(scratch, 0o755))
	bin := filepath.Join(y.ground, "bin", "engine")
	must(t, os.WriteFile(bin, []byte(strings.ReplaceAll(engine, "STOPPED", stopped)), 0o755))
	w := y.hire("worker", "", func(c *Config) {
		c.Scratch, c.ExecPrefix, c.ExecStop = scratch, []string{bin, "run", "{cidfile}", "{env}"}, []string{bin, "rm"}
		c.EnvPass, c.GraceS = nil, 1
	}).run()
	sh, err := exec.LookPath("sh")
	must(t, err)
	id := y.propose([]string{"sh", "-c", "echo inside; echo $STAGE"}, func(p *events.JobProposed) { p.Env = map[string]string{"STAGE": "prod"} })
	y.approve(id)
	slow := y.propose([]string{"sh", "-c", "sleep 600"}, func(p *events.JobProposed) { p.TimeoutS = 1 })
	y.approve(slow)
	y.seal()
	j := y.ends(id)
	got := string(y.output(id, 1, "stdout"))
	if j.Status != lifecycle.Succeeded || !strings.Contains(got, "arg --env\narg STAGE\n") || !strings.HasSuffix(got, "inside\nprod\n") {
		t.Errorf("status %q, output %q", j.Status, got)
	}
	if real, _ := filepath.EvalSymlinks(sh); !strings.Contains(got, "arg "+j.Resolution.Program.Path+"\n") && !strings.Contains(got, "/sh\n") || real == "" {
		t.Errorf("the command's program is not named by its path: %q", got)
	}
	if j.Current().Started.Bound != proc.BoundChecked {
		t.Errorf("bound %q", j.Current().Started.Bound)
	}
	if j := y.ends(slow); j.Status != lifecycle.TimedOut || j.Current().Result.Survivors != 0 {
		t.Errorf("status %q, %+v", j.Status, j.Current().Result)
	}
	w.leave()
	if got, _ := os.ReadFile(stopped); string(got) != "cid-7\ncid-7\n" {
		t.Errorf("stopped %q", got)
	}
	nothingIn(t, scratch)
}

func TestContainerThatCannotBeStoppedIsASurvivor(t *testing.T) {
	y := newYard(t, rules)
	scratch := y.work("scratch")
	must(t, os.Mkdir(scratch, 0o755))
	bin := filepath.Join(y.ground, "bin", "engine")
	must(t, os.WriteFile(bin, []byte(strings.ReplaceAll(engine, "rm)", "rm) exit 1;")), 0o755))
	j, _ := ranAs(y, "exit 0", func(c *Config) {
		c.Scratch, c.ExecPrefix, c.ExecStop = scratch, []string{bin, "run", "{cidfile}"}, []string{bin, "rm"}
	})
	if j.Current().Result == nil || j.Current().Result.Survivors != 1 {
		t.Errorf("%+v", j.Current().Result)
	}
}

func TestBadConfinementNamesItsKey(t *testing.T) {
	for name, c := range map[string]struct {
		key    string
		change func(*Config)
	}{
		"relative scratch":  {"scratch", func(c *Config) { c.Scratch = "tmp" }},
		"relative program":  {"exec_prefix", func(c *Config) { c.ExecPrefix = []string{"podman"} }},
		"no scratch":        {"exec_prefix", func(c *Config) { c.ExecPrefix = []string{"/bin/podman", "{cidfile}"} }},
		"nothing to stop":   {"exec_stop", func(c *Config) { c.Scratch, c.ExecPrefix = "/s", []string{"/bin/podman", "{cidfile}"} }},
		"stops nothing":     {"exec_stop", func(c *Config) { c.ExecPrefix, c.ExecStop = []string{"/bin/podman"}, []string{"/bin/podman"} }},
		"a low memory":      {"limit_memory_bytes", func(c *Config) { c.LimitMemoryBytes = -1 }},
		"nice":              {"nice", func(c *Config) { c.Nice = 20 }},
		"a cap below first": {"retry_most_s", func(c *Config) { c.RetryFirstS, c.RetryMostS = 10, 5 }},
		"relative reach":    {"reach_write", func(c *Config) { c.ReachWrite = []string{"src"} }},
		"reach of nothing":  {"reach_read", func(c *Config) { c.ReachRead = []string{""} }},
		"no home to reach":  {"reach_write", func(c *Config) { c.ReachWrite = []string{"{home}"} }},
		"status 0":          {"retry_exits", func(c *Config) { c.RetryExits = []int{0} }},
	} {
		cfg := DefaultConfig()
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
