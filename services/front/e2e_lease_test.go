package front_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// The only worker of a pool dies, and workers of another pool are none of its
// business. The gate says that the claims lapsed: a job that may not be run again
// is lost and may be retried by a person at once, and one that may waits for the
// next worker of its own pool.
func TestLastWorkerOfAPoolDies(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Site.Set("bus", "pools", `["default", "b"]`)
	f.Site.Set("gate", "expire_every_s", "1")
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	f.Site.Must(0, "actor", "add", "w2", "--role", "worker", "--pool", "b")
	outpost := f.Site.Outpost("w2")
	outpost.Set("worker", "actor", `"w2"`)
	outpost.Set("worker", "pool", `"b"`)
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	other := outpost.Fleet(dir)
	other.Up("worker")
	open := y.Close("gate")
	once, again := y.Job("once", "waits", "gate"), y.Job("again", "waits", "gate")
	once.Pool, again.Pool = "b", "b"
	again.MaxAttempts, again.RetrySafe = 2, true
	f.Site.Propose(once, again)
	o.Eventually("both jobs to run", func() bool { return y.Count("starts", "") == 2 })
	other.Kill("worker")
	lab.Eventually(t, "their processes to end", func() bool { return len(y.Left()) == 0 })

	j := o.Await("once", lifecycle.Lost)
	o.Await("again", lifecycle.RetryWait)
	log := f.Site.Must(0, "events", "--json").Stdout
	if all, by := strings.Count(log, ".lapsed."), strings.Count(log, ".lapsed.gate\""); all != 2 || by != 2 {
		t.Errorf("%d of %d lapses are the gate's, want 2", by, all)
	}
	open()
	other.Up("worker")
	o.Await("again", lifecycle.Succeeded)
	if a := o.Job("again").Attempts; len(a) != 2 || a[1].Worker != "w2" {
		t.Errorf("the attempts: %+v", a)
	}
	o.Check(y, []string{"again", "once"})
	f.Site.Must(0, "retry", j.ID)
	o.Eventually("the retried job to succeed", func() bool {
		return slices.ContainsFunc(o.Named("once"), func(k lifecycle.Job) bool { return k.Status == lifecycle.Succeeded })
	})
}
