package bus_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
)

func TestConsumeKeepsSubjectAndSequence(t *testing.T) {
	s := newSite(t)
	a := s.connect("proposer").Appender(newSigner("proposer"))
	subject := events.For("job.proposed", "default", "job-1", "proposer")
	if _, err := a.Append(t.Context(), subject, 0, proposal("first")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got events.Event
	err := s.connect("gate").Consume(ctx, "gate", 2, func(ctx context.Context, d *bus.Delivery) {
		e, err := events.Open(origin, d.Stored)
		if err != nil {
			t.Error(err)
		}
		got = e
		if err := d.InProgress(ctx); err != nil {
			t.Error(err)
		}
		if err := d.Ack(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	})
	if err != nil || got.Seq != 1 || got.Subject != subject {
		t.Fatalf("consumed %+v, %v", got, err)
	}
}

func TestLiveAndHeartbeats(t *testing.T) {
	s := newSite(t)
	live := make(chan events.Stored, 1)
	beats := make(chan string, 4)
	reader := s.connect("reader")
	stop, err := reader.Live(t.Context(), "bm.job.>", func(st events.Stored) { live <- st })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, who := range []string{"reader", "worker2"} {
		stop, err := s.connect(who).Heartbeats(t.Context(), "default.>", func(tail string, data []byte) { beats <- tail + " " + string(data) })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	w := s.connect("worker")
	if err := w.Heartbeat("default.worker.s1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if b := <-beats; b != "default.worker.s1 x" {
			t.Errorf("heartbeat %q", b)
		}
	}
	subject := events.For("job.started", "default", "job-1", "worker")
	if _, err := w.Appender(newSigner("worker")).Append(t.Context(), subject, 0, events.JobStarted{}); err != nil {
		t.Fatal(err)
	}
	st := <-live
	if e, err := events.Open(origin, st); err != nil || e.Seq != 1 {
		t.Fatalf("live copy %+v, %v", st, err)
	}
}

func TestAskAndServe(t *testing.T) {
	s := newSite(t)
	stop, err := s.connect("auditor").Serve(t.Context(), "banksman-auditor", "1.0.0", "answers", map[string]bus.Endpoint{
		"bmq.jobs.get": func(context.Context, []byte) (any, error) { return map[string]int{"a": 1}, nil },
		"bmq.ready.*": func(context.Context, []byte) (any, error) {
			return nil, &bus.RemoteError{Code: "no_pool", Message: "no such pool"}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var out map[string]int
	if err := s.connect("reader").Ask(t.Context(), "bmq.jobs.get", struct{}{}, &out); err != nil || out["a"] != 1 {
		t.Fatalf("ask = %v, %v", out, err)
	}
	var remote *bus.RemoteError
	if err := s.connect("worker").Ask(t.Context(), "bmq.ready.default", struct{}{}, nil); !errors.As(err, &remote) || remote.Code != "no_pool" {
		t.Fatalf("ask = %v", err)
	}
	if err := s.connect("p7k2").Ask(t.Context(), "bmq.assess", struct{}{}, nil); !errors.Is(err, bus.ErrNoResponder) {
		t.Fatalf("ask nobody = %v", err)
	}
}

func TestOutputAndJobs(t *testing.T) {
	s := newSite(t)
	w, r, a := s.connect("worker"), s.connect("reader"), s.connect("auditor")
	for n, text := range []string{"one", "two", "three"} {
		subject := bus.OutputSubject("default", "job-1", 1, n, "worker")
		for range 2 { // a repeat changes nothing
			if err := w.PutOutput(t.Context(), subject, "stdout", int64(n), []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.PutOutput(t.Context(), subject, "stdout", 0, []byte("other")); err == nil {
			t.Fatal("a chunk was written twice")
		}
	}
	var got []string
	err := r.ReadOutput(t.Context(), "default", "job-1", 1, 1, func(n int, stream string, atMS int64, data []byte) error {
		got = append(got, string(data))
		return nil
	})
	if err != nil || !slices.Equal(got, []string{"two", "three"}) {
		t.Fatalf("output %q, %v", got, err)
	}
	if err := a.Jobs().Put(t.Context(), "job-1", []byte("running")); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := r.Jobs().Get(t.Context(), "job-1"); err != nil || !ok || string(v) != "running" {
		t.Fatalf("job entry %q, %t, %v", v, ok, err)
	}
	if err := a.Jobs().Delete(t.Context(), "job-1"); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := r.Jobs().Get(t.Context(), "job-1"); err != nil || ok {
		t.Fatalf("job entry after delete: %t, %v", ok, err)
	}
}
