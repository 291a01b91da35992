package front_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// A dry run shows what a worker would execute, within which limits and walls, and
// what policy says, and leaves nothing behind: no job, no process, no file.
func TestDryRunShowsAndStartsNothing(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Set("worker", "limit_cpu_s", "77")
	s.Set("worker", "secrets", `{ DB = "file:/etc/hostname" }`)
	up := s.Up()
	dir := t.TempDir()
	script := filepath.Join(dir, "job.sh")
	if err := os.WriteFile(script, []byte("touch ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var d query.DryRun
	s.Must(75, "run", "--dry-run", "--json", "--cwd", dir, "--timeout", "90s", "--env", "STAGE=prod", "--env", "PASS=secret:DB", "--", "sh", "job.sh").JSON(t, &d)
	real, err := filepath.EvalSymlinks(script)
	if err != nil {
		t.Fatal(err)
	}
	p := d.Preview
	if p == nil || p.Fault != nil || p.Worker != "worker" || len(p.Program.SHA256) != 64 || p.Cwd != filepath.Dir(real) || p.Bound != "fd" || p.Assessment.Verdict != "ask" {
		t.Fatalf("%+v, %+v", d, p)
	}
	if len(p.Files) != 1 || p.Files[0].Path != real || p.Limits.TimeoutS != 90 || p.Limits.CPUS != 77 || p.Limits.OutputBytes == 0 {
		t.Errorf("%+v", p)
	}
	if !slices.Contains(p.Env, "STAGE") || !slices.Contains(p.Env, "PATH") || slices.Contains(p.Env, "BANKSMAN_TOKEN") || !slices.Equal(p.Secrets, []string{"PASS"}) {
		t.Errorf("variables %q, secrets %q", p.Env, p.Secrets)
	}
	r := s.Must(75, "run", "--dry-run", "--cwd", dir, "--", "sh", "job.sh")
	for _, want := range []string{real, p.Program.SHA256, "77 s of processor", "ask (", "nothing was started"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("%q is not shown: %s", want, r)
		}
	}
	if r := s.Must(1, "run", "--dry-run", "--json", "--cwd", dir+"/none", "--", "git", "--version"); !strings.Contains(r.Stderr, `"no_such_dir"`) {
		t.Errorf("a folder that does not exist: %s", r)
	}
	if r := s.Must(1, "run", "--dry-run", "--json", "--env", "A=secret:NONE", "--", "git", "--version"); !strings.Contains(r.Stderr, `"unknown_secret"`) {
		t.Errorf("a secret that does not exist: %s", r)
	}
	if r := s.Must(77, "run", "--dry-run", "--", "rm", "-rf", "/"); !strings.Contains(r.Stdout, "deny (") {
		t.Errorf("what is denied: %s", r)
	}
	var list view.List
	s.Must(0, "ls", "--json").JSON(t, &list)
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil || len(list.Jobs) > 0 {
		t.Errorf("it ran, or %d jobs are stored", len(list.Jobs))
	}
	up.Stop()
	s.Up("--without", "worker")
	d = query.DryRun{}
	s.Must(0, "run", "--dry-run", "--json", "--", "git", "--version").JSON(t, &d)
	if d.Preview != nil || !strings.Contains(d.NoPreview, "no worker of pool default") {
		t.Errorf("without a worker: %+v", d)
	}
}
