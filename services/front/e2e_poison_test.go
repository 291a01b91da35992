package front_test

import (
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// A job kills what watches it and the worker behind that, and lives on. A worker
// that starts again ends it before anything else and says at once that the attempt
// lapsed; the job is started as often as was approved and no more, and others get
// through.
func TestPoisonStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Site.Set("worker", "lease_s", "3600") // what is said here is not said by waiting
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	poison := y.Job("poison", "poisons")
	poison.MaxAttempts, poison.RetrySafe = 3, true
	f.Site.Propose(poison, y.Job("once", "poisons"))
	names, healthy := series(y, "healthy", 3, "quick")
	for i := range healthy {
		healthy[i].MaxAttempts, healthy[i].RetrySafe = 10, true
	}
	for deaths := 0; ; deaths++ {
		o.Read()
		if o.Job("poison").Status.Final() && o.Job("once").Status.Final() {
			break
		}
		if deaths > 4 {
			t.Fatalf("the worker was killed %d times by two jobs with four attempts", deaths)
		}
		w := f.Member("worker")
		lab.Eventually(t, "the worker to die, or the poison to be spent", func() bool {
			o.Read()
			_, ended := w.Ended()
			return ended || o.Job("poison").Status.Final() && o.Job("once").Status.Final()
		})
		if _, ended := w.Ended(); ended {
			f.Start("worker")
		}
		if deaths == 0 {
			f.Site.Propose(healthy...)
		}
	}
	for name, attempts := range map[string]int{"poison": 3, "once": 1} {
		j := o.Job(name)
		if j.Status != lifecycle.Lost || len(j.Attempts) != attempts || j.Ending == "" {
			t.Errorf("%s is %s (%q) after %d attempts, want %d", name, j.Status, j.Ending, len(j.Attempts), attempts)
		}
		// Fewer where one of the two killed the worker before the other's program had begun.
		if n := y.Count("starts", name); n > attempts {
			t.Errorf("%s was executed %d times in %d attempts", name, n, attempts)
		}
	}
	if y.Count("starts", "poison")+y.Count("starts", "once") == 0 {
		t.Error("neither of the two was executed")
	}
	for _, name := range names {
		o.Await(name, lifecycle.Succeeded)
	}
	o.Check(y, append(names, "poison", "once"))
}
