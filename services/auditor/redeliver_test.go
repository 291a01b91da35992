package auditor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/query"
)

// stuttering delivers what it has delivered before again and again, and its line
// breaks now and then, as a bus does that is restarted under load.
type stuttering struct {
	Stream
	times  int // each event is followed by so many old ones
	again  *atomic.Int64
	mu     *sync.Mutex
	notify *[]func(bool)
}

func (s stuttering) Notify(f func(bool)) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.notify = append(*s.notify, f)
	return s.Stream.Notify(f)
}

func (s stuttering) Follow(ctx context.Context, from uint64, filter string, handle func(events.Stored) error) error {
	random := rand.New(rand.NewPCG(1, from))
	var past []events.Stored
	return s.Stream.Follow(ctx, from, filter, func(st events.Stored) error {
		if len(past) < 500 {
			past = append(past, st)
		} else {
			past[random.IntN(len(past))] = st
		}
		if err := handle(st); err != nil {
			return err
		}
		for range s.times {
			if err := handle(past[random.IntN(len(past))]); err != nil {
				return err
			}
			s.again.Add(1)
		}
		if random.IntN(200) == 0 {
			s.mu.Lock()
			for _, f := range *s.notify {
				f(false)
				f(true)
			}
			s.mu.Unlock()
		}
		return nil
	})
}

// TestNoFalseGap: however often events come again and the line breaks, nothing is
// missing, nothing is a fault, and the log is the one of an undisturbed auditor.
func TestNoFalseGap(t *testing.T) {
	jobs, times := 200, 70
	if os.Getenv("BANKSMAN_SOAK") == "1" {
		jobs, times = 10_000, 50
	}
	s := newSite(t)
	line := stuttering{times: times, again: &atomic.Int64{}, mu: &sync.Mutex{}, notify: &[]func(bool){}}
	a := s.audit(func(in Stream) Stream { line.Stream = in; return line })
	var last *story
	for i := range jobs {
		last = s.propose(fmt.Sprintf("job%d", i))
		if i%2 == 0 {
			s.approve(last)
		}
	}
	s.sealed(last.last)
	a.until(t, "readiness", isReady)
	var status query.AuditStatus
	s.ask(query.Audit, struct{}{}, &status)
	if status.Gaps != 0 || status.Violations != 0 || len(status.Faults) > 0 {
		t.Errorf("status %+v", status)
	}
	a.stop(t)
	t.Logf("%d events came again", line.again.Load())
	if line.again.Load() < int64(jobs*times) {
		t.Error("too few for the test to mean anything")
	}
	if r := s.verify(); r.ExitCode() != 0 || len(r.Gaps) > 0 {
		t.Errorf("verify: %s %+v", verdicts(r), r)
	}
	if r, err := s.rebuild(); err != nil || !r.Same() {
		t.Errorf("made again: %+v, %v", r, err)
	}
}
