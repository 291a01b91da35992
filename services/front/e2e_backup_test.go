package front_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// TestBackupIsRestored: a site is backed up while it runs and again while it is stopped,
// goes on, is lost, and is made again elsewhere. What was open is decided there; what came
// after the backup is missing, and everybody can see that it is.
func TestBackupIsRestored(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	ended := proposed(t, s, "--", "git", "--version")
	becomes(t, s, ended, lifecycle.Succeeded)
	said := s.Must(0, "replay", ended).Stdout
	ran := filepath.Join(t.TempDir(), "ran")
	waits := proposed(t, s, "--reason", "because it must be", "--", "touch", ran)
	pending(t, s)
	s.Must(0, "audit", "verify") // waits for the seal

	safe := filepath.Join(t.TempDir(), "safe")
	if err := os.Mkdir(safe, 0o700); err != nil {
		t.Fatal(err)
	}
	file, later := filepath.Join(safe, "site.backup"), filepath.Join(safe, "later.backup")
	s.Must(0, "backup", "--to", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", info.Mode(), err)
	}
	s.Must(1, "backup", "--to", file)
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if r := s.Must(1, "backup", "--to", filepath.Join(open, "x")); !strings.Contains(r.Stderr, "0700") {
		t.Errorf("a folder that others may read: %s", r)
	}
	becomes(t, s, proposed(t, s, "--", "git", "--version"), lifecycle.Succeeded)
	s.Must(0, "audit", "verify")
	kept := filepath.Join(safe, "kept")
	s.Must(0, "audit", "anchor", "--file", kept)
	up.Stop()
	s.Must(0, "backup", "--to", later)

	spoilt(t, file, func() { s.Must(1, "restore", "--from", file, "--to", filepath.Join(safe, "spoilt")) })
	s.Must(1, "restore", "--from", file, "--to", s.Dir)
	again := s.Elsewhere(filepath.Join(safe, "again"))
	s.Must(0, "restore", "--from", file, "--to", again.Dir)
	if left, _ := filepath.Glob(filepath.Join(safe, ".banksman-*")); len(left) > 0 {
		t.Errorf("drafts are left behind: %v", left)
	}
	back := again.Up()
	if j := show(t, again, waits); j.Reason != "because it must be" {
		t.Errorf("the reason is %q", j.Reason)
	}
	again.Must(0, "approve", waits)
	becomes(t, again, waits, lifecycle.Succeeded)
	if now := again.Must(0, "replay", ended).Stdout; now != said {
		t.Errorf("the output of the ended job is %q, was %q", now, said)
	}
	var r epochs
	again.Must(0, "audit", "verify", "--json").JSON(t, &r)
	if len(r.Epochs) != 1 || r.Epochs[0].EndedBy != "restored" {
		t.Errorf("epochs: %+v", r.Epochs)
	}
	if r := again.Must(1, "audit", "verify", "--checkpoint", kept); !strings.Contains(r.Stdout, "lost range") {
		t.Errorf("a kept head that is newer than the backup: %s", r)
	}
	back.Stop()

	s.Must(0, "restore", "--from", later, "--to", filepath.Join(safe, "later"))
	whole, err := os.ReadFile(later)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Clone(whole[:len(whole)/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Must(1, "restore", "--from", file, "--to", filepath.Join(safe, "half"))
}
