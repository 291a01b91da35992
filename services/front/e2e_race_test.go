package front_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// rounds is how often a race is run: often enough to see it go either way, and many
// times more under soak.
func rounds(few, many int) int {
	if os.Getenv("BANKSMAN_SOAK") == "1" {
		return many
	}
	return few
}

// However many processes ask with one key at the same moment, there is one job, and
// nobody is told of an error.
func TestOneKeyFromManyProcesses(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	many := *s
	many.Bin = unraced
	const callers = 160
	var all []*lab.Process
	for range callers {
		all = append(all, many.Start("propose", "--key", "release-7", "--", "echo", "once"))
	}
	ids := map[string]int{}
	for _, p := range all {
		if code := p.Wait(); code != 0 {
			t.Errorf("exit %d: %s", code, p.Stderr())
		}
		ids[strings.TrimSpace(p.Stdout())]++
	}
	if len(ids) != 1 {
		t.Fatalf("one key made %d jobs: %v", len(ids), ids)
	}
	if list := s.Must(0, "ls", "--json").Stdout; strings.Count(list, `"job": `) != 1 {
		t.Errorf("want one job: %s", list)
	}
	if r := s.Must(1, "propose", "--json", "--key", "release-7", "--", "echo", "twice"); !strings.Contains(r.Stderr, `"idempotency_conflict"`) {
		t.Errorf("want a conflict: %s", r)
	}
	s.Must(0, "audit", "verify")
}

// When two persons say yes and no to a job at the same moment, one of them has
// decided it, the other is told so, and what happens is what was decided.
func TestTwoPersonsDecideAtOnce(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	s.Must(0, "actor", "add", "p2", "--role", "person")
	first, second := *s, *as(t, s, "p2")
	first.Bin, second.Bin = unraced, unraced
	won := map[string]int{}
	for n := range rounds(6, 200) {
		id := propose(t, s, "--", "echo", fmt.Sprint(n))
		yes := first.Start("approve", "--json", id)
		no := second.Start("deny", "--json", "--once", "--reason", "not this one", id)
		said := [2]int{yes.Wait(), no.Wait()}
		var loser *lab.Process
		want := lifecycle.Succeeded
		switch said {
		case [2]int{0, 1}:
			loser = no
			won["yes"]++
		case [2]int{1, 0}:
			loser, want = yes, lifecycle.Denied
			won["no"]++
		default:
			t.Fatalf("round %d: the yes exited %d, the no %d\n%s\n%s", n, said[0], said[1], yes.Stderr(), no.Stderr())
		}
		if !strings.Contains(loser.Stderr(), `"already_decided"`) {
			t.Errorf("round %d: the slower one was told %s", n, loser.Stderr())
		}
		if j := until(t, s, id, want); want == lifecycle.Denied && len(j.Attempts) != 0 {
			t.Errorf("round %d: denied and started", n)
		}
	}
	t.Logf("who was first: %v", won)
	s.Must(0, "audit", "verify")
}

// A yes, a no, a cancellation and the end of the request's time may all come at once:
// the job ends in one way, never runs unless the yes was first, and no event that the
// life of a job forbids is stored.
func TestFourEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	fast := *s
	fast.Bin = unraced
	ends := map[lifecycle.Status]int{}
	for n := range rounds(4, 200) {
		id := strings.TrimSpace(s.Must(0, "propose", "--expires", "2s", "--", "echo", fmt.Sprint(n)).Stdout)
		var said []*lab.Process
		for _, verb := range [][]string{{"approve"}, {"deny", "--once", "--reason", "not this one"}, {"cancel", "--reason", "not needed"}} {
			said = append(said, fast.Start(append(verb, "--json", id)...))
		}
		for _, p := range said {
			p.Wait()
		}
		var j view.Detail
		lab.Eventually(t, "job "+id+" to end", func() bool {
			j = show(t, s, id)
			return j.Status.Final()
		})
		ends[j.Status]++
		switch ran := len(j.Attempts) > 0; j.Status {
		case lifecycle.Succeeded:
			if !ran || said[0].Wait() != 0 {
				t.Errorf("round %d: it ran with %d attempts, the yes was told %s", n, len(j.Attempts), said[0].Stderr())
			}
		case lifecycle.Denied, lifecycle.Expired:
			if ran || said[0].Wait() == 0 {
				t.Errorf("round %d: %s with %d attempts, the yes exited %d", n, j.Status, len(j.Attempts), said[0].Wait())
			}
		case lifecycle.Cancelled: // before a decision, after the yes, or while it ran
		default:
			t.Errorf("round %d: it is %s: %s", n, j.Status, j.Ending)
		}
	}
	t.Logf("how they ended: %v", ends)
	s.Must(0, "audit", "verify")
	var status query.AuditStatus
	if s.Must(0, "audit", "status", "--json").JSON(t, &status); status.Violations != 0 {
		t.Errorf("%d events broke a rule", status.Violations)
	}
}
