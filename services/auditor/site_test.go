package auditor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/host/embed"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
)

// testSite is a real site with a real bus in this process.
type testSite struct {
	t      testing.TB
	layout site.Layout
	config host.SiteConfig
	busCfg host.BusConfig
	bus    host.Bus
	plan   *site.Plan
	log    *slog.Logger

	conns map[string]*bus.Conn
	pens  map[string]*bus.Appender
}

// newSite makes a site whose bus is reached inside this process only.
func newSite(t testing.TB) *testSite {
	t.Helper()
	return newSiteAt(t, "127.0.0.1:-1")
}

// newSiteAt makes a site whose bus listens.
func newSiteAt(t testing.TB, listen string) *testSite {
	t.Helper()
	plan, err := site.NewPlan("Ada")
	if err != nil {
		t.Fatal(err)
	}
	s := &testSite{t: t, layout: site.Layout{Dir: filepath.Join(t.TempDir(), "site")}, plan: plan, conns: map[string]*bus.Conn{}, pens: map[string]*bus.Appender{}}
	s.log = slog.New(slog.NewTextHandler(writer{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s.busCfg = host.DefaultBus()
	s.busCfg.Listen = listen
	s.busCfg.MaxBytes, s.busCfg.Output = 64<<20, 16<<20
	s.config = host.SiteConfig{Origin: plan.Origin, RootKey: string(plan.RootKey()), BusURL: "tls://" + s.busCfg.Listen}
	own := DefaultConfig()
	own.CheckS = 1
	err = plan.Create(s.layout, site.Contents{
		Config: config.Render(config.Section{Name: "site", Into: &s.config}, config.Section{Name: "bus", Into: &s.busCfg}, config.Section{Name: "auditor", Into: &own}),
		Policy: []byte("# a test\n"), BusURL: s.config.BusURL, Now: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(s.stop)
	return s
}

// writer shows what is logged beside the test that caused it.
type writer struct{ t testing.TB }

func (w writer) Write(b []byte) (int, error) {
	if os.Getenv("BANKSMAN_TEST_LOG") != "" {
		os.Stderr.Write(b)
	}
	return len(b), nil
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *testSite) start() {
	s.t.Helper()
	var err error
	if s.bus, err = embed.Start(s.t.Context(), s.layout, s.config, s.busCfg, slog.New(slog.NewTextHandler(io.Discard, nil))); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testSite) stop() {
	for name, c := range s.conns {
		c.Close()
		delete(s.conns, name)
		delete(s.pens, name)
	}
	if s.bus != nil {
		s.bus.Close()
		s.bus = nil
	}
}

var powers = map[string]events.Role{
	"proposer": events.RoleProposer, "gate": events.RoleGate, "worker": events.RoleWorker, "auditor": events.RoleAuditor,
	"reader": events.RoleReader, "bus": events.RoleBus,
}

// conn is an actor's connection, made when first asked for.
func (s *testSite) conn(actor string) *bus.Conn {
	s.t.Helper()
	if c := s.conns[actor]; c != nil {
		return c
	}
	c := s.dial(actor)
	s.conns[actor] = c
	return c
}

func (s *testSite) dial(actor string) *bus.Conn {
	s.t.Helper()
	power := powers[actor]
	if actor == s.plan.Person {
		power = events.RolePerson
	}
	c, err := host.Connection{Layout: s.layout, Site: s.config, Actor: actor, Power: power, Log: s.log, Use: s.bus.Use}.Dial(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *testSite) key(actor string) *keys.Signer {
	s.t.Helper()
	k, err := keys.LoadSigner(s.layout.SignKey(actor), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

// say appends an event of an actor.
func (s *testSite) say(actor string, subject events.Subject, expect uint64, payload any) uint64 {
	s.t.Helper()
	pen := s.pens[actor]
	if pen == nil {
		pen = s.conn(actor).Appender(host.Signing{Signer: s.key(actor)})
		s.pens[actor] = pen
	}
	seq, err := pen.Append(s.t.Context(), subject, expect, payload)
	if err != nil {
		s.t.Fatal(err)
	}
	return seq
}

func digest(t testing.TB, payload any) string {
	t.Helper()
	b, err := events.Encode(payload)
	if err != nil {
		t.Fatal(err)
	}
	return events.Digest(b)
}

// story is a job that goes from its proposal to an approval by policy.
type story struct {
	id                                 string
	proposed, resolved, approved, last uint64
	proposal, resolution               string
}

func (s *testSite) propose(id string) *story {
	s.t.Helper()
	p := proposal(id)
	j := &story{id: id, proposal: digest(s.t, p)}
	j.proposed = s.say("proposer", events.For("job.proposed", "default", id, "proposer"), 0, p)
	j.last = j.proposed
	return j
}

func (s *testSite) approve(j *story) {
	s.t.Helper()
	r := events.JobResolved{Proposal: j.proposal, Policy: "p", Program: events.FileDigest{Path: "/bin/true", SHA256: "00"}, Cwd: "/"}
	j.resolution = digest(s.t, r)
	j.resolved = s.say("worker", events.For("job.resolved", "default", j.id, "worker"), j.last, r)
	j.approved = s.say("gate", events.For("job.approved", "default", j.id, "gate"), j.resolved, events.JobApproved{
		Proposal: j.proposal, Resolution: j.resolution, Policy: "p", Basis: "policy", Ruling: events.Ruling{Code: "rule", Reason: "a test"},
		ValidS: 3600, MaxAttempts: 1,
	})
	j.last = j.approved
}

// finish starts the job and ends it.
func (s *testSite) finish(j *story) {
	s.t.Helper()
	started := s.say("worker", events.For("job.started", "default", j.id, "worker"), j.last, events.JobStarted{
		Proposal: j.proposal, Resolution: j.resolution, Policy: "p", Approvals: []uint64{j.approved}, Sealed: j.approved, Attempt: 1, LeaseS: 15, Bound: "fd",
	})
	j.last = s.say("worker", events.For("job.finished", "default", j.id, "worker"), started, events.JobFinished{Started: started, Outcome: "succeeded"})
}

// running is an auditor in this process.
type running struct {
	cancel context.CancelFunc
	done   chan error

	mu     sync.Mutex
	ready  bool
	reason string
	turned chan struct{}
}

// audit runs the auditor on a connection of its own. Wrap may change what it sees of
// the stream, set its configuration.
func (s *testSite) audit(wrap func(Stream) Stream, set ...func(*Config)) *running {
	s.t.Helper()
	conn := s.dial("auditor")
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel, done: make(chan error, 1), turned: make(chan struct{}, 1)}
	env := &host.Env{
		Layout: s.layout, Site: s.config, Actor: "auditor", Version: "0.0.1", Log: s.log, Bus: conn,
		Append: conn.Appender(host.Signing{Signer: s.key("auditor")}), Standing: host.NewStanding(conn, s.config, s.layout), Report: r.report,
	}
	role := New()
	role.config.CheckS = 1
	role.wrap = wrap
	for _, f := range set {
		f(&role.config)
	}
	go func() {
		err := role.Run(ctx, env)
		conn.Close()
		r.done <- err
	}()
	s.t.Cleanup(func() { r.stop(s.t) })
	return r
}

func (r *running) report(ready bool, reason string) {
	r.mu.Lock()
	r.ready, r.reason = ready, reason
	r.mu.Unlock()
	select {
	case r.turned <- struct{}{}:
	default:
	}
}

// until waits for the board to say something.
func (r *running) until(t testing.TB, what string, ok func(ready bool, reason string) bool) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		ready, reason := r.ready, r.reason
		r.mu.Unlock()
		if ok(ready, reason) {
			return
		}
		select {
		case <-r.turned:
		case err := <-r.done:
			r.done <- err
			t.Fatalf("the auditor ended while waiting for %s: %v", what, err)
		case <-timeout:
			t.Fatalf("no %s; the board says ready %v, %q", what, ready, reason)
		}
	}
}

func (r *running) stop(t testing.TB) {
	t.Helper()
	r.cancel()
	select {
	case err := <-r.done:
		r.done <- nil
		if err != nil {
			t.Errorf("the auditor ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the auditor does not end")
	}
}

// heard follows the auditor's events until one is the one waited for.
func (s *testSite) heard(what string, is func(payload any) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	found := errors.New("found")
	err := s.conn("reader").Follow(ctx, 1, auditFilter(events.FirstEpoch), func(st events.Stored) error {
		e, err := events.Open(s.plan.Origin, st)
		if err != nil {
			return fmt.Errorf("audit event %d: %w", st.Seq, err)
		}
		if is(e.Payload) {
			return found
		}
		return nil
	})
	if !errors.Is(err, found) {
		s.t.Fatalf("waiting for %s: %v", what, err)
	}
}

// sealed waits until the stream says that a sequence is sealed.
func (s *testSite) sealed(seq uint64) {
	s.t.Helper()
	s.heard(fmt.Sprintf("a seal through %d", seq), func(p any) bool {
		a, ok := p.(*events.AuditSealed)
		return ok && a.ThroughSeq >= seq
	})
}

// audits returns every audit event of the stream.
func (s *testSite) audits() (sealed []*events.AuditSealed, violations []*events.AuditViolationFound, gaps []*events.AuditGapFound) {
	s.t.Helper()
	for next := uint64(1); ; {
		page, err := s.conn("reader").Read(s.t.Context(), next, auditFilter(events.FirstEpoch), 500)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(page) == 0 {
			return sealed, violations, gaps
		}
		for _, st := range page {
			next = st.Seq + 1
			e, err := events.Open(s.plan.Origin, st)
			if err != nil {
				s.t.Fatal(err)
			}
			switch p := e.Payload.(type) {
			case *events.AuditSealed:
				sealed = append(sealed, p)
			case *events.AuditViolationFound:
				violations = append(violations, p)
			case *events.AuditGapFound:
				gaps = append(gaps, p)
			}
		}
	}
}

func (s *testSite) verify() Report {
	s.t.Helper()
	r, err := Verify(s.t.Context(), Options{
		LogDir: s.layout.AuditLog(), HeadFile: s.layout.AuditHead(), Origin: s.plan.Origin, RootKey: s.plan.RootKey(), Bus: NewestOf(s.conn("reader")),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}
