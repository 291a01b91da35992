package worker

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/redact"
)

// BenchmarkRecorder takes 64 MiB of output while nobody publishes.
func BenchmarkRecorder(b *testing.B) {
	piece := make([]byte, 32<<10)
	b.SetBytes(64 << 20)
	b.ReportAllocs()
	for b.Loop() {
		r := newRecorder(filepath.Join(b.TempDir(), "spool"), 8<<20, time.Now(), redact.New())
		for range 64 << 20 / len(piece) {
			_, _ = r.stdout().Write(piece)
		}
		r.close()
		r.discard()
	}
}

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
		y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
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

// BenchmarkRecorderOfText takes 64 MiB of a log with known values to look for.
func BenchmarkRecorderOfText(b *testing.B) {
	line := []byte("2026-11-29T20:11:44Z INFO request handled method=GET path=/v1/things/42 status=200 remote=10.0.0.1\n")
	piece := bytes.Repeat(line, 32<<10/len(line))
	rules := redact.New(redact.Value{Name: "A", Text: "some-FAKE-value-0123456789"}, redact.Value{Name: "B", Text: "another-FAKE-value-0123456789"})
	b.SetBytes(64 << 20)
	b.ReportAllocs()
	for b.Loop() {
		r := newRecorder(filepath.Join(b.TempDir(), "spool"), 8<<20, time.Now(), rules)
		for range 64 << 20 / len(piece) {
			_, _ = r.stdout().Write(piece)
		}
		r.close()
		r.discard()
	}
}
