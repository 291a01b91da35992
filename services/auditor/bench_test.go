package auditor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
)

// BenchmarkSeal measures from the acknowledgement of an event to the live copy of the
// head that covers it, one at a time: what a worker waits for before it may start.
func BenchmarkSeal(b *testing.B) {
	s := newSite(b)
	a := s.audit(nil)
	a.until(b, "readiness", isReady)
	sealed := make(chan uint64, 1024)
	stop, err := s.conn("worker").Live(b.Context(), auditFilter(1), func(st events.Stored) {
		if e, err := events.Open(s.plan.Origin, st); err == nil {
			if p, ok := e.Payload.(*events.AuditSealed); ok {
				sealed <- p.ThroughSeq
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		seq := s.propose(fmt.Sprintf("job%d", i)).last
		begun := time.Now()
		for <-sealed < seq {
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
