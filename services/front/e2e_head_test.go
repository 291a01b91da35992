package front_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// TestFolderOfTheAuditorGoesBack: somebody puts an older copy of everything that is the
// auditor's back, with the head that the log is compared with. The bus still knows the
// newer one: nothing starts any more until the log was made again from the stream and an
// administrator has acknowledged it.
func TestFolderOfTheAuditorGoesBack(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	becomes(t, s, proposed(t, s, "--", "git", "--version"), lifecycle.Succeeded)
	s.Must(0, "audit", "verify")
	up.Stop()
	state, kept := filepath.Join(s.Dir, "state"), t.TempDir()
	folders := []string{"audit", "head"}
	for _, f := range folders {
		private(t, filepath.Join(kept, f), filepath.Join(state, f))
	}
	up = s.Up()
	becomes(t, s, proposed(t, s, "--", "git", "--version"), lifecycle.Succeeded)
	s.Must(0, "audit", "verify")
	up.Stop()
	for _, f := range folders {
		if err := os.RemoveAll(filepath.Join(state, f)); err != nil {
			t.Fatal(err)
		}
		private(t, filepath.Join(state, f), filepath.Join(kept, f))
	}
	s.Must(0, "audit", "relock") // no word of anybody makes the bus forget

	up = s.Start("up")
	lab.Eventually(t, "the auditor to say what it is", func() bool {
		return strings.Contains(s.Run("status", "--json").Stdout, "integrity fault rollback")
	})
	lab.Eventually(t, "the fault on the stream", func() bool {
		return strings.Contains(s.Run("events", "--json").Stdout, "went back in time")
	})
	up.Stop()

	if err := os.Rename(filepath.Join(state, "audit", "log"), filepath.Join(t.TempDir(), "log")); err != nil {
		t.Fatal(err)
	}
	bus := s.Start("bus")
	lab.Eventually(t, "the bus to have the log made again", func() bool { return s.Run("audit", "rebuild", "--replace").Code == 0 })
	bus.Stop()
	s.Start("up")
	lab.Eventually(t, "an acknowledgement to be taken", func() bool { return s.Run("audit", "ack", "--reason", "made again from the stream").Code == 0 })
	s.Ready()
	becomes(t, s, proposed(t, s, "--", "git", "--version"), lifecycle.Succeeded)
	s.Must(0, "audit", "verify")
}

// private copies a folder that only its owner may enter.
func private(t *testing.T, to, from string) {
	t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
			mode := os.FileMode(0o600)
			if err == nil && d.IsDir() {
				mode = 0o700
			}
			return errors.Join(err, os.Chmod(path, mode))
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}
