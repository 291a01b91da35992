package front_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/lab"
)

// binaries is the folder with every binary of the module, built once.
var binaries = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(filepath.Dir(binary), "all")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return dir, lab.BuildAll(dir)
})

// newFleet makes a site whose policy allows the jobs of a new yard, and a fleet
// of one process per role that does not run yet.
func newFleet(t *testing.T) (*lab.Fleet, *lab.Yard) {
	t.Helper()
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	y := lab.NewYard(t)
	f := lab.NewSite(t, binary, "--policy", y.Policy()).Fleet(dir)
	f.Site.Set("worker", "grace_s", "1")
	f.Site.Set("worker", "lease_s", "3")
	return f, y
}

// series makes n proposals of the same deed and their names.
func series(y *lab.Yard, prefix string, n int, deed ...string) (names []string, all []agentapi.Proposal) {
	for i := range n {
		name := fmt.Sprintf("%s-%03d", prefix, i)
		names = append(names, name)
		all = append(all, y.Job(name, deed...))
	}
	return names, all
}

// once fails unless each job succeeded with its first attempt.
func once(t *testing.T, o *lab.Observer, y *lab.Yard, names []string) {
	t.Helper()
	for _, name := range names {
		j := o.Job(name)
		if n := y.Count("starts", name); j.Status != lifecycle.Succeeded || len(j.Attempts) != 1 || n != 1 {
			t.Errorf("job %s is %s after %d attempts and %d executions, want one that succeeded", name, j.Status, len(j.Attempts), n)
		}
	}
}

// sessions counts the processes that have started attempts.
func sessions(o *lab.Observer) int {
	seen := map[string]bool{}
	for _, j := range o.Jobs {
		for _, a := range j.Attempts {
			seen[a.Session] = true
		}
	}
	return len(seen)
}

// Two hundred jobs over one worker, then three, then one again: workers come and
// go while jobs are queued and while they hold some, and each job is executed
// exactly once.
func TestWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	openThree, openOne := y.Close("three"), y.Close("one")

	names, jobs := series(y, "free", 70, "quick")
	f.Site.Propose(jobs...)
	more, jobs := series(y, "three", 70, "waits", "three")
	names = append(names, more...)
	f.Site.Propose(jobs...)
	o.AwaitFinal(70)
	if n := sessions(o); n != 1 {
		t.Fatalf("%d workers ran jobs, and one was started", n)
	}
	f.Up("worker 2", "worker 3") // while jobs are queued
	o.Eventually("three workers to hold jobs", func() bool { return sessions(o) == 3 })
	openThree()
	more, jobs = series(y, "one", 60, "waits", "one")
	names = append(names, more...)
	f.Site.Propose(jobs...)
	o.AwaitFinal(140)
	o.Eventually("three workers to hold jobs of the last part", func() bool {
		held := map[string]bool{}
		for _, j := range o.Jobs {
			if a := j.Current(); a != nil && j.Status == lifecycle.Running {
				held[a.Session] = true
			}
		}
		return len(held) == 3
	})
	var stops sync.WaitGroup
	for _, m := range []string{"worker 2", "worker 3"} { // while they hold jobs
		stops.Go(func() { f.Stop(m) })
	}
	openOne()
	stops.Wait()
	o.AwaitFinal(200)
	once(t, o, y, names)
	o.Check(y, names)
	for _, m := range slices.Backward(lab.Roles[:]) { // the bus last
		f.Stop(m)
	}
}

// Workers with keys and pools of their own: a job runs in its pool or waits.
func TestPoolsKeepApart(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Site.Set("bus", "pools", `["default", "b"]`)
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	f.Site.Must(0, "actor", "add", "w2", "--role", "worker", "--pool", "b")

	names, jobs := series(y, "here", 10, "quick")
	more, others := series(y, "there", 10, "quick")
	for i := range others {
		others[i].Pool = "b"
	}
	names = append(names, more...)
	f.Site.Propose(append(others, jobs...)...)
	o.AwaitFinal(10)
	for _, name := range more {
		if j := o.Job(name); j.Resolution != nil || len(j.Attempts) != 0 {
			t.Errorf("job %s of pool b was looked up or started, and no worker of b runs", name)
		}
	}
	outpost := f.Site.Outpost("w2")
	outpost.Set("worker", "actor", `"w2"`)
	outpost.Set("worker", "pool", `"b"`)
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	outpost.Fleet(dir).Up("worker")
	o.AwaitFinal(20)
	once(t, o, y, names)
	for _, name := range names {
		want := "worker"
		if slices.Contains(more, name) {
			want = "w2"
		}
		j := o.Job(name)
		if a := j.Current(); a != nil && a.Worker != want {
			t.Errorf("job %s ran on %s, want %s", name, a.Worker, want)
		}
	}
	o.Check(y, names)
}

// A worker that says it belongs to a pool that the trust file does not give it
// is turned away by the bus, and its jobs wait for somebody who may run them.
func TestWorkerOfAnotherPoolIsTurnedAway(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	f.Site.Set("bus", "pools", `["default", "b"]`)
	f.Up("bus", "proposer", "approver", "auditor")
	f.Site.Must(0, "actor", "add", "w2", "--role", "worker", "--pool", "b")
	o := f.Site.Observe()
	outpost := f.Site.Outpost("w2")
	outpost.Set("worker", "actor", `"w2"`) // and the pool stays default
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	f.Site.Propose(y.Job("wanted", "quick"))
	stranger := outpost.Fleet(dir)
	stranger.Start("worker")
	if code := stranger.Member("worker").Wait(); code == 0 {
		t.Errorf("the stranger ended without a complaint")
	}
	if text := stranger.Member("worker").Stderr(); !strings.Contains(text, "may not use") || !strings.Contains(text, "banksman actor ls") {
		t.Errorf("it does not say why: %s", text)
	}
	o.Read()
	if j := o.Job("wanted"); j.Status.Final() || j.Resolution != nil || len(j.Attempts) > 0 {
		t.Errorf("the job is %s, resolved by %q", j.Status, j.ResolvedBy)
	}
	f.Up("worker")
	o.AwaitFinal(1)
	once(t, o, y, []string{"wanted"})
	o.Check(y, []string{"wanted"})
}
