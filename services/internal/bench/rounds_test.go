package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/site"
)

// rounds of the measurement; one second lies between two.
const rounds = 8

// rounds measures what the supervisor itself spends on a round whose agent does
// nothing.
func (r *run) rounds() {
	program := filepath.Join(r.bins, "banksman-supervisor")
	if _, err := os.Stat(program); err != nil {
		return
	}
	r.t.Run("rounds", func(t *testing.T) {
		s := r.site(t)
		dir := t.TempDir()
		for _, argv := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "first"}} {
			cmd := exec.Command("git", argv...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v\n%s", argv, err, out)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "prompt.md"), []byte("nothing\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		project(t, s, fmt.Sprintf("\n[projects.idle]\nwork_dir = %q\nagent = [\"/bin/true\"]\nprompt_file = \"prompt.md\"\nrestart_delay_s = 1\nmax_rounds = %d\n", dir, rounds))
		s.Up("--without", "supervisor")
		floor := spawns(t, calls, nil, "/bin/true").at(0.5)
		cmd := exec.Command(program, "--dir", s.Dir, "--log-level", "warn")
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Signal(os.Interrupt)
			cmd.Wait()
		})
		s.Ready()
		own, children := cpu(t, cmd.Process.Pid)
		lab.Eventually(t, "the loop to halt after its last round", func() bool { return halted(t, s) })
		ownAfter, childrenAfter := cpu(t, cmd.Process.Pid)
		spent := (ownAfter - own + childrenAfter - children) / rounds
		r.add(figure{
			What: "supervisor, cpu a round", Value: inMS(spent), Unit: milliseconds, Floor: inMS(floor), Of: "/bin/true", Ratio: float64(spent) / float64(floor),
			Goal: "<= 10 ms", Met: spent <= 10*time.Millisecond, Note: fmt.Sprintf("%v of it its own", (ownAfter-own)/rounds),
		})
	})
}

// project adds a table to the site's configuration.
func project(t *testing.T, s *lab.Site, table string) {
	t.Helper()
	file, err := os.OpenFile(site.Layout{Dir: s.Dir}.Config(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(table)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		t.Fatal(err)
	}
}

// halted says that the site's one loop has come to its end.
func halted(t *testing.T, s *lab.Site) bool {
	t.Helper()
	return strings.Contains(s.Must(0, "events", "--json").Stdout, `"kind":"loop.halted"`)
}
