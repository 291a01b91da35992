package worker

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
)

// atGate makes a job that runs until the returned function is called.
func atGate(y *yard, name string) (id string, open func()) {
	y.t.Helper()
	gate := y.work(name)
	must(y.t, unix.Mkfifo(gate, 0o600))
	id = y.propose([]string{"sh", "-c", "read line < " + gate})
	y.approve(id)
	return id, func() {
		f, err := os.OpenFile(gate, os.O_WRONLY, 0)
		must(y.t, err)
		_, err = f.WriteString("\n")
		must(y.t, err)
		must(y.t, f.Close())
	}
}

func running(j lifecycle.Job) bool { return j.Status == lifecycle.Running }

func TestDrainingWorkerFinishesAndTakesNothingNew(t *testing.T) {
	y := newYard(t, rules)
	ask := make(chan struct{})
	w := y.hire("worker", "", func(c *Config) { c.DrainS = 0 }) // patience is not what a signal has
	w.shift.env.Drain = ask
	w.run()
	id, open := atGate(y, "gate")
	late := y.propose([]string{"echo", "late"})
	y.Await(late, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	y.seal()
	y.Await(id, "running", running)
	close(ask)
	w.shows("that it drains", func(line string) bool { return line == "false draining; takes nothing new and waits for running jobs" })
	y.allow(late)
	y.seal()
	open()
	if j := y.ends(id); j.Status != lifecycle.Succeeded {
		t.Errorf("the job in hand is %q: %s", j.Status, j.Ending)
	}
	select {
	case err := <-w.done:
		must(t, err)
		w.done <- nil
	case <-time.After(patience):
		t.Fatal("the drained worker did not end")
	}
	if j := y.Job(late); j.Status != lifecycle.Approved {
		t.Errorf("the other job is %q", j.Status)
	}
	st, _, err := y.Conn("reader").Last(t.Context(), "bm.worker.*.*.stopped.*")
	must(t, err)
	e, err := y.reads.Book().Open(st)
	must(t, err)
	if p := e.Payload.(*events.WorkerStopped); p.Reason != errDrained.Error() {
		t.Errorf("it took leave because of %q", p.Reason)
	}
}

// The first signal drains, the second one cancels with a receipt.
func TestSecondSignalCancels(t *testing.T) {
	y := newYard(t, rules)
	hurry := make(chan struct{})
	w := y.hire("worker", "", func(c *Config) { c.DrainS, c.GraceS = 86400, 1 })
	w.shift.env.Hurry = hurry
	w.run()
	id := y.propose([]string{"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}, func(p *events.JobProposed) { p.MaxAttempts, p.RetrySafe = 3, true })
	y.approve(id)
	y.seal()
	y.Await(id, "running", running)
	w.stop()
	w.shows("that it stops", func(line string) bool { return line == "false stopping; waits for running jobs" })
	close(hurry)
	if j := y.ends(id); j.Status != lifecycle.Cancelled || len(j.Attempts) != 1 {
		t.Errorf("status %q after %d attempts, %q", j.Status, len(j.Attempts), j.Ending)
	}
	w.leave()
}

func TestOnceRunsOneJob(t *testing.T) {
	y := newYard(t, rules)
	first := y.hire("worker", "").run()
	var ids []string
	for range 2 {
		id := y.propose([]string{"echo", "x"})
		y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
		ids = append(ids, id)
	}
	first.leave()
	for _, id := range ids {
		y.allow(id)
	}
	y.seal()
	y.serveReady(append([]string{"unknown"}, ids...)...)
	for i, want := range append(ids, "") {
		w := y.hire("worker", "")
		w.shift.single = true
		must(t, w.shift.run(t.Context()))
		w.conn.Close()
		if w.shift.ran != want {
			t.Errorf("once more, it ran %q and not %q", w.shift.ran, want)
		}
		for k, id := range ids {
			if done := y.Job(id).Status == lifecycle.Succeeded; done != (k <= i) {
				t.Errorf("after %d: job %d has run: %v", i, k, done)
			}
		}
	}
}

func TestOnceWithoutAnIndexSaysSo(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "")
	defer w.conn.Close()
	w.shift.single = true
	if err := w.shift.run(t.Context()); err == nil || errors.Is(err, errOnce) {
		t.Errorf("nobody answers, and it ended with %v", err)
	}
}

func TestSessionsTellWhoIsHeard(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "", func(c *Config) { c.LeaseS, c.Slots = 3, 7 }).run()
	gone := y.hire("other", "elsewhere").run()
	gone.shows("that it is ready", func(line string) bool { return line == "true " })
	gone.leave()
	id, open := atGate(y, "gate")
	y.seal()
	y.Await(id, "running", running)
	var list []Session
	var err error
	for range 10 { // heartbeats come by the clock
		list, err = Sessions(t.Context(), y.Conn("reader"), y.Over(y.Conn("reader")), 1200*time.Millisecond, true)
		must(t, err)
		slices.SortFunc(list, func(a, b Session) int { return -strings.Compare(a.Actor, b.Actor) }) // both began at once
		if len(list) == 2 && len(list[0].Running) == 1 {
			break
		}
	}
	open()
	y.ends(id)
	if len(list) != 2 {
		t.Fatalf("sessions %+v", list)
	}
	if w := list[0]; w.Actor != "worker" || w.Pool != "default" || !w.Heard || w.Slots != 7 || len(w.Running) != 1 || w.Running[0] != id || !w.Stopped.IsZero() {
		t.Errorf("the worker %+v", w)
	}
	if w := list[1]; w.Actor != "other" || w.Heard || w.Stopped.IsZero() || w.Reason != "signal" {
		t.Errorf("the one that is gone %+v", w)
	}
	list, err = Sessions(t.Context(), y.Conn("reader"), y.Over(y.Conn("reader")), 0, false)
	must(t, err)
	if len(list) != 1 {
		t.Errorf("without those that are gone: %+v", list)
	}
}
