package front_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	verifiesAlone(t, bundle, origin, root)
	verdictsApart(t, s, bundle, origin, root)
}

// verifiesAlone verifies the bundle where there is no network and nothing in the
// environment that says where anything is.
func verifiesAlone(t *testing.T, bundle, origin, root string) {
	t.Helper()
	if err := exec.Command("unshare", "-rn", "true").Run(); err != nil {
		t.Logf("no network namespace of one's own: %v", err)
		return
	}
	script, err := filepath.Abs("../../scripts/verify.sh")
	if err != nil {
		t.Fatal(err)
	}
	for what, args := range map[string][]string{
		"banksman":  {binary, "audit", "verify", "--bundle", bundle, "--origin", origin, "--root-key", root},
		"the shell": {script, bundle, origin, root},
	} {
		if what == "the shell" {
			if _, err := exec.LookPath("xxd"); err != nil {
				continue
			}
		}
		cmd := exec.Command("unshare", append([]string{"-rn"}, args...)...)
		cmd.Env, cmd.Dir = []string{"PATH=/usr/bin:/bin"}, t.TempDir()
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s, without a network: %v: %s", what, err, text)
		}
	}
}

// verdictsApart spoils one thing at a time and wants exactly its verdict to fall, in the
// exit code and in what programs read; the forged event of another test is the fourth.
func verdictsApart(t *testing.T, s *lab.Site, bundle, origin, root string) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "log")
	part := filepath.Join(t.TempDir(), "bundle")
	if err := errors.Join(os.CopyFS(copied, os.DirFS(filepath.Join(s.Dir, "state", "audit", "log"))), os.CopyFS(part, os.DirFS(bundle))); err != nil {
		t.Fatal(err)
	}
	ofBundle := []string{"audit", "verify", "--json", "--bundle", part, "--origin", origin, "--root-key", root}
	ofLog := []string{"audit", "verify", "--json", "--log", copied}
	expect := func(code int, fallen string, args ...string) {
		t.Helper()
		var r struct {
			verdicts
			FirstBadLeaf *int64 `json:"first_bad_leaf"`
		}
		s.Must(code, args...).JSON(t, &r)
		got := ""
		for letter, ok := range map[string]bool{"i": r.Integrity.OK, "a": r.Authenticity.OK, "c": r.Completeness.OK, "f": r.Freshness.OK} {
			if !ok {
				got += letter
			}
		}
		if got != fallen || (r.FirstBadLeaf != nil) != (fallen == "i") {
			t.Errorf("%v: verdicts %q fell, want %q, first bad leaf %v", args, got, fallen, r.FirstBadLeaf)
		}
	}
	expect(0, "", ofLog...)
	expect(0, "", ofBundle...)
	expect(3, "f", append(ofLog, "--max-age", "1ns")...)
	expect(3, "f", append(ofBundle, "--max-age", "1ns")...)
	raw, err := os.ReadFile(filepath.Join(copied, "raw.log"))
	if err != nil {
		t.Fatal(err)
	}
	raw[bytes.LastIndex(raw, []byte("--version"))+2] = 'w' // in a payload
	if err := os.WriteFile(filepath.Join(copied, "raw.log"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(1, "i", ofLog...)
	entries, err := filepath.Glob(filepath.Join(part, "*.entry"))
	if err != nil || len(entries) < 3 {
		t.Fatal(entries, err)
	}
	last := int64(0)
	for _, e := range entries {
		leaf, _ := strconv.ParseInt(strings.TrimSuffix(filepath.Base(e), ".entry"), 10, 64)
		last = max(last, leaf)
	}
	files, _ := filepath.Glob(filepath.Join(part, strconv.FormatInt(last, 10)+".*"))
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	expect(1, "c", ofBundle...)
}
