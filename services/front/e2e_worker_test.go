package front_test

import (
	"syscall"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/worker"
)

// A worker is listed with what it runs, drains when it is asked to, and leaves the
// next job to a process that takes just one.
func TestWorkerIsListedDrainedAndReplacedForOneJob(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Site.Set("worker", "slots", "1")
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	open := y.Close("gate")
	f.Site.Propose(y.Job("held", "waits", "gate"))
	held := o.Await("held", lifecycle.Running)
	f.Site.Propose(y.Job("next", "quick"), y.Job("last", "quick"))
	o.Await("next", lifecycle.Approved)
	o.Await("last", lifecycle.Approved)

	var list struct {
		Workers []worker.Session `json:"workers"`
	}
	f.Site.Must(0, "worker", "ls", "--json", "--listen", "3s").JSON(t, &list)
	if w := list.Workers; len(w) != 1 || !w[0].Heard || len(w[0].Running) != 1 || w[0].Running[0] != held.ID {
		t.Errorf("listed as %+v", w)
	}
	f.Site.Must(75, "worker", "drain", "--wait", "1s")
	open()
	o.Await("held", lifecycle.Succeeded)
	if code := f.Member("worker").Wait(); code != 0 {
		t.Errorf("the drained worker exited %d", code)
	}
	f.Site.Must(1, "worker", "drain") // none is left
	for done := range 2 {
		f.Site.Must(0, "worker", "once")
		if n := y.Count("ends", ""); n != 2+done {
			t.Errorf("%d jobs have run, want %d", n, 2+done)
		}
	}
	f.Site.Must(75, "worker", "once") // nothing waits, and a worker that runs one job resolves none
	names := []string{"held", "next", "last"}
	o.AwaitFinal(len(names))
	once(t, o, y, names)
	o.Check(y, names)
}

// The first TERM drains, the second one cancels: the worker does not wait out its
// patience, and the job's tree is gone.
func TestSecondTermCancels(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Site.Set("worker", "drain_s", "86400")
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	f.Site.Propose(y.Job("tree", "scatters"))
	lab.Eventually(t, "the job to scatter", func() bool { return y.Count("scattered", "tree") == 1 })
	w := f.Member("worker")
	w.Signal(syscall.SIGTERM)
	o.Await("tree", lifecycle.Running)
	lab.Eventually(t, "the worker to say that it stops", func() bool {
		r := f.Site.Run("status")
		return r.Code == 75
	})
	w.Signal(syscall.SIGTERM)
	if code := w.Wait(); code != 0 {
		t.Errorf("the worker exited %d", code)
	}
	o.Await("tree", lifecycle.Cancelled)
	if left := y.Left(); len(left) > 0 {
		t.Errorf("these live on: %q", left)
	}
}
