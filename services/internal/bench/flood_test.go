package bench

import (
	"strconv"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// flood measures the most that a worker holds while a job prints 500 MB, and how
// fast they pass.
func (r *run) flood() {
	const printed = 500_000_000
	r.t.Run("flood", func(t *testing.T) {
		y := lab.NewYard(t)
		s := lab.NewSite(t, r.bins+"/banksman", "--policy", y.Policy())
		s.Up("--without", "worker")
		pids := r.workers(t, s, 1)
		open := y.Close("gate")
		c := client(t, s)
		j, err := c.Propose(t.Context(), y.Job("flood", "prints", strconv.Itoa(printed), "gate"))
		lab.Eventually(t, "the job to run", func() bool { return y.Count("starts", "flood") == 1 })
		began := time.Now()
		open()
		for err == nil && !j.Status.Final() {
			j, err = c.Job(t.Context(), j.Job.Job, j.LastSeq, 30*time.Second)
		}
		took := time.Since(began)
		if err != nil || j.Status != lifecycle.Succeeded || j.Result.StdoutInfo.Bytes < printed {
			t.Fatalf("the job that prints ended as %s, %v", j.Status, err)
		}
		most := memoryOf(t, pids[0], "VmHWM:")
		r.add(figure{What: "memory, worker at most, of a job that prints 500 MB", Value: float64(most) / 1e6, Unit: megabytes, Goal: "<= 40 MB", Met: most <= 40e6})
		r.add(figure{What: "500 MB of output, from the first byte to the result", Value: inMS(took), Unit: milliseconds})
	})
}
