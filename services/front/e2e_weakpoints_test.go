package front_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// These are the places where supervisors of this kind gave way, each tried on the
// built program: between the yes and the start, something becomes another thing.

// ground is where the commands of a test lie and work, with a site beside it.
type ground struct {
	t           *testing.T
	site        *lab.Site
	up          *lab.Process
	front, back string // folders of the search path, in this order
	work        string
}

// rulesOfGround ask about what lies on the search path, allow pwd below the
// ground's work folder, and hold git and cat back where arguments add power.
const rulesOfGround = `
[[rule]]
id = "tools"
program = ["tool", "greet", "python", "touch"]
decision = "ask"
[[rule]]
id = "where"
program = "pwd"
flags = ["-P"]
roots = [%[1]q]
decision = "allow"
[[rule]]
id = "reads"
program = "cat"
roots = [%[1]q]
paths_under = ["."]
decision = "allow"
[[rule]]
id = "git"
program = "git"
deny_args = ["--force", "-f", "--hard", "-c", "--config-env", "--exec-path"]
decision = "ask"
`

func newGround(t *testing.T) *ground {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, front: filepath.Join(base, "front"), back: filepath.Join(base, "back"), work: filepath.Join(base, "work")}
	for _, dir := range []string{g.front, g.back, filepath.Join(g.work, "real")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	g.site = lab.NewSite(t, binary, "--policy", policyFile(t, fmt.Sprintf(rulesOfGround, g.work)))
	g.site.Set("worker", "path", fmt.Sprintf(`[%q, %q, "/usr/bin", "/bin"]`, g.front, g.back))
	g.up = g.site.Up()
	return g
}

// again starts the site once more, with other settings.
func (g *ground) again(args ...string) {
	g.t.Helper()
	g.up.Stop()
	g.up = g.site.Up(args...)
}

// script writes an executable that leaves a mark when it runs.
func (g *ground) script(path, mark string) {
	g.t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\ntouch "+filepath.Join(g.work, mark)+"\n"), 0o755); err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) link(target, path string) {
	g.t.Helper()
	next := path + ".next"
	if err := os.Symlink(target, next); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) ask(argv ...string) string {
	g.t.Helper()
	return propose(g.t, g.site, append([]string{"--cwd", g.work, "--"}, argv...)...)
}

// stopped approves a job that has changed since it was asked for: it has to end
// before its start, and to name the difference.
func (g *ground) stopped(id string, names ...string) {
	g.t.Helper()
	g.site.Must(0, "approve", id)
	j := until(g.t, g.site, id, lifecycle.DeadLetter)
	for _, name := range names {
		if !strings.Contains(j.Ending, name) {
			g.t.Errorf("the ending does not name %s: %q", name, j.Ending)
		}
	}
	if len(j.Attempts) != 0 {
		g.t.Errorf("it was started: %+v", j.Attempts)
	}
}

