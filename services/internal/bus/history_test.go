package bus_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
)

// TestHistoryIsComplete compares the history with a plain read of the stream,
// for jobs whose writers repeat subjects, interleave, and sometimes break the
// rules.
func TestHistoryIsComplete(t *testing.T) {
	s := newSite(t)
	worker := s.connect("worker")
	reader := s.connect("reader")
	bare := s.probe("worker").nc
	a := worker.Appender(newSigner("worker"))
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		jobs := []string{fmt.Sprintf("a-%d", run), fmt.Sprintf("b-%d", run)}
		last := map[string]uint64{}
		var stored int
		for range rapid.IntRange(0, 12).Draw(rt, "events") {
			job := rapid.SampledFrom(jobs).Draw(rt, "job")
			if rapid.IntRange(0, 9).Draw(rt, "rogue") == 0 {
				m := nats.NewMsg("bm.job.default." + job + ".finished.worker")
				m.Data = []byte("{}")
				r, err := bare.RequestMsg(m, attempt)
				if err != nil {
					rt.Fatal(err)
				}
				stored++
				last[job] = sequenceOf(rt, r.Data)
				continue
			}
			kind, payload := events.Kind("job.started"), any(events.JobStarted{})
			if rapid.Bool().Draw(rt, "resolved") {
				kind, payload = "job.resolved", events.JobResolved{}
			}
			seq, err := a.Append(t.Context(), events.For(kind, "default", job, "worker"), last[job], payload)
			if err != nil {
				rt.Fatal(err)
			}
			stored++
			last[job] = seq
		}
		total := 0
		for _, job := range jobs {
			got, err := reader.History(t.Context(), job)
			if err != nil {
				rt.Fatal(err)
			}
			want, err := reader.Read(t.Context(), 1, events.Filter("job", job), 500)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("history of %s: %d events, the stream has %d, %v", job, len(got), len(want), err)
			}
			total += len(got)
		}
		if total != stored {
			rt.Fatalf("stored %d events, read %d", stored, total)
		}
	})
}
