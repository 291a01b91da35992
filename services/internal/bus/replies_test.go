package bus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
)

// targets are where a reply must never arrive.
func targets(self string) []string {
	return []string{
		"bm.job.default.planted.approved.p7k2", "bm.job.default.planted.finished.worker2", "bm.trust.site.main.published.root",
		"bm.job.default.planted.started." + self,
		"$KV.bm_jobs.planted", "bmo.default.planted.1.0.worker2", "bmdesk.CONSUMER.DELETE.BANKSMAN.gate",
		"$JS.API.STREAM.DELETE.BANKSMAN", "$JS.API.STREAM.PURGE.BANKSMAN_OUTPUT", "$JS.API.CONSUMER.DELETE.BANKSMAN.gate",
		"CORE.API.STREAM.DELETE.BANKSMAN", "CORE.API.CONSUMER.DELETE.BANKSMAN.gate", "$JS.ACK.BANKSMAN.gate.1.1.1.1.1",
	}
}

func TestRepliesPlantNothing(t *testing.T) {
	s := newSite(t)
	plant(t, s)
	seed := s.connect("worker").Appender(newSigner("worker"))
	for i := range 3 {
		subject := events.For("job.started", "default", fmt.Sprintf("seed-%d", i), "worker")
		if _, err := seed.Append(t.Context(), subject, 0, events.JobStarted{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.connect("proposer").Appender(newSigner("p")).Append(t.Context(), events.For("job.proposed", "default", "seed-9", "proposer"), 0, proposal("x")); err != nil {
		t.Fatal(err)
	}
	stop, err := s.connect("auditor").Serve(t.Context(), "banksman-auditor", "1.0.0", "x", map[string]bus.Endpoint{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	bodies := []string{"", `{"seq":1}`, `{"seq":1,"batch":3}`, `{"last_by_subj":"bm.>"}`, `{"batch":1,"no_wait":true}`}
	for _, a := range s.opts.Trust.Actors {
		if a.Login == "" || a.Has(events.RoleBus) {
			continue
		}
		p, o := s.probe(a.Actor), oracle{a}
		var requests []string
		for _, c := range apiCalls() {
			if c = "CORE.API." + c; o.publishes(c) && !strings.Contains(c, "CONSUMER.DELETE") {
				requests = append(requests, c)
			}
		}
		for _, d := range []string{"gate", "run-default", "resolve-default"} {
			if o.pulls(d) {
				requests = append(requests, "$JS.ACK.BANKSMAN."+d+".1.1.1.1.1")
			}
		}
		requests = append(requests, "$SRV.PING", "bm.job.default.own-"+a.Actor+".started."+a.Actor, "bm.job.default.own-"+a.Actor+".approved."+a.Actor)
		for _, request := range requests {
			for _, target := range targets(a.Actor) {
				for _, body := range bodies {
					if err := p.nc.PublishRequest(request, target, []byte(body)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		p.settle(t)
	}
	checkIntact(t, s)
	all, err := s.srv.Admin().Read(t.Context(), 1, "bm.*.*.planted.>", 100)
	if err != nil || len(all) != 0 {
		t.Errorf("%d events were planted by replies, the first on %s: %v", len(all), all[0].Subject, err)
	}
	if all, err := s.srv.Admin().Read(t.Context(), 1, "bm.trust.>", 100); err != nil || len(all) != 0 {
		t.Errorf("a trust file was planted by a reply: %v", err)
	}
	if _, found, err := s.connect("reader").Jobs().Get(t.Context(), "planted"); err != nil || found {
		t.Errorf("a job entry was planted by a reply: %v", err)
	}
	js, err := jetstream.New(adminConn(t, s))
	if err != nil {
		t.Fatal(err)
	}
	out, err := js.Stream(t.Context(), grants.OutputStream)
	if err != nil || out.CachedInfo().State.Msgs != 0 {
		t.Errorf("output was planted by a reply: %v", err)
	}
}

// TestTheTrickWorksInsideOneAccount is the control of the test above: it plants
// an event by a reply where accounts do not stand between.
func TestTheTrickWorksInsideOneAccount(t *testing.T) {
	s := newSite(t)
	plant(t, s)
	nc := adminConn(t, s)
	if err := nc.PublishRequest("$JS.API.DIRECT.GET.BANKSMAN", "bm.job.default.planted.approved.p7k2", []byte(`{"seq":1}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		all, err := s.srv.Admin().Read(t.Context(), 1, "bm.*.*.planted.>", 100)
		return err == nil && len(all) == 1
	})
}

// plant stores what a reply attack would carry: the attacker's bytes, without
// headers that the server would check again, as the first message.
func plant(t *testing.T, s *site) {
	t.Helper()
	r, err := s.probe("worker").nc.Request("bm.job.default.seed.started.worker", []byte("forged"), attempt)
	if err != nil || sequenceOf(t, r.Data) != 1 {
		t.Fatal(err)
	}
}

// attempt is how long a bare request may take.
const attempt = 10 * time.Second

// sequenceOf reads an acknowledgement.
func sequenceOf(t interface{ Fatal(...any) }, data []byte) uint64 {
	var ack struct{ Seq uint64 }
	if err := json.Unmarshal(data, &ack); err != nil || ack.Seq == 0 {
		t.Fatal(string(data), err)
	}
	return ack.Seq
}

func adminConn(t *testing.T, s *site) *nats.Conn { return s.probe("bus").nc }

func TestReadersMakeHarmlessConsumersOnly(t *testing.T) {
	s := newSite(t)
	subject := events.For("job.started", "default", "job-1", "worker")
	if _, err := s.connect("worker").Appender(newSigner("worker")).Append(t.Context(), subject, 0, events.JobStarted{}); err != nil {
		t.Fatal(err)
	}
	beats := make(chan string, 10)
	stop, err := s.connect("monitor").Heartbeats(t.Context(), ">", func(tail string, _ []byte) { beats <- tail })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	r := s.probe("reader")
	create := func(name, body string) string {
		m, err := r.nc.Request("CORE.API.CONSUMER.CREATE.BANKSMAN."+name, []byte(body), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return string(m.Data)
	}
	for _, deliver := range []string{"bml.hb.default.worker.s1", "$KV.bm_jobs.planted", "bmo.default.planted.1.0.worker"} {
		body := fmt.Sprintf(`{"stream_name":"BANKSMAN","config":{"name":"x","deliver_subject":%q,"ack_policy":"none"}}`, deliver)
		if a := create("x", body); !strings.Contains(a, "pull only") {
			t.Errorf("push consumer to %s: %s", deliver, a)
		}
	}
	for name, body := range map[string]string{
		"gate": `{"stream_name":"BANKSMAN","config":{"name":"gate","ack_policy":"none"}}`,
		"y":    `{"stream_name":"BANKSMAN","config":{"name":"gate","ack_policy":"none"}}`,
		"z":    `{"stream_name":"BANKSMAN_OUTPUT","config":{"name":"z"}}`,
		"u":    `{"stream_name":"BANKSMAN","config":{"name":"u"},"config":{"name":"u","deliver_subject":"bm.x"}}`,
		"v":    `not json`,
	} {
		if a := create(name, body); !strings.Contains(a, `"error"`) {
			t.Errorf("create %s with %s: %s", name, body, a)
		}
	}
	if a := create("mine", `{"stream_name":"BANKSMAN","config":{"durable_name":"mine","ack_policy":"explicit","inactive_threshold":3600000000000}}`); strings.Contains(a, `"error"`) {
		t.Fatal(a)
	}
	sub, err := r.nc.SubscribeSync("_IB.reader.page")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.nc.PublishRequest("CORE.API.CONSUMER.MSG.NEXT.BANKSMAN.mine", "_IB.reader.page", []byte(`{"batch":1}`)); err != nil {
		t.Fatal(err)
	}
	if m, err := sub.NextMsg(5 * time.Second); err != nil || m.Subject != subject.String() {
		t.Fatalf("page: %v, %v", m, err)
	}
	checkIntact(t, s)
	js, err := jetstream.New(adminConn(t, s))
	if err != nil {
		t.Fatal(err)
	}
	cons, err := js.Consumer(t.Context(), grants.Stream, "mine")
	if err != nil {
		t.Fatal(err)
	}
	if c := cons.CachedInfo().Config; c.Durable != "" || !c.MemoryStorage || c.AckPolicy != jetstream.AckNonePolicy || c.InactiveThreshold > 5*time.Minute {
		t.Errorf("the reader's consumer is %+v", c)
	}
	if len(beats) != 0 {
		t.Errorf("heartbeat %s was planted", <-beats)
	}
}

func TestLiveAndHeartbeatsInOneSubscription(t *testing.T) {
	s := newSite(t)
	r := s.probe("reader")
	sub, err := r.nc.SubscribeSync("bml.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	w := s.connect("worker")
	if err := w.Heartbeat("default.worker.s1", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Appender(newSigner("worker")).Append(t.Context(), events.For("job.started", "default", "job-1", "worker"), 0, events.JobStarted{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bml.hb.default.worker.s1", "bml.bm.job.default.job-1.started.worker"} {
		if m, err := sub.NextMsg(5 * time.Second); err != nil || m.Subject != want {
			t.Fatalf("heard %v, %v, want %s", m, err, want)
		}
	}
}

func TestSubscribingIsDeniedAtOnce(t *testing.T) {
	s := newSite(t)
	var denied *bus.Denied
	if _, err := s.connect("proposer").Heartbeats(within(t, 4*time.Second), ">", func(string, []byte) {}); !errors.As(err, &denied) {
		t.Errorf("heartbeats for the proposer: %v", err)
	}
	if _, err := s.connect("worker").Serve(within(t, 4*time.Second), "fake", "1.0.0", "x", map[string]bus.Endpoint{"bmq.jobs.get": nil}); !errors.As(err, &denied) {
		t.Errorf("a worker serves queries: %v", err)
	}
	if err := s.connect("worker").Consume(within(t, 4*time.Second), "gate", 2, nil); !errors.As(err, &denied) {
		t.Errorf("a worker takes from the gate's queue: %v", err)
	}
	if _, err := s.connect("worker").StreamState(within(t, 4*time.Second)); !errors.As(err, &denied) {
		t.Errorf("a worker asks for the state: %v", err)
	}
}