func TestWhatChangedSinceTheYesDoesNotRun(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	back, front := filepath.Join(g.back, "tool"), filepath.Join(g.front, "tool")
	clean := func(t *testing.T) {
		g.t = t
		os.Remove(front)
		os.Remove(back)
		g.script(back, "honest")
	}
	t.Run("a namesake earlier on the search path", func(t *testing.T) {
		clean(t)
		id := g.ask("tool")
		g.script(front, "impostor")
		g.stopped(id, back, front)
	})
	t.Run("the search path itself", func(t *testing.T) {
		clean(t)
		id := g.ask("tool")
		g.site.Set("worker", "path", fmt.Sprintf(`[%q, "/tmp", "/usr/bin", "/bin"]`, g.back))
		g.again()
		g.stopped(id, g.front, "/tmp")
		g.site.Set("worker", "path", fmt.Sprintf(`[%q, %q, "/usr/bin", "/bin"]`, g.front, g.back))
		g.again()
	})
	t.Run("the program", func(t *testing.T) {
		clean(t)
		id := g.ask("tool")
		g.script(back, "impostor")
		g.stopped(id, back)
	})
	t.Run("where a link leads", func(t *testing.T) {
		clean(t)
		os.Remove(back)
		real, other := filepath.Join(g.back, "tool-1"), filepath.Join(g.back, "tool-2")
		g.script(real, "honest")
		g.script(other, "impostor")
		g.link(real, back)
		id := g.ask("tool")
		g.link(other, back)
		g.stopped(id, real, other)
	})
	t.Run("the working folder", func(t *testing.T) {
		clean(t)
		here, there := filepath.Join(g.work, "real"), filepath.Join(g.work, "moved")
		id := propose(t, g.site, "--cwd", here, "--", "tool")
		if err := os.Rename(here, there); err != nil {
			t.Fatal(err)
		}
		g.stopped(id, here)
		if err := os.Rename(there, here); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("the variables that jobs get", func(t *testing.T) {
		clean(t)
		id := g.ask("tool")
		was := g.site.Setting("worker", "env_pass")
		g.site.Set("worker", "env_pass", `["HOME", "LD_PRELOAD"]`)
		g.again()
		g.stopped(id, "LD_PRELOAD")
		g.site.Set("worker", "env_pass", was)
		g.again()
	})
	t.Run("the policy", func(t *testing.T) {
		clean(t)
		id := g.ask("tool")
		g.again("--without", "worker")
		g.site.Must(0, "approve", id)
		g.site.Must(0, "policy", "publish", policyFile(t, "[[rule]]\nid = \"no\"\nprogram = \"tool\"\ndecision = \"deny\"\nreason = \"not any more\"\n"))
		g.again()
		if j := until(t, g.site, id, lifecycle.DeadLetter); !strings.Contains(j.Ending, "not any more") {
			t.Errorf("ending %q", j.Ending)
		}
	})
	for _, mark := range []string{"honest", "impostor"} {
		if exists(filepath.Join(g.work, mark)) {
			t.Errorf("the %s tool ran", mark)
		}
	}
	g.site.Must(0, "audit", "verify")
}

// A program that goes by its name, as multi-call programs and the interpreters of
// virtual environments do, gets the name that was approved.
func TestAProgramKeepsTheNameItWasAskedForBy(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	g.link(sh, filepath.Join(g.back, "greet"))
	venv := filepath.Join(g.work, "..", "venv", "bin")
	if err := os.MkdirAll(venv, 0o755); err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(filepath.Clean(venv), "python")
	g.link(sh, python)
	for name, argv := range map[string][]string{"greet": {"greet", "-c", "echo $0"}, python: {python, "-c", "echo $0"}} {
		id := g.ask(argv...)
		g.site.Must(0, "approve", id)
		until(t, g.site, id, lifecycle.Succeeded)
		if out := show(t, g.site, id).Result.Stdout; out != name+"\n" {
			t.Errorf("%q ran under the name %q", argv, out)
		}
	}
	// The rule for one name is none for the file's other names.
	if r := g.site.Must(77, "run", "--cwd", g.work, "--", "sh", "-c", "touch other-name"); !strings.Contains(r.Stderr, "no rule") {
		t.Errorf("want it unlisted: %s", r)
	}
	if real, err := exec.Command("python3", "-c", "import sys; print(sys.executable, sys.base_prefix)").Output(); err == nil {
		executable, _, _ := strings.Cut(strings.TrimSpace(string(real)), " ")
		os.Remove(python)
		g.link(executable, python)
		home := "home = " + filepath.Dir(executable) + "\n"
		if err := os.WriteFile(filepath.Join(filepath.Dir(filepath.Dir(python)), "pyvenv.cfg"), []byte(home), 0o644); err != nil {
			t.Fatal(err)
		}
		id := g.ask(python, "-c", "import sys; print(sys.prefix)")
		g.site.Must(0, "approve", id)
		until(t, g.site, id, lifecycle.Succeeded)
		if out := show(t, g.site, id).Result.Stdout; strings.TrimSpace(out) != filepath.Dir(filepath.Dir(python)) {
			t.Errorf("the virtual environment is lost: %q", out)
		}
	}
}

// However fast the working folder is exchanged, a command runs where policy lets
// it or nowhere, and arguments do not lead out of it.
func TestACommandStaysInItsFolder(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	real, flip := filepath.Join(g.work, "real"), filepath.Join(g.work, "flip")
	g.link(real, flip)
	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(300 * time.Microsecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			target := real
			if n%2 == 0 {
				target = "/etc"
			}
			if os.Symlink(target, flip+".next") != nil || os.Rename(flip+".next", flip) != nil {
				return
			}
		}
	}()
	for range 15 {
		switch r := g.site.Run("run", "--cwd", flip, "--wait", "60s", "--", "pwd", "-P"); {
		case r.Code == 0 && strings.TrimSpace(r.Stdout) != real:
			t.Errorf("it ran elsewhere: %s", r)
		case r.Code != 0 && r.Code != 77 && r.Code != 75 && r.Code != 125:
			t.Errorf("neither run nor refused: %s", r)
		}
	}
	close(stop)
	<-done
	if _, err := os.Lstat(flip); err != nil {
		t.Fatalf("the folder was not exchanged: %v", err)
	}
	g.link(real, flip)
	if r := g.site.Must(0, "run", "--cwd", flip, "--", "pwd", "-P"); strings.TrimSpace(r.Stdout) != real {
		t.Errorf("want the real folder: %s", r)
	}

	if err := os.WriteFile(filepath.Join(real, "own"), []byte("own\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := g.site.Must(0, "run", "--cwd", real, "--", "cat", "own"); r.Stdout != "own\n" {
		t.Errorf("a file of its own: %s", r)
	}
	up := strings.Repeat("../", strings.Count(real, "/")) + "etc/hostname"
	for _, outside := range []string{up, "/etc/hostname", "x/../" + up} {
		g.site.Must(77, "run", "--cwd", real, "--", "cat", outside)
	}
	id := strings.TrimSpace(g.site.Must(0, "propose", "--cwd", filepath.Join(g.work, "missing"), "--", "pwd").Stdout)
	lab.Eventually(t, "a worker to say that there is no such folder", func() bool { return len(show(t, g.site, id).Declines) > 0 })
	if j := show(t, g.site, id); j.Status == lifecycle.Approved || !strings.Contains(j.Declines[0].Reason, "no such working directory") {
		t.Errorf("%s, declined %+v", j.Status, j.Declines)
	}
}

// Denied arguments are denied in every spelling and order, and nothing else is.
func TestDeniedArgumentsInEverySpelling(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for line, code := range map[string]int{
		"git clean -f": 77, "git clean -xdf": 77, "git clean --forc": 77, "git reset --har": 77, "git -c alias.x=!id x": 77,
		"git -calias.x=!id x": 77, "git --exec-path=. x": 77, "git push origin --force=x": 77,
		"git log the-rfc": 75, "git show a--force": 75, "git add -- -f": 75, "git log --format=x": 75,
	} {
		g.site.Must(code, append([]string{"assess", "--"}, strings.Fields(line)...)...)
	}
	g.site.Must(75, "assess", "--", "git", "commit", "-m", "never --force")
}

// What looks like reading a repository runs what the repository names. No rule of
// a new site lets that happen unasked, and a rule that does is called broad.
func TestReadingARepositoryRunsNothingUnasked(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up()
	repo := t.TempDir()
	mark, monitor := filepath.Join(repo, "ran"), filepath.Join(repo, "monitor.sh")
	if err := os.WriteFile(monitor, []byte("#!/bin/sh\ntouch "+mark+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"config", "core.fsmonitor", monitor}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
	}
	for _, args := range [][]string{{"status"}, {"diff"}, {"log"}, {"grep", "x"}} {
		propose(t, s, append([]string{"--cwd", repo, "--", "git"}, args...)...)
	}
	if exists(mark) {
		t.Error("the repository's program ran before anybody said yes")
	}
	broad := policyFile(t, "[[rule]]\nid = \"look\"\nprogram = \"git\"\nargs = [\"status\"]\nexact = true\ndecision = \"allow\"\n")
	if r := s.Must(0, "policy", "check", broad); !strings.Contains(r.Stdout+r.Stderr, "look") || !strings.Contains(r.Stdout+r.Stderr, "repository") {
		t.Errorf("want a warning: %s", r)
	}
}

// What lies in the store is not believed: a command that is changed there after
// its approval does not run.
func TestACommandChangedInTheStoreDoesNotRun(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	const honest, altered = "mark-that-is-honest", "mark-that-is-altered"
	id := g.ask("touch", honest)
	g.again("--without", "worker")
	g.site.Must(0, "approve", id)
	g.up.Stop()
	changed := 0
	err := filepath.WalkDir(g.site.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(honest)) {
			return err
		}
		changed++
		return os.WriteFile(path, bytes.ReplaceAll(text, []byte(honest), []byte(altered)), 0o600)
	})
	if err != nil || changed == 0 {
		t.Fatalf("%d files of the store were changed: %v", changed, err)
	}
	g.up = g.site.Start("up", "--log-level", "info")
	lab.Eventually(t, "the auditor to close dispatch", func() bool {
		return strings.Contains(g.site.Run("status", "--json").Stdout, "dispatch is closed")
	})
	if r := g.site.Run("audit", "verify"); r.Code == 0 {
		t.Errorf("the log verifies: %s", r)
	}
	for _, mark := range []string{honest, altered} {
		if exists(filepath.Join(g.work, mark)) {
			t.Errorf("%s: it ran", mark)
		}
	}
}

