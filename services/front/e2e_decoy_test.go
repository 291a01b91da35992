package front_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
)

// After a crash the id of the process that has died may belong to a stranger, and
// a file may still say it. Starting, looking and stopping hit nobody but banksman.
func TestStrangerWithAnOldIDIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	up.Kill()
	stranger := exec.Command("sleep", "300")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Process.Kill() })
	old, now := strconv.Itoa(up.Pid()), strconv.Itoa(stranger.Process.Pid)
	changed := 0
	err := filepath.WalkDir(s.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) > 4096 || !strings.Contains(string(text), "process "+old+" ") {
			return err
		}
		changed++
		return os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, now)), 0o600)
	})
	if err != nil || changed == 0 {
		t.Fatalf("no file names the process that has died: %v", err)
	}
	s.Must(75, "status")
	if code := s.Up().Stop(); code != 0 {
		t.Errorf("up exited %d", code)
	}
	_ = stranger.Process.Signal(syscall.SIGINT) // which nobody else sends
	var status *exec.ExitError
	if err := stranger.Wait(); !errors.As(err, &status) || status.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("the stranger was hit: %v", err)
	}
}
