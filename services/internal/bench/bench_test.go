package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/view"
)

// envRun names the folder of the built programs; without it nothing is measured.
const envRun = "BANKSMAN_BENCH"

// sizes of the run.
const (
	jobs    = 600 // of each measurement of throughput
	clients = 32  // that propose at once
	single  = 60  // jobs one after the other, for their latency
	calls   = 40  // of each verb
	fsyncs  = 500
)

// run is one measurement of everything.
type run struct {
	t     *testing.T
	bins  string
	table []figure
}

// TestBench prints the table.
func TestBench(t *testing.T) {
	bins := os.Getenv(envRun)
	if bins == "" {
		t.Skip("nothing is measured without " + envRun + "; run make bench")
	}
	r := &run{t: t, bins: bins}
	r.throughput()
	r.latency()
	r.verbs()
	r.memory()
	r.flood()
	r.crowded()
	r.rounds()
	r.tree()
	r.signatures()
	r.tessera()
	printTable(os.Stdout, r.table)
	file, err := os.Create(filepath.Join(bins, "bench.jsonl"))
	if err == nil {
		err = errors.Join(printJSON(file, r.table), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *run) add(f figure) { r.table = append(r.table, f) }

// workers starts workers beside an up that has none, and returns their ids.
func (r *run) workers(t *testing.T, s *lab.Site, n int) (pids []int) {
	t.Helper()
	for i := range n {
		cmd := exec.Command(filepath.Join(r.bins, "banksman-worker"), "--dir", s.Dir, "--instance", fmt.Sprint(i+1), "--log-level", "warn")
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Signal(os.Interrupt)
			cmd.Wait()
		})
		pids = append(pids, cmd.Process.Pid)
	}
	s.Ready()
	return pids
}

func (r *run) site(t *testing.T) *lab.Site {
	s := lab.NewSite(t, filepath.Join(r.bins, "banksman"))
	for _, key := range []string{"rate_per_minute", "total_per_minute", "open_per_token", "open_total"} {
		s.Set("proposer", key, "0") // what is measured is the site, not its quotas
	}
	return s
}

// client is an agent.
func client(t *testing.T, s *lab.Site) *agentapi.Client {
	t.Helper()
	l := site.Layout{Dir: s.Dir}
	token, err := os.ReadFile(l.Token("agent", "local"))
	if err != nil {
		t.Fatal(err)
	}
	return agentapi.NewClient(l.ProposerSocket(), strings.TrimSpace(string(token)))
}

// one runs a job to its end.
func one(ctx context.Context, c *agentapi.Client) (view.Detail, error) {
	j, err := c.Propose(ctx, agentapi.Proposal{Argv: []string{"true"}, Cwd: "/"})
	for err == nil && !j.Status.Final() {
		j, err = c.Job(ctx, j.Job.Job, j.LastSeq, 30*time.Second)
	}
	if err == nil && j.Status != lifecycle.Succeeded {
		err = fmt.Errorf("job %s ended as %s", j.Job.Job, j.Status)
	}
	return j, err
}