// Nothing in the folder where an agent works becomes part of banksman: neither
// programs nor configuration that happen to lie there.
func TestTheWorkspaceIsNoPartOfBanksman(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up()
	dir := t.TempDir()
	mark := filepath.Join(dir, "ran")
	for _, name := range []string{"git", "sh", "bash", "claude", "nats", "banksman-worker", "banksman-proposer"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ntouch "+mark+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"banksman.toml": "[site]\norigin = \"theirs\"\n", "policy.toml": "version = 1\n[[rule]]\nid = \"all\"\nprogram = \"id\"\nexact = true\ndecision = \"allow\"\n", ".env": "BANKSMAN_DIR=" + dir + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"doctor"}, {"status"}, {"ls"}, {"inbox"}, {"policy", "show"}, {"audit", "verify"}, {"hook", "install", "claude", "--dry-run"}, {"assess", "--", "id"}, {"run", "--", "git", "--version"}, {"mcp"},
	} {
		cmd := s.Command(t.Context(), args...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "PATH=.:"+dir+"/../"+filepath.Base(dir)+"/nowhere::"+os.Getenv("PATH"))
		out, _ := cmd.CombinedOutput()
		if strings.Contains(string(out), "theirs") {
			t.Errorf("%q: another site was found: %s", args, out)
		}
	}
	if exists(mark) {
		t.Error("a program of the workspace ran")
	}
	if r := s.Must(75, "assess", "--json", "--", "id"); strings.Contains(r.Stdout, `"all"`) {
		t.Errorf("a policy of the workspace decides: %s", r)
	}
}
