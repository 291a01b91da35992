package bus_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/logserver"
)

func TestAppendThenConflict(t *testing.T) {
	s := newSite(t)
	a := s.connect("proposer").Appender(newSigner("proposer"))
	subject := events.For("job.proposed", "default", "job-1", "proposer")
	seq, err := a.Append(t.Context(), subject, 0, proposal("first"))
	if err != nil || seq != 1 {
		t.Fatalf("append = %d, %v", seq, err)
	}
	_, err = a.Append(t.Context(), subject, 0, proposal("second"))
	var conflict *bus.Conflict
	if !errors.As(err, &conflict) || conflict.Last != 1 {
		t.Fatalf("append at the same position = %v, want a conflict with sequence 1", err)
	}
	seq, err = a.Append(t.Context(), subject, 1, proposal("third"))
	if err != nil || seq != 2 {
		t.Fatalf("append = %d, %v", seq, err)
	}
	history, err := s.connect("reader").History(t.Context(), "job-1")
	if err != nil || len(history) != 2 {
		t.Fatalf("history = %d events, %v", len(history), err)
	}
	for i, st := range history {
		e, err := events.Open(origin, st)
		if err != nil {
			t.Fatal(err)
		}
		if e.ID.N != uint64(i+1) || e.ID.Session != a.Session() {
			t.Errorf("event %d is %s: a refused append must use no number", i, e.ID)
		}
	}
}

func TestOneOfEightRacersWins(t *testing.T) {
	s := newSite(t)
	var appenders []*bus.Appender
	for range 8 {
		appenders = append(appenders, s.connect("worker").Appender(newSigner("worker")))
	}
	for job := range 20 {
		subject := events.For("job.started", "default", fmt.Sprintf("job-%d", job), "worker")
		var won, lost atomic.Int32
		var group sync.WaitGroup
		for _, a := range appenders {
			group.Go(func() {
				var conflict *bus.Conflict
				switch _, err := a.Append(t.Context(), subject, 0, events.JobStarted{}); {
				case err == nil:
					won.Add(1)
				case errors.As(err, &conflict):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if won.Load() != 1 || lost.Load() != 7 {
			t.Fatalf("job %d: %d won, %d lost", job, won.Load(), lost.Load())
		}
	}
}

func TestDeniedAtOnce(t *testing.T) {
	s := newSite(t)
	a := s.connect("worker").Appender(newSigner("worker"))
	ctx := within(t, 4*time.Second)
	_, err := a.Append(ctx, events.For("job.started", "gpu", "job-1", "worker"), 0, events.JobStarted{})
	var denied *bus.Denied
	if !errors.As(err, &denied) {
		t.Fatalf("append outside its pools = %v, want *Denied", err)
	}
	seq, err := a.Append(ctx, events.For("job.started", "default", "job-1", "worker"), 0, events.JobStarted{})
	if err != nil {
		t.Fatalf("append after a denial = %d, %v", seq, err)
	}
}

func TestFullStreamSaysSo(t *testing.T) {
	s := newSite(t, func(o *logserver.Options) { o.MaxBytes = 64 << 10 })
	a := s.connect("proposer").Appender(newSigner("proposer"))
	var stored int
	for i := range 1000 {
		subject := events.For("job.proposed", "default", fmt.Sprintf("job-%d", i), "proposer")
		_, err := a.Append(t.Context(), subject, 0, proposal(strings.Repeat("x", 4000)))
		if errors.Is(err, bus.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		stored++
	}
	if stored == 0 || stored > 16 {
		t.Fatalf("%d events of 4 kB fit into 64 kB", stored)
	}
	// A refusal uses no number, and the old events are all there.
	if _, err := a.Append(t.Context(), events.For("job.proposed", "default", "late", "proposer"), 0, proposal(strings.Repeat("x", 4000))); !errors.Is(err, bus.ErrFull) {
		t.Fatal(err)
	}
	checkNumbers(t, s, a.Session(), stored)
}
