package bench

import (
	"testing"
)

// interop is the module that holds what is measured of others.
const interop = "../../auditor/interop"

// tessera compares the log with another author's, on the same disk.
func (r *run) tessera() {
	r.t.Run("tessera", func(t *testing.T) {
		b := benchmarks(t, interop, ".", "^Benchmark(Tessera|Own)$")
		own, theirs := b.of(t, "Own", cpuRate), b.of(t, "Tessera", cpuRate)
		r.add(figure{What: "R7 log, durable and signed by 256", Value: own, Unit: perCPUSecond, Floor: theirs, Of: "Tessera's POSIX log", Ratio: own / theirs, Goal: ">= 3", Met: own/theirs >= 3})
	})
}
