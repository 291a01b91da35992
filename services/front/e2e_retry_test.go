package front_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/view"
)

// Attempts that failed are made again as the rules say, each after its pause. All
// roles are restarted while jobs wait for their next attempt: the due time is in
// the event, where everybody sees it, and nothing shortens or forgets it.
func TestRetriesOutliveEveryRole(t *testing.T) {
	t.Parallel()
	const pause = 8 * time.Second
	f, y := newFleet(t)
	f.Site.Set("worker", "retry_first_s", "8")
	f.Site.Set("worker", "retry_exits", "[75]")
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	again, never, slow, once := y.Job("again", "fails", "75", "1"), y.Job("never", "fails", "3", "9"), y.Job("slow", "lasts", "600"), y.Job("once", "fails", "75", "9")
	again.MaxAttempts, never.MaxAttempts, slow.MaxAttempts, slow.TimeoutS = 3, 3, 2, 1
	f.Site.Propose(again, never, slow, once)
	waiting := o.Await("again", lifecycle.RetryWait)
	due := waiting.RetryAt()
	if gap := due.Sub(waiting.Current().EndedAt); gap < pause-time.Second || gap > pause+pause/4+time.Second {
		t.Errorf("the next attempt is due %v after the first", gap)
	}
	var d view.Detail
	f.Site.Must(0, "show", "--json", waiting.ID).JSON(t, &d)
	if !d.RetryAt.Equal(due) {
		t.Errorf("show says %v, the event %v", d.RetryAt, due)
	}
	for _, verb := range [][]string{{"show", waiting.ID}, {"ls", "--status", "retry_wait"}} {
		if r := f.Site.Must(0, verb...); !strings.Contains(r.Stdout, "again at "+due.UTC().Format(time.RFC3339)) {
			t.Errorf("it does not say when: %s", r)
		}
	}
	o.Await("never", lifecycle.Failed) // its status is not among those that are tried again
	o.Await("once", lifecycle.Failed)  // it was approved for one attempt
	o.Await("slow", lifecycle.RetryWait)
	for _, m := range slices.Backward(lab.Roles[:]) {
		f.Kill(m)
	}
	f.Up(lab.Roles[:]...)
	o.Await("again", lifecycle.Succeeded)
	o.Await("slow", lifecycle.TimedOut)
	for name, attempts := range map[string]int{"again": 2, "slow": 2, "never": 1, "once": 1} {
		j := o.Job(name)
		if len(j.Attempts) != attempts || y.Count("starts", name) != attempts {
			t.Errorf("%s has %d attempts and %d executions, want %d", name, len(j.Attempts), y.Count("starts", name), attempts)
		}
		if attempts == 2 && j.Attempts[1].StartedAt.Before(j.Attempts[0].EndedAt.Add(pause-time.Second)) {
			t.Errorf("%s was started again %v after its first attempt", name, j.Attempts[1].StartedAt.Sub(j.Attempts[0].EndedAt))
		}
	}
	o.Check(y, []string{"again", "never", "slow", "once"})
}
