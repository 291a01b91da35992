package front_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/view"
)

// TestEvidenceLeavesTheSite: what a job was leaves a live site as files, and is
// verified where no site is, by banksman and by a shell.
func TestEvidenceLeavesTheSite(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	s.Must(0, "run", "--", "git", "--version")
	var list view.List
	s.Must(0, "ls", "--json").JSON(t, &list)
	job, out := list.Jobs[0].Job, t.TempDir()
	bundle, anchor := filepath.Join(out, "bundle"), filepath.Join(out, "anchor")
	s.Must(0, "audit", "verify") // waits for the seal of the job's end
	s.Must(0, "audit", "export", job, "--to", bundle)
	s.Must(1, "audit", "export", job, "--to", bundle)
	s.Must(0, "audit", "anchor", "--file", anchor)
	if r := s.Must(0, "audit", "prove", job[:20]); !strings.Contains(r.Stdout, "c2sp.org/tlog-proof@v1\nindex ") {
		t.Errorf("no proofs: %s", r)
	}
	s.Must(0, "run", "--", "git", "--version")
	s.Must(0, "audit", "verify", "--checkpoint", anchor)
	if r := s.Must(0, "audit", "rebuild"); !strings.Contains(r.Stdout, "log: same, ") || !strings.Contains(r.Stdout, "index: in use") {
		t.Errorf("rebuild: %s", r)
	}
	s.Must(1, "audit", "rebuild", "--replace")
	if r := s.Must(0, "audit", "drill", "--live"); !strings.Contains(r.Stdout, " attacks on copies of the log") {
		t.Errorf("drill on a copy: %s", r)
	}
	if code := up.Stop(); code != 0 {
		t.Errorf("up exited %d", code)
	}
	s.Must(0, "audit", "export", "--tiles", filepath.Join(out, "tiles"))

	origin, root := s.Setting("site", "origin"), s.Setting("site", "root_key")
	origin, root = strings.Trim(origin, `"`), strings.Trim(root, `"`)
	away := exec.Command(binary, "audit", "verify", "--bundle", bundle, "--origin", origin, "--root-key", root, "--dir", filepath.Join(out, "nowhere"))
	if text, err := away.CombinedOutput(); err != nil {
		t.Errorf("away from the site: %v: %s", err, text)
	}
	if _, err := exec.LookPath("xxd"); err == nil {
		if text, err := exec.Command("../../scripts/verify.sh", bundle, origin, root).CombinedOutput(); err != nil {
			t.Errorf("the shell: %v: %s", err, text)
		}
	} else if os.Getenv("BANKSMAN_REQUIRE") == "1" {
		t.Error("xxd is missing")
	}
	s.Must(2, "audit", "verify", "--origin", origin, "--root-key", root)
	s.Must(0, "audit", "drill")
}
