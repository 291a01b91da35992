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

// A worker is cut off without being told, as by a switch that is pulled: what it
// sends vanishes. Its job that may be run again is gone before a peer starts it; the
// other one is given up by the peer, runs to its end, and its result waits on the
// worker until it can be told, late.
func TestWorkerIsCutOff(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Up(lab.Roles[:len(lab.Roles)-1]...)
	o := f.Site.Observe()
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	outpost := f.Site.Outpost("worker")
	line := f.Site.Line(outpost)
	remote := outpost.Fleet(dir)
	remote.Up("worker")
	openOnce, openAgain := y.Close("once"), y.Close("again")
	again := y.Job("again", "waits", "again")
	again.MaxAttempts, again.RetrySafe = 3, true
	f.Site.Propose(again, y.Job("once", "waits", "once"))
	o.Eventually("both jobs to run", func() bool { return y.Count("starts", "") == 2 })
	f.Up("worker")
	line.Hold()
	o.Await("once", lifecycle.Lost)
	o.Eventually("the peer to run one of them again", func() bool { return y.Count("starts", "again")+y.Count("overlaps", "again") == 2 })
	openOnce()
	lab.Eventually(t, "the other one to end where it runs", func() bool { return y.Count("ends", "once") == 1 })
	openAgain()
	o.Await("again", lifecycle.Succeeded)
	line.Mend()
	o.Eventually("the late result", func() bool { j := o.Job("once"); return j.Current().Result != nil })
	once, done := o.Job("once"), o.Job("again")
	if a := once.Current(); once.Status != lifecycle.Lost || !a.Late || a.Result.Outcome != "succeeded" || len(once.Attempts) != 1 {
		t.Errorf("the job is %s after %+v", once.Status, once.Attempts)
	}
	if len(done.Attempts) != 2 || !done.Attempts[0].Lapsed || done.Attempts[0].Result != nil {
		t.Errorf("the attempts of the other one: %+v", done.Attempts)
	}
	if deeds := y.Deeds("again"); !slices.Equal(deeds, []string{"starts", "starts", "ends"}) {
		t.Errorf("the executions did %q", deeds)
	}
	remote.Stop("worker") // it holds nothing back
	o.Check(y, []string{"again", "once"})
}
