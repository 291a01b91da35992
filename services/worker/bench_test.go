package worker

import (
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
)

// BenchmarkApprovedJobs runs jobs that are approved and sealed already: what a
// worker can do when nothing else is in its way.
func BenchmarkApprovedJobs(b *testing.B) {
	y := newYard(b, rules)
	first := y.hire("worker", "").run()
	var ids []string
	for range b.N {
		ids = append(ids, y.propose([]string{"echo"}))
	}
	for _, id := range ids {
		y.await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	}
	first.leave()
	for _, id := range ids {
		y.allow(id)
	}
	y.seal()
	w := y.hire("worker", "")
	b.ResetTimer()
	w.run()
	for _, id := range ids {
		y.ends(id)
	}
	b.StopTimer()
	w.leave()
}
