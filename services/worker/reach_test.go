package worker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/proc"
)

// A job writes where its worker lets jobs write, and nowhere else; its start says
// what kept it there.
func TestJobKeepsToItsReach(t *testing.T) {
	if _, err := proc.Landlock(); err != nil {
		need.Missing(t, "%v", err)
	}
	y := newYard(t, rules)
	scratch := t.TempDir() // not below the job's folder
	j, got := ranAs(y, `echo here > in; cat in; touch "$TMPDIR/t" && echo tmp; (echo x > ../out) 2>&1; touch "$HOME/h" 2>&1; echo over`, func(c *Config) {
		c.Scratch, c.ReachWrite = scratch, []string{"{cwd}", "{tmp}"}
	})
	if j.Status != lifecycle.Succeeded || !strings.HasPrefix(got, "here\ntmp\n") || !strings.HasSuffix(got, "over\n") || strings.Count(got, "Permission denied") != 2 {
		t.Errorf("status %q, output %q, %+v", j.Status, got, j.Current().Result)
	}
	if _, err := os.Stat(filepath.Join(j.Resolution.Cwd, "..", "out")); err == nil {
		t.Error("the job has written outside its reach")
	}
	if walls := j.Current().Started.Walls; !slices.Contains(walls, wallLandlock) {
		t.Errorf("the start names the walls %q", walls)
	}
	nothingIn(t, scratch)
}

// What a job is to reach and does not exist is said, and nothing is executed.
func TestReachThatIsMissingStartsNothing(t *testing.T) {
	y := newYard(t, rules)
	j, _ := ranAs(y, "echo > ran", func(c *Config) { c.ReachWrite = []string{"{cwd}", "/no/such/folder"} })
	if r := j.Current().Result; r == nil || r.ExitCode != 126 || !strings.Contains(r.Error, "reach_write in [worker]") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(j.Resolution.Cwd, "ran")); err == nil {
		t.Error("it ran")
	}
}
