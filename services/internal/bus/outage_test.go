package bus_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/logserver"
)

// proxy stands between a client and the server and can swallow what the server
// answers and cut the line.
type proxy struct {
	t        *testing.T
	listener net.Listener
	target   string

	mu      sync.Mutex
	deaf    bool // answers of the server are thrown away
	conns   []net.Conn
	swallow chan struct{} // gets a token whenever an answer was thrown away
}

func newProxy(t *testing.T, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: l, target: target, swallow: make(chan struct{}, 100)}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { p.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		group.Wait()
	})
	return p
}

func (p *proxy) carry(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	var group sync.WaitGroup
	group.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
	group.Go(func() { p.answers(client, server); _ = client.Close() })
	group.Wait()
}

// answers copies from the server until told to be deaf.
func (p *proxy) answers(client, server net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		deaf := p.deaf
		p.mu.Unlock()
		if deaf {
			p.swallow <- struct{}{}
			continue
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) setDeaf(deaf bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = deaf
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func tcp(o *logserver.Options) { o.Port = 0 }

// proxied connects an actor through a proxy.
func (s *site) proxied(actor string) (*bus.Conn, *proxy) {
	p := newProxy(s.t, strings.TrimPrefix(s.srv.ClientURL(), "nats://"))
	cfg := s.config(actor)
	cfg.URL = "nats://" + p.listener.Addr().String()
	c, err := bus.Connect(s.t.Context(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c, p
}

func TestLostAnswerIsFoundAgain(t *testing.T) {
	s := newSite(t, tcp)
	conn, p := s.proxied("proposer")
	a := conn.Appender(newSigner("proposer"))
	for i := range 3 {
		p.setDeaf(true)
		healed := make(chan struct{})
		go func() {
			defer close(healed)
			<-p.swallow // the server has answered, and nobody heard it
			p.setDeaf(false)
			p.cut()
		}()
		subject := events.For("job.proposed", "default", fmt.Sprintf("job-%d", i), "proposer")
		seq, err := a.Append(t.Context(), subject, 0, proposal("x"))
		if err != nil || seq != uint64(i+1) {
			t.Fatalf("append %d whose answer was lost = %d, %v", i, seq, err)
		}
		<-healed
	}
	state, err := s.connect("auditor").StreamState(t.Context())
	if err != nil || state.Messages != 3 {
		t.Fatalf("stream holds %d events, want 3: %v", state.Messages, err)
	}
	checkNumbers(t, s, a.Session(), 3)
}

func TestNextAppendSettlesAnUnknownOutcome(t *testing.T) {
	s := newSite(t, tcp)
	conn, p := s.proxied("proposer")
	a := conn.Appender(newSigner("proposer"))
	first := events.For("job.proposed", "default", "job-1", "proposer")
	ctx, giveUp := context.WithCancel(t.Context())
	p.setDeaf(true)
	go func() {
		<-p.swallow
		giveUp()
	}()
	if _, err := a.Append(ctx, first, 0, proposal("x")); err == nil {
		t.Fatal("append whose answer was lost succeeded")
	}
	p.setDeaf(false)
	p.cut()
	second := events.For("job.proposed", "default", "job-2", "proposer")
	if seq, err := a.Append(t.Context(), second, 0, proposal("y")); err != nil || seq != 2 {
		t.Fatalf("append after an unknown outcome = %d, %v", seq, err)
	}
	checkNumbers(t, s, a.Session(), 2)
}

// checkNumbers reads the whole stream and wants one session's events numbered
// from 1 to n.
func checkNumbers(t *testing.T, s *site, session string, n int) {
	t.Helper()
	all, err := s.connect("auditor").Read(t.Context(), 1, "bm.>", 100)
	if err != nil || len(all) != n {
		t.Fatalf("read %d events, want %d: %v", len(all), n, err)
	}
	for i, st := range all {
		e, err := events.Open(origin, st)
		if err != nil || e.ID.N != uint64(i+1) || e.ID.Session != session {
			t.Errorf("event %d: %s, %v", i+1, e.ID, err)
		}
	}
}

func TestRawAppendIsIdempotent(t *testing.T) {
	s := newSite(t)
	signer := newSigner("root")
	id := events.ID{Actor: "root", Session: "00000000000000000001", N: 1}
	m, err := events.New(origin, events.For("trust.published", events.SiteScope, events.TrustID, "root"), id, time.Now(), 0, s.opts.Trust)
	if err != nil {
		t.Fatal(err)
	}
	m.Sign(origin, signer.Key(), signer.Sign)
	for _, who := range []string{"bus", "p7k2"} {
		for range 2 {
			if seq, err := s.connect(who).AppendRaw(t.Context(), m); err != nil || seq != 1 {
				t.Fatalf("raw append by %s = %d, %v", who, seq, err)
			}
		}
	}
}

// restart ends the server and starts it on the same port and store.
func (s *site) restart() {
	s.t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.srv.ClientURL(), "nats://"))
	if err != nil {
		s.t.Fatal(err)
	}
	if s.opts.Port, err = strconv.Atoi(port); err != nil {
		s.t.Fatal(err)
	}
	s.srv.Shutdown()
	s.start()
}

func TestEverythingComesBackAfterARestart(t *testing.T) {
	s := newSite(t, tcp)
	const jobs = 20
	auditor, gate := s.connect("auditor"), s.connect("gate")
	a := s.connect("proposer").Appender(newSigner("proposer"))
	propose := func(i int) {
		subject := events.For("job.proposed", "default", fmt.Sprintf("job-%d", i), "proposer")
		if _, err := a.Append(t.Context(), subject, 0, proposal("x")); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })

	followed, consumed := make(chan uint64, 10*jobs), make(chan uint64, 10*jobs)
	group.Go(func() {
		err := auditor.Follow(ctx, 1, "bm.>", func(st events.Stored) error { followed <- st.Seq; return nil })
		if err != nil {
			t.Error(err)
		}
	})
	group.Go(func() {
		err := gate.Consume(ctx, "gate", 3, func(ctx context.Context, d *bus.Delivery) {
			if d.Ack(ctx) == nil {
				consumed <- d.Stored.Seq
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
	for i := range jobs {
		if i == jobs/3 || i == 2*jobs/3 {
			s.restart()
		}
		propose(i)
	}
	for want := uint64(1); want <= jobs; want++ {
		if got := <-followed; got != want {
			t.Fatalf("followed %d, want %d", got, want)
		}
	}
	seen := map[uint64]bool{}
	for len(seen) < jobs {
		seen[<-consumed] = true
	}
}