// many runs jobs from several clients at once.
func many(t *testing.T, s *lab.Site, n int) {
	t.Helper()
	c := client(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	next := make(chan struct{})
	errs := make(chan error, clients)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range next {
				if _, err := one(ctx, c); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	var failed error
	for i := 0; i < n && failed == nil; i++ {
		select {
		case next <- struct{}{}:
		case failed = <-errs:
		}
	}
	close(next)
	wg.Wait()
	close(errs)
	if err := <-errs; failed == nil {
		failed = err
	}
	if failed != nil {
		t.Fatal(failed)
	}
}

// sealed waits until the log covers everything, and returns how much that is.
func sealed(t *testing.T, s *lab.Site, atLeast uint64) query.AuditStatus {
	t.Helper()
	var a query.AuditStatus
	lab.Eventually(t, "the log to be sealed", func() bool {
		s.Must(0, "audit", "status", "--json").JSON(t, &a)
		return a.ThroughSeq >= atLeast
	})
	return a
}

// throughput measures approved jobs from proposal to sealed finish.
func (r *run) throughput() {
	var alone float64
	for _, workers := range []int{1, 4} {
		r.t.Run(fmt.Sprintf("throughput-%d", workers), func(t *testing.T) {
			s := r.site(t)
			up := s.Up("--without", "worker").Pid()
			pids := r.workers(t, s, workers)
			many(t, s, clients) // nothing is cold after these
			before := sealed(t, s, 1)
			floor := syncs(t, fsyncs)
			start, upBefore, workersBefore := time.Now(), spent(t, up), spent(t, pids...)
			many(t, s, jobs)
			last := sealed(t, s, before.LastSeq+jobs*5)
			rate := jobs / time.Since(start).Seconds()
			upSpent, workersSpent := (spent(t, up)-upBefore)/jobs, (spent(t, pids...)-workersBefore)/jobs
			perJob := float64(last.ThroughSeq-before.LastSeq) / jobs
			bound := 1 / (floor.at(0.5).Seconds() * perJob)
			f := figure{
				What: fmt.Sprintf("approved jobs, %d worker(s)", workers), Value: rate, Unit: perSecond, Floor: bound, Of: "write+fsync, as many as a job has events",
				Ratio: rate / bound, Goal: ">= 300/s and ratio >= 0.5", Met: rate >= 300 && rate >= bound/2,
				Note: fmt.Sprintf("write+fsync %v, %.1f events a job", floor.at(0.5).Round(time.Microsecond), perJob),
			}
			if workers == 1 {
				alone = rate
			} else {
				f.Goal, f.Met = fmt.Sprintf(">= 1.5 x one worker (%.2f x)", rate/alone), rate >= 1.5*alone
			}
			r.add(f)
			r.add(figure{
				What: "  cpu a job", Value: inMS(upSpent + workersSpent), Unit: milliseconds,
				Note: fmt.Sprintf("up %v, workers with what they run %v; %d processors", upSpent.Round(10*time.Microsecond), workersSpent.Round(10*time.Microsecond), runtime.NumCPU()),
			})
		})
	}
}

// spent is the processor time of processes and of the children they waited for.
func spent(t *testing.T, pids ...int) (sum time.Duration) {
	t.Helper()
	for _, pid := range pids {
		own, children := cpu(t, pid)
		sum += own + children
	}
	return sum
}

// latency measures jobs one after the other.
func (r *run) latency() {
	r.t.Run("latency", func(t *testing.T) {
		s := r.site(t)
		s.Up()
		many(t, s, 2)
		floor := syncs(t, fsyncs)
		c := client(t, s)
		took := make(spread, 0, single)
		_, err := measure(single, func(int) error {
			j, err := one(t.Context(), c)
			if err == nil {
				took = append(took, j.Attempts[0].Started.Sub(j.Created))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(took)
		for _, share := range []float64{0.5, 0.95} {
			f := figure{
				What: fmt.Sprintf("proposed -> running, p%.0f", share*100), Value: inMS(took.at(share)), Unit: milliseconds,
				Floor: inMS(floor.at(share)), Of: fmt.Sprintf("write+fsync p%.0f", share*100), Ratio: float64(took.at(share)) / float64(floor.at(share)),
			}
			if share == 0.5 {
				f.Goal, f.Met = "<= 15 ms", took.at(share) <= 15*time.Millisecond
			}
			r.add(f)
		}
	})
}

// verbs measures the command line.
func (r *run) verbs() {
	r.t.Run("verbs", func(t *testing.T) {
		s := r.site(t)
		s.Up()
		many(t, s, clients)
		env := []string{"BANKSMAN_DIR=" + s.Dir}
		floor := spawns(t, calls, nil, "/bin/true").at(0.5)
		for _, verb := range []string{"version", "ls", "status"} {
			took := spawns(t, calls, env, s.Bin, verb).at(0.5)
			r.add(figure{
				What: "banksman " + verb + ", wall p50", Value: inMS(took), Unit: milliseconds, Floor: inMS(floor), Of: "/bin/true",
				Ratio: float64(took) / float64(floor), Goal: "<= 25 ms", Met: took <= 25*time.Millisecond,
			})
		}
	})
}

// memory measures what idle roles hold.
func (r *run) memory() {
	r.t.Run("memory", func(t *testing.T) {
		s := r.site(t)
		p := s.Up()
		sealed(t, s, 1)
		r.add(idle("up", resident(t, p.Pid()), 80))
	})
	r.t.Run("memory-roles", func(t *testing.T) {
		s := r.site(t)
		list, err := filepath.Glob(filepath.Join(r.bins, "banksman-*"))
		if err != nil || len(list) == 0 {
			t.Fatalf("find the roles' programs: %v", err)
		}
		started := map[string]int{}
		for _, path := range list {
			cmd := exec.Command(path, "--dir", s.Dir, "--log-level", "warn")
			cmd.Stderr = t.Output()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				cmd.Process.Signal(os.Interrupt)
				cmd.Wait()
			})
			started[path] = cmd.Process.Pid
		}
		s.Ready()
		sealed(t, s, 1)
		for _, path := range list {
			r.add(idle(strings.TrimPrefix(filepath.Base(path), "banksman-"), resident(t, started[path]), 25))
		}
	})
}

func idle(what string, held, goalMB int64) figure {
	return figure{What: "memory, idle " + what, Value: float64(held) / 1e6, Unit: megabytes, Goal: fmt.Sprintf("<= %d MB", goalMB), Met: held <= goalMB*1e6}
}
