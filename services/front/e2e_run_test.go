package front_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/view"
)

// The first whole path: an agent asks, policy and a person decide, a worker
// runs, the auditor proves.
func TestAskDecideRunProve(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	lab.Eventually(t, "up to say where things are and three commands to try", func() bool {
		return strings.Contains(up.Stdout(), "banksman is up in "+s.Dir) && strings.Count(up.Stdout(), "\n  banksman ") == 3
	})

	t.Run("allowed by a rule", func(t *testing.T) {
		r := s.Must(0, "run", "--", "git", "--version")
		if !strings.HasPrefix(r.Stdout, "git version ") || r.Stderr != "" {
			t.Errorf("want git's own output alone: %s", r)
		}
	})
	t.Run("approved from another terminal", func(t *testing.T) {
		p := s.Start("run", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
		j := pending(t, s)
		s.Must(0, "approve", j.Job)
		if code := p.Wait(); code != 7 {
			t.Fatalf("run exited %d, want the command's 7", code)
		}
		if p.Stdout() != "out\n" {
			t.Errorf("stdout %q, want %q", p.Stdout(), "out\n")
		}
		var own []string
		for line := range strings.Lines(p.Stderr()) {
			if !strings.HasPrefix(line, "banksman: ") {
				own = append(own, line)
			}
		}
		if len(own) != 1 || own[0] != "err\n" {
			t.Errorf("stderr beside banksman's lines is %q, want %q", own, "err\n")
		}
		checkShown(t, show(t, s, j.Job))
	})
	t.Run("denied by a person", func(t *testing.T) {
		p := s.Start("run", "--", "sh", "-c", "echo never")
		j := pending(t, s)
		s.Must(2, "deny", j.Job)
		s.Must(0, "deny", j.Job, "--reason", "not on a Sunday")
		if code := p.Wait(); code != 77 {
			t.Fatalf("run exited %d, want 77", code)
		}
		if !strings.Contains(p.Stderr(), "not on a Sunday") || p.Stdout() != "" {
			t.Errorf("the reason did not reach the caller: %q %q", p.Stdout(), p.Stderr())
		}
		r := s.Must(1, "approve", "--json", j.Job)
		if !strings.Contains(r.Stderr, `"already_decided"`) {
			t.Errorf("want a coded refusal: %s", r)
		}
	})
	t.Run("pending past the wait", func(t *testing.T) {
		r := s.Must(75, "run", "--wait", "1s", "--", "sh", "-c", "echo later")
		j := pending(t, s)
		if !strings.Contains(r.Stderr, "banksman approve "+j.Job) || !strings.Contains(r.Stderr, "banksman show "+j.Job) {
			t.Errorf("want how to go on: %s", r)
		}
		s.Must(0, "approve", j.Job[:20])
		lab.Eventually(t, "the job to end", func() bool { return show(t, s, j.Job).Status == lifecycle.Succeeded })
		if got := show(t, s, j.Job).Result.Stdout; got != "later\n" {
			t.Errorf("output %q", got)
		}
	})
	t.Run("denied at once", func(t *testing.T) {
		var j view.Detail
		r := s.Must(77, "propose", "--json", "--", "rm", "-rf", "/")
		r.JSON(t, &j)
		if j.Status != lifecycle.Denied || j.Ruling == nil || j.Ruling.Reason == "" || !strings.Contains(r.Stderr, j.Ruling.Reason) {
			t.Errorf("want denied with the reason: %s", r)
		}
		s.Must(77, "run", "--", "no-such-rule-names-this")
	})

	var list view.List
	s.Must(0, "ls", "--json").JSON(t, &list)
	if len(list.Jobs) != 6 {
		t.Errorf("ls shows %d jobs, want 6", len(list.Jobs))
	}
	s.Must(0, "audit", "verify")
	if code := up.Stop(); code != 0 {
		t.Errorf("up exited %d after SIGTERM, want 0", code)
	}
	s.Must(75, "status")
	var v verdicts
	s.Must(0, "audit", "verify", "--json").JSON(t, &v)
	if !v.Integrity.OK || !v.Authenticity.OK || !v.Completeness.OK || !v.Freshness.OK || v.Size < 20 || v.Root == "" {
		t.Errorf("offline verdicts %+v", v)
	}
}

// checkShown looks at the members that show --json promises.
func checkShown(t *testing.T, j view.Detail) {
	t.Helper()
	if len(j.Approvals) != 1 || j.Approvals[0].Basis != "person" || len(j.Attempts) != 1 || j.Resolution == nil || j.Resolution.Program.SHA256 == "" {
		t.Errorf("approvals, attempts or resolution are missing: %+v", j)
	}
	r := j.Result
	if r == nil || r.ExitCode != 7 || r.Signal != "" || r.Stdout != "out\n" || r.Stderr != "err\n" {
		t.Errorf("result %+v", r)
	}
}

// A denial needs no worker; everything else waits for one.
func TestWithoutWorker(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up("--without", "worker")
	s.Must(77, "run", "--", "rm", "-rf", "/")
	s.Must(0, "propose", "--", "git", "--version")
	j := pending(t, s)
	if !j.Unresolved {
		t.Errorf("want the job marked unresolved: %+v", j)
	}
	r := s.Must(75, "approve", "--json", j.Job)
	if !strings.Contains(r.Stderr, `"unresolved"`) {
		t.Errorf("want a coded refusal: %s", r)
	}
	s.Must(0, "deny", j.Job, "--reason", "no worker")
}

// What runs is what was approved: a script that changes in between is not run.
func TestChangedScriptIsNotRun(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up()
	dir := t.TempDir()
	script, mark := filepath.Join(dir, "job.sh"), filepath.Join(dir, "ran")
	write := func(text string) {
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("echo harmless\n")
	s.Must(0, "propose", "--cwd", dir, "--", "sh", script)
	j := pending(t, s)
	write("touch " + mark + "\n")
	s.Must(0, "approve", j.Job)
	lab.Eventually(t, "the job to be dead-lettered", func() bool { return show(t, s, j.Job).Status == lifecycle.DeadLetter })
	if d := show(t, s, j.Job); !strings.Contains(d.Ending, script) {
		t.Errorf("the ending does not name the script: %q", d.Ending)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the changed script ran")
	}
}
