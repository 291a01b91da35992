package front_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/lab"
)

// storm is what happens to a fleet while its jobs run.
type storm struct {
	workers, jobs    int
	crashes, freezes int // of workers
	buses, pauses    int // kills of the bus, and freezes of it
}

// Workers are killed and frozen and the bus is killed while jobs run that are
// shorter than a lease, as long as one and longer. The lock that each execution
// holds is the witness: no two executions of a job overlap, not even beside a
// worker that is frozen. No move is illegal, a job that may be run again succeeds
// in the end, and any other is executed once at most.
func TestStormOverManyWorkers(t *testing.T) {
	t.Parallel()
	s := storm{workers: 4, jobs: 120, crashes: 3, freezes: 1, buses: 1}
	if soak() {
		s = storm{workers: 12, jobs: 1500, crashes: 45, freezes: 30, buses: 3, pauses: 2}
	}
	random := rand.New(rand.NewPCG(seed(t), 1))
	f, y := newFleet(t)
	f.Site.Set("worker", "slots", "3")
	members := []string{"worker"}
	for n := 2; n <= s.workers; n++ {
		members = append(members, fmt.Sprintf("worker %d", n))
	}
	f.Up(append(lab.Roles[:len(lab.Roles)-1:len(lab.Roles)-1], members...)...)
	o := f.Site.Observe()

	names, jobs := stormJobs(y, random, s.jobs)
	deeds := s.shuffled(random)
	for n, deed := range deeds {
		next := jobs[n*len(jobs)/len(deeds) : (n+1)*len(jobs)/len(deeds)]
		o.Eventually("room for more jobs", func() bool { return n*len(jobs)/len(deeds)-o.Final() < 200 }) // one agent may have 500 undecided
		f.Site.Propose(next...)
		m := victim(t, f, y, members, random)
		t.Logf("%d: %s, %s, after %d lines", n+1, deed, m, len(y.Effects()))
		switch deed {
		case "crash":
			f.Kill(m)
			f.Start(m)
		case "bus":
			f.Kill("bus")
			f.Start("bus")
		case "pause": // longer than a lease, while everybody is connected
			f.Member("bus").Signal(syscall.SIGSTOP)
			lab.Within(5*time.Second, func() bool { return len(y.Left()) == 0 })
			f.Member("bus").Signal(syscall.SIGCONT)
		case "freeze":
			before := lapses(o)
			f.Member(m).Signal(syscall.SIGSTOP)
			lab.Within(12*time.Second, func() bool { return o.Read() && lapses(o) > before }) // what it held may have ended
			f.Member(m).Signal(syscall.SIGCONT)
		}
	}
	f.Site.Ready()
	o.AwaitFinal(s.jobs)
	o.Check(y, names)
	s.judge(t, o, y)
}

// victim waits until a worker executes something, and names one that does.
func victim(t *testing.T, f *lab.Fleet, y *lab.Yard, members []string, random *rand.Rand) string {
	t.Helper()
	var busy []string
	lab.Eventually(t, "a worker to execute something", func() bool {
		held := y.Holders()
		busy = slices.DeleteFunc(slices.Clone(members), func(m string) bool { return !held[f.Member(m).Pid()] })
		return len(busy) > 0
	})
	return busy[random.IntN(len(busy))]
}

// stormJobs makes jobs of every length that matters to a lease of three seconds,
// half of them retry-safe.
func stormJobs(y *lab.Yard, random *rand.Rand, n int) (names []string, jobs []agentapi.Proposal) {
	for i := range n {
		name, deed := fmt.Sprintf("storm-%04d", i), []string{"quick"}
		switch {
		case i%20 == 3: // as long as a lease, and as long as a peer waits
			deed = []string{"lasts", fmt.Sprintf("%.2f", float64(3+i/20%2)-0.05+random.Float64()/10)}
		case i%20 == 7:
			deed = []string{"lasts", "6"}
		case i%5 == 1:
			deed = []string{"lasts", fmt.Sprintf("%.2f", random.Float64())}
		}
		p := y.Job(name, deed...)
		if random.IntN(2) == 0 {
			p.MaxAttempts, p.RetrySafe = 10, true
		}
		names, jobs = append(names, name), append(jobs, p)
	}
	return names, jobs
}

// shuffled are the storm's deeds in a random order.
func (s storm) shuffled(random *rand.Rand) []string {
	var deeds []string
	for _, d := range []struct {
		deed string
		n    int
	}{{"crash", s.crashes}, {"freeze", s.freezes}, {"bus", s.buses}, {"pause", s.pauses}} {
		deeds = append(deeds, slices.Repeat([]string{d.deed}, d.n)...)
	}
	random.Shuffle(len(deeds), func(i, k int) { deeds[i], deeds[k] = deeds[k], deeds[i] })
	return deeds
}

// lapses counts the attempts whose claims lapsed.
func lapses(o *lab.Observer) int {
	n := 0
	for _, j := range o.Jobs {
		for _, a := range j.Attempts {
			if a.Lapsed {
				n++
			}
		}
	}
	return n
}

// judge says what Check leaves open: how jobs may end, and how often they ran.
func (s storm) judge(t *testing.T, o *lab.Observer, y *lab.Yard) {
	ends := map[string]int{}
	runs := map[string]int{}
	for _, e := range y.Effects() {
		if e.What == "starts" {
			runs[e.Job]++
		}
	}
	for _, j := range o.Jobs {
		safe := j.Proposal.RetrySafe
		ends[fmt.Sprintf("%s, retry-safe %v", j.Status, safe)]++
		name := j.Proposal.Argv[1]
		switch {
		case safe && j.Status != lifecycle.Succeeded:
			t.Errorf("job %s may be run again and is %s after %d attempts", name, j.Status, len(j.Attempts))
		case !safe && (len(j.Attempts) != 1 || runs[name] > 1):
			t.Errorf("job %s may not be run again and has %d attempts and %d executions", name, len(j.Attempts), runs[name])
		case !safe && j.Status != lifecycle.Succeeded && j.Status != lifecycle.Lost:
			t.Errorf("job %s is %s", name, j.Status)
		}
	}
	total := 0
	for _, n := range runs {
		total += n
	}
	t.Logf("%v after %d executions and %d lapses", ends, total, lapses(o))
	if lapses(o) == 0 {
		t.Error("no claim has lapsed: the storm hit nothing")
	}
}
