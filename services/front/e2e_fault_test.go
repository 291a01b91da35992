package front_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/view"
)

// soak asks for longer stories, as 'make soak' does.
func soak() bool { return os.Getenv("BANKSMAN_SOAK") == "1" }

// seed is random, or BANKSMAN_SEED to tell a story again.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64()
	if text := os.Getenv("BANKSMAN_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("BANKSMAN_SEED=%d", n)
	return n
}

// Any role is killed at any moment, the bus among them, while a hundred jobs are
// proposed, decided and run; each comes back. Nothing is lost, nothing runs twice
// unless the stream says so.
func TestRolesAreKilled(t *testing.T) {
	t.Parallel()
	kills := 8
	if soak() {
		kills = 50
	}
	random := rand.New(rand.NewPCG(seed(t), 0))
	f, y := newFleet(t)
	members := append(slices.Clone(lab.Roles[:]), "worker 2")
	f.Up(members...)
	o := f.Site.Observe()

	names, jobs := series(y, "short", 50, "quick")
	more, longer := series(y, "longer", 50, "lasts", "0.2")
	names, jobs = append(names, more...), append(jobs, longer...)
	for i := range jobs {
		if i%2 == 0 {
			jobs[i].MaxAttempts, jobs[i].RetrySafe = 3, true
		}
	}
	random.Shuffle(len(jobs), func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
	proposed := make(chan struct{})
	go func() {
		defer close(proposed)
		f.Site.Propose(jobs...)
	}()
	for n := range kills {
		// The moment is some lines further on, or a while later where a role that
		// was killed keeps everybody waiting.
		lines := len(y.Effects()) + random.IntN(300/kills)
		lab.Within(time.Duration(random.IntN(3000))*time.Millisecond, func() bool { return len(y.Effects()) >= lines })
		m := members[random.IntN(len(members))]
		t.Logf("kill %d: %s after %d lines", n+1, m, len(y.Effects()))
		f.Kill(m)
		f.Start(m)
	}
	f.Site.Ready()
	<-proposed
	if t.Failed() {
		return
	}
	o.AwaitFinal(len(names))
	o.Check(y, names)
	ends := map[lifecycle.Status]int{}
	for _, j := range o.Jobs {
		ends[j.Status]++
	}
	t.Logf("%v after %d executions", ends, y.Count("starts", ""))
	if ends[lifecycle.Succeeded]+ends[lifecycle.Lost]+ends[lifecycle.Failed] != len(names) {
		t.Errorf("jobs ended as %v, want succeeded, lost or failed", ends)
	}
}

// A worker is stopped for more than three leases while it runs a job. A peer lets
// the claim lapse; what the worker says when it wakes is marked as late.
func TestWorkerIsStoppedForThreeLeases(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	open := y.Close("gate")
	f.Site.Propose(y.Job("once", "waits", "gate"))
	o.Eventually("the job to be executed", func() bool { return y.Count("starts", "once") == 1 })
	f.Up("worker 2")
	f.Member("worker").Signal(syscall.SIGSTOP)
	lost := o.Await("once", lifecycle.Lost)
	if a := lost.Current(); !a.Lapsed || a.Result != nil || lost.Ending == "" {
		t.Errorf("the lapse is not told: %+v, %q", a, lost.Ending)
	}
	open() // its steward is awake, so that the command completes
	lab.Eventually(t, "the command to complete", func() bool { return y.Count("ends", "once") == 1 })
	f.Member("worker").Signal(syscall.SIGCONT)
	o.Eventually("the late result", func() bool {
		j := o.Job("once")
		return j.Current().Result != nil
	})
	j := o.Job("once")
	if a := j.Current(); j.Status != lifecycle.Lost || !a.Late || len(j.Attempts) != 1 {
		t.Errorf("the job is %s, late %v, after %d attempts; want lost with one late result", j.Status, a.Late, len(j.Attempts))
	}
	var d view.Detail
	f.Site.Must(0, "show", "--json", j.ID).JSON(t, &d)
	if d.Result == nil || !d.Result.Late {
		t.Errorf("show does not say that the result is late: %+v", d.Result)
	}
	if slices.Contains(y.Deeds("once"), "overlaps") {
		t.Error("the job was executed by two")
	}
	o.Check(y, []string{"once"})
}

// A retry-safe job is started again after a lapse. Its worker was stopped alone and
// could end nothing, but the steward of its execution counts for itself: the
// execution is gone before the peer may start the next one. When the worker wakes,
// what it has to say is refused, and it goes on working.
func TestStoppedWorkerLosesARetrySafeJob(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	open := y.Close("gate")
	again := y.Job("again", "waits", "gate")
	again.MaxAttempts, again.RetrySafe = 2, true
	f.Site.Propose(again)
	o.Eventually("the job to be executed", func() bool { return y.Count("starts", "again") == 1 })
	f.Up("worker 2")
	f.Member("worker").Signal(syscall.SIGSTOP)
	lab.Eventually(t, "the execution to be ended without its worker", func() bool { return len(y.Left()) == 0 })
	o.Eventually("the second execution", func() bool { return y.Count("starts", "again")+y.Count("overlaps", "again") == 2 })
	f.Member("worker").Signal(syscall.SIGCONT)
	f.Site.Ready()
	open()
	o.Await("again", lifecycle.Succeeded)
	if deeds := y.Deeds("again"); !slices.Equal(deeds, []string{"starts", "starts", "ends"}) {
		t.Errorf("the executions did %q, want the first one to be ended before the second", deeds)
	}
	j := o.Job("again")
	if len(j.Attempts) != 2 || !j.Attempts[0].Lapsed || j.Attempts[0].Result != nil || j.Attempts[0].Session == j.Attempts[1].Session {
		t.Errorf("the lapse is not told, or the refused result counts: %+v", j.Attempts)
	}
	f.Stop("worker 2") // the next job is for the one that was stopped
	f.Site.Propose(y.Job("next", "quick"))
	o.Await("next", lifecycle.Succeeded)
	next := o.Job("next")
	if a := next.Current(); a.Session != j.Attempts[0].Session {
		t.Errorf("the next job ran in session %s", a.Session)
	}
	f.Stop("worker") // it holds nothing back
	o.Check(y, []string{"again", "next"})
}

// The bus goes away while jobs run, for more than three leases. They end meanwhile,
// one worker even dies after that, and every result arrives when the bus is back. A
// job that may be run again is ended, since its worker cannot know that nobody else
// reaches the bus either, and is run again afterwards.
func TestBusIsAwayInMidJob(t *testing.T) {
	t.Parallel()
	away := 10 * time.Second
	if soak() {
		away = 10 * time.Minute
	}
	f, y := newFleet(t)
	f.Up(append(lab.Roles[:], "worker 2")...)
	o := f.Site.Observe()
	open := y.Close("gate")
	names, jobs := series(y, "held", 7, "waits", "gate")
	again := y.Job("again", "waits", "gate")
	again.MaxAttempts, again.RetrySafe = 3, true
	f.Site.Propose(append(jobs, again)...)
	o.Eventually("both workers to hold jobs", func() bool { return y.Count("starts", "") == len(names)+1 && sessions(o) == 2 })
	back := time.After(away)
	f.Kill("bus")
	lab.Eventually(t, "the retry-safe job to be ended", func() bool { return len(y.Left("again")) == 0 })
	open()
	lab.Eventually(t, "the commands to end", func() bool { return y.Count("ends", "") == len(names) && len(y.Left()) == 0 })
	<-back
	f.Kill("worker 2") // results of ended commands are on its disk
	f.Up("bus", "worker 2")
	o.AwaitFinal(len(names) + 1)
	for _, name := range names {
		var d view.Detail
		f.Site.Must(0, "show", "--json", o.Job(name).ID).JSON(t, &d)
		if d.Status != lifecycle.Succeeded || d.Result == nil || d.Result.Stdout != "done: "+name+"\n" {
			t.Errorf("job %s is %s with %+v", name, d.Status, d.Result)
		}
	}
	once(t, o, y, names)
	if deeds := y.Deeds("again"); !slices.Equal(deeds, []string{"starts", "starts", "ends"}) {
		t.Errorf("the job that may be run again did %q", deeds)
	}
	o.Check(y, append(names, "again"))
}

// A worker dies by kill -9 while its job has scattered processes that ignore
// TERM, live in sessions of their own, hold its pipes and have lost their parent.
// They end without it; the job is lost, and says so.
func TestWorkerDiesWhileItsJobRuns(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	f.Site.Propose(y.Job("tree", "scatters"))
	lab.Eventually(t, "the job to scatter", func() bool { return y.Count("scattered", "tree") == 1 })
	if n := len(y.Left()); n < 4 {
		t.Fatalf("the job has only %d processes", n)
	}
	f.Kill("worker")
	lab.Eventually(t, "the tree to end without its worker", func() bool { return len(y.Left()) == 0 })
	f.Up("worker")
	lost := o.Await("tree", lifecycle.Lost)
	if a := lost.Current(); !a.Lapsed || len(lost.Attempts) != 1 || lost.Ending == "" {
		t.Errorf("the loss is not told: %+v, %q", a, lost.Ending)
	}
	o.Check(y, []string{"tree"})
}

// What a command leaves in the background neither holds its job up nor lives on.
func TestCommandLeavesProcessesBehind(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	f.Site.Propose(y.Job("gone", "leaves"))
	j := o.Await("gone", lifecycle.Succeeded)
	if left := y.Left(); len(left) > 0 {
		t.Errorf("the job has ended, and these live on: %q", left)
	}
	if r := j.Current().Result; r.Survivors != 0 || r.DurationMS > 30_000 {
		t.Errorf("survivors %d, after %d ms", r.Survivors, r.DurationMS)
	}
	once(t, o, y, []string{"gone"})
	o.Check(y, []string{"gone"})
}
