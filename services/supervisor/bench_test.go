package supervisor

import (
	"syscall"
	"testing"
	"time"
)

// cpu is the processor time of this process and of its ended children.
func cpu() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// BenchmarkRound is what a round of an agent that does nothing costs: wall
// time, and processor time of supervisor, bus, agent and git together.
func BenchmarkRound(b *testing.B) {
	for _, c := range []struct{ name, body string }{{"clean", "true"}, {"dirty", "echo $BANKSMAN_ROUND > f"}, {"no repository", ""}} {
		b.Run(c.name, func(b *testing.B) {
			y := newYard(b)
			dir := y.ground
			if c.body != "" {
				dir = y.repo("demo")
			}
			agent := y.agent("agent", c.body)
			plan := y.plan(dir, agent, func(p *Project) { p.MaxRounds = b.N })
			h := y.hire("supervisor", "m1", map[string]Project{"demo": plan})
			began := cpu()
			b.ResetTimer()
			h.run()
			h.showsWithin(patience+time.Duration(b.N)*time.Second, "halted") // whoever reads the log would be measured, too
			b.StopTimer()
			b.ReportMetric(float64((cpu()-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			h.leave()
		})
	}
}
