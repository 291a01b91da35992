package front_test

import (
	"slices"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/view"
)

// Jobs that flood their output and ignore TERM hold every slot. Each is cancelled
// all the same, one by who proposed it and one by a person; it counts as cancelled
// only when nothing of it is left, says how it was ended, and cancelling it again
// changes nothing. The slots are free for the next job.
func TestCancelWhileOutputFloods(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Site.Set("worker", "slots", "2")
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	f.Site.Propose(y.Job("mine", "floods"))
	f.Site.Agent("other").Propose(y.Job("theirs", "floods"))
	o.Eventually("both jobs to run", func() bool { return y.Count("starts", "") == 2 })
	f.Site.Propose(y.Job("next", "quick"))
	for _, name := range []string{"mine", "theirs"} {
		j := o.Job(name)
		f.Site.Must(0, "cancel", j.ID, "--reason", "too loud")
		if left := y.Left(name); len(left) > 0 {
			t.Errorf("%s is cancelled, and these live on: %q", name, left)
		}
		j = o.Await(name, lifecycle.Cancelled)
		f.Site.Must(0, "cancel", j.ID)
		var d view.Detail
		f.Site.Must(0, "show", "--json", j.ID).JSON(t, &d)
		if d.LastSeq != j.LastSeq {
			t.Errorf("cancelling %s again stored something", name)
		}
		if r := d.Receipt; r == nil || r.Signal != "SIGKILL" || r.Survivors != 0 || len(r.Means) == 0 || r.Stdout.Bytes == 0 || r.Stderr.Bytes == 0 {
			t.Errorf("the receipt of %s: %+v", name, d.Receipt)
		}
	}
	o.Await("next", lifecycle.Succeeded)
	o.Check(y, []string{"mine", "theirs", "next"})
}

// A worker is stopped while it holds jobs, one of which fails because it is asked
// to end. What was approved for another attempt is made again by the others of the
// pool, once; what was not is cancelled, and says that the worker stopped.
func TestStoppedWorkerHandsOver(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Site.Set("worker", "drain_s", "0")
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	open := y.Close("gate")
	fails, deaf, last := y.Job("fails", "traps", "gate"), y.Job("deaf", "waits", "gate"), y.Job("last", "traps", "gate")
	fails.MaxAttempts, deaf.MaxAttempts, deaf.RetrySafe = 2, 2, true
	f.Site.Propose(fails, deaf, last)
	o.Eventually("the jobs to run", func() bool { return y.Count("starts", "") == 3 })
	f.Up("worker 2")
	f.Stop("worker")
	j := o.Await("last", lifecycle.Cancelled)
	if j.Ending == "" || j.Receipt == nil {
		t.Errorf("the end is not told: %q, %+v", j.Ending, j.Receipt)
	}
	o.Eventually("the others to run again", func() bool { return y.Count("starts", "") == 5 })
	open()
	for _, name := range []string{"fails", "deaf"} {
		j := o.Await(name, lifecycle.Succeeded)
		if a := j.Attempts; len(a) != 2 || a[0].Lapsed || a[0].Result == nil || a[0].Result.Error != "worker stopped" || a[0].Session == a[1].Session {
			t.Errorf("the attempts of %s: %+v", name, a)
		}
		if deeds := y.Deeds(name); !slices.Equal(deeds, []string{"starts", "starts", "ends"}) {
			t.Errorf("the executions of %s did %q", name, deeds)
		}
	}
	o.Check(y, []string{"fails", "deaf", "last"})
}

// One agent has filled the queue of a worker with one slot. Another agent's job does
// not wait for all of them.
func TestBusyAgentLetsOthersThrough(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Site.Set("worker", "slots", "1")
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	open := y.Close("gate")
	names, jobs := series(y, "many", 16, "lasts", "1")
	f.Site.Propose(y.Job("first", "waits", "gate"))
	o.Eventually("the first one to run", func() bool { return y.Count("starts", "first") == 1 })
	f.Site.Propose(jobs...)
	o.Eventually("all to be approved", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool { return o.Job(name).Status != lifecycle.Approved })
	})
	f.Site.Agent("other").Propose(y.Job("single", "quick"))
	o.Await("single", lifecycle.Approved)
	open()
	o.Await("single", lifecycle.Succeeded)
	if before := y.Count("starts", "") - 2; before > len(names)/2 {
		t.Errorf("%d jobs of one agent were started before the only one of another", before)
	}
	names = append(names, "first", "single")
	o.AwaitFinal(len(names))
	once(t, o, y, names)
	o.Check(y, names)
}
