package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/logserver"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/trust"
)

const yardOrigin = "yard"

// patience bounds every wait of these tests; reaching it is a failure.
const patience = 30 * time.Second

// yard is a site on a real embedded bus with real keys: everything but the
// worker is played by the test.
type yard struct {
	t       testing.TB
	dir     string // the banksman folder
	ground  string // where jobs work and programs lie, outside of it
	opts    logserver.Options
	srv     *logserver.Server
	root    *keys.Signer
	signers map[string]*keys.Signer
	logins  map[string]*keys.Login
	powers  map[string]events.Role
	conns   map[string]*bus.Conn
	voices  map[string]*bus.Appender
	reads   *standing.Standing
	n       int         // jobs so far
	closed  atomic.Bool // what the played auditor says of dispatch
}

type signing struct{ *keys.Signer }

func (s signing) Key() string { return string(s.Public()) }

// newYard opens a site with this policy; every %s in it is the ground.
func newYard(t testing.TB, policyText string) *yard {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{
		t: t, dir: filepath.Join(base, "banksman"), ground: filepath.Join(base, "ground"),
		signers: map[string]*keys.Signer{}, logins: map[string]*keys.Login{}, powers: map[string]events.Role{},
		conns: map[string]*bus.Conn{}, voices: map[string]*bus.Appender{},
	}
	for _, dir := range []string{y.dir, filepath.Join(y.ground, "bin"), filepath.Join(y.ground, "work")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	file := y.enrol()
	y.opts = logserver.Options{
		StoreDir: filepath.Join(base, "store"), Port: freePort(t), MaxBytes: 64 << 20, Pools: []string{"default"}, Trust: *file,
	}
	y.open()
	t.Cleanup(y.close)
	y.conns["bus"] = y.srv.Admin()
	m, err := events.New(yardOrigin, events.For("trust.published", events.SiteScope, events.TrustID, "root"),
		events.ID{Actor: "root", Session: "00000000000000000001", N: 1}, time.Now(), 0, file)
	must(t, err)
	m.Sign(yardOrigin, string(y.root.Public()), y.root.Sign)
	_, err = y.srv.Admin().AppendRaw(t.Context(), m)
	must(t, err)
	y.reads = y.standing(y.conn("reader"))
	y.publish(policyText)
	y.serveAudit()
	return y
}

// enrol makes the keys and the trust file.
func (y *yard) enrol() *events.TrustPublished {
	file := &events.TrustPublished{Version: 1, Origin: yardOrigin}
	for name, roles := range map[string][]events.Role{
		"proposer": {events.RoleProposer}, "gate": {events.RoleGate}, "p7k2": {events.RolePerson, events.RoleAdmin},
		"worker": {events.RoleWorker}, "other": {events.RoleWorker}, "auditor": {events.RoleAuditor},
		"bus": {events.RoleBus}, "reader": {events.RoleReader},
	} {
		sign, err := keys.GenerateSigner()
		must(y.t, err)
		login, err := keys.GenerateLogin()
		must(y.t, err)
		y.signers[name], y.logins[name], y.powers[name] = sign, login, roles[0]
		a := events.Actor{Actor: name, Name: name, Roles: roles, Login: login.Public(), Sign: string(sign.Public())}
		file.Actors = append(file.Actors, a)
	}
	var err error
	y.root, err = keys.GenerateSigner()
	must(y.t, err)
	return file
}

func (y *yard) open() {
	y.t.Helper()
	srv, err := logserver.Start(context.Background(), y.opts)
	must(y.t, err)
	y.srv = srv
}

func (y *yard) close() { y.srv.Shutdown() }

func (y *yard) conn(actor string) *bus.Conn {
	y.t.Helper()
	if c := y.conns[actor]; c != nil {
		return c
	}
	c := y.dial(actor)
	y.conns[actor] = c
	y.t.Cleanup(c.Close)
	return c
}

func (y *yard) dial(actor string) *bus.Conn {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := bus.Connect(ctx, bus.Config{
		URL: y.srv.ClientURL(), Actor: actor, Role: y.powers[actor], Origin: yardOrigin, Login: y.logins[actor], Name: actor,
	})
	must(y.t, err)
	return c
}

func (y *yard) standing(c *bus.Conn) *standing.Standing {
	return standing.New(c, trust.New(yardOrigin, y.root.Public()), policy.Env{DataDir: y.dir, Homes: []string{"/root"}})
}

// say appends an event as an actor.
func (y *yard) say(actor string, kind events.Kind, scope, id string, expect uint64, payload any) uint64 {
	y.t.Helper()
	v := y.voices[actor]
	if v == nil {
		v = y.conn(actor).Appender(signing{y.signers[actor]})
		y.voices[actor] = v
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seq, err := v.Append(ctx, events.For(kind, scope, id, actor), expect, payload)
	must(y.t, err)
	return seq
}

// publish puts a policy in force.
func (y *yard) publish(text string) {
	y.t.Helper()
	text = string(bytes.ReplaceAll([]byte(text), []byte("%s"), []byte(y.ground)))
	var expect uint64
	if st, found, err := y.conn("reader").Last(y.t.Context(), events.Filter("policy", events.PolicyID)); err == nil && found {
		expect = st.Seq
	}
	y.say("p7k2", "policy.published", events.SiteScope, events.PolicyID, expect,
		&events.PolicyPublished{Digest: events.Digest([]byte(text)), Text: text})
}

// program writes an executable script into the ground's bin.
func (y *yard) program(name, body string) string {
	y.t.Helper()
	path := filepath.Join(y.ground, "bin", name)
	must(y.t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	return path
}

func (y *yard) work(name string) string { return filepath.Join(y.ground, "work", name) }

// propose asks for a command; change may alter the proposal.
func (y *yard) propose(argv []string, change ...func(*events.JobProposed)) string {
	y.t.Helper()
	y.n++
	id := fmt.Sprintf("job%d", y.n)
	p := &events.JobProposed{
		Argv: argv, Cwd: filepath.Join(y.ground, "work"), Pool: "default", TimeoutS: 60, MaxAttempts: 1, ExpiresS: 3600,
		Proposer: events.Proposer{Kind: "agent", ID: "local"},
	}
	for _, f := range change {
		f(p)
	}
	y.say("proposer", "job.proposed", "default", id, 0, p)
	return id
}

// approve says yes as a person, after asking for one.
func (y *yard) approve(id string, change ...func(*events.JobApproved)) uint64 {
	y.t.Helper()
	j := y.await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	p, err := y.reads.Policy(y.t.Context())
	must(y.t, err)
	seq := y.say("gate", "job.assessed", "default", id, j.LastSeq, &events.JobAssessed{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: p.Digest(), Quorum: 1,
		Ruling: events.Ruling{Code: "rule", Reason: "the rule asks"},
	})
	a := y.approval(id, "person")
	for _, f := range change {
		f(a)
	}
	return y.say("p7k2", "job.approved", "default", id, seq, a)
}

// allow says yes as the gate.
func (y *yard) allow(id string) uint64 {
	y.t.Helper()
	j := y.await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	return y.say("gate", "job.approved", "default", id, j.LastSeq, y.approval(id, "policy"))
}

func (y *yard) approval(id, basis string) *events.JobApproved {
	j := y.job(id)
	p, err := y.reads.Policy(y.t.Context())
	must(y.t, err)
	return &events.JobApproved{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: p.Digest(), Basis: basis,
		Ruling: events.Ruling{Code: "rule", Reason: "the rule allows"}, ValidS: 600, MaxAttempts: j.Proposal.MaxAttempts,
	}
}

// seal seals the audit log through everything stored so far.
func (y *yard) seal() { y.t.Helper(); y.sealAs("auditor", "open") }

func (y *yard) sealAs(actor, dispatch string) {
	y.t.Helper()
	last, err := y.conn("reader").LastSeq(y.t.Context())
	must(y.t, err)
	var expect uint64
	if st, found, err := y.conn("reader").Last(y.t.Context(), events.Filter("audit", "epoch-1")); err == nil && found {
		expect = st.Seq
	}
	y.say(actor, "audit.sealed", events.SiteScope, "epoch-1", expect,
		&events.AuditSealed{Note: "note", Size: int64(last), Root: "root", ThroughSeq: last, Dispatch: dispatch})
}

func (y *yard) job(id string) lifecycle.Job {
	y.t.Helper()
	j, err := y.reads.Job(y.t.Context(), id)
	must(y.t, err)
	return j
}

// await folds the job at each of its events until it is as wanted.
func (y *yard) await(id, what string, want func(lifecycle.Job) bool) lifecycle.Job {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), patience)
	defer cancel()
	found := errors.New("found")
	var j lifecycle.Job
	err := y.conn("reader").Follow(ctx, 1, events.Filter("job", id), func(events.Stored) error {
		var err error
		if j, err = y.reads.Job(ctx, id); err == nil && want(j) {
			return found
		}
		return err
	})
	if !errors.Is(err, found) {
		y.t.Fatalf("job %s was never %s: status %q, tainted %q, declines %v, attempts %+v, %v", id, what, j.Status, j.TaintCode, j.Declines, j.Attempts, err)
	}
	return j
}

func (y *yard) ends(id string) lifecycle.Job {
	y.t.Helper()
	return y.await(id, "ended", func(j lifecycle.Job) bool { return j.Status.Final() })
}

// output reads what the job wrote to a stream in its attempt.
func (y *yard) output(id string, attempt int, stream string) []byte {
	y.t.Helper()
	var out []byte
	err := y.conn("reader").ReadOutput(y.t.Context(), "default", id, attempt, 1, func(_ int, s string, _ int64, data []byte) error {
		if s == stream {
			out = append(out, data...)
		}
		return nil
	})
	must(y.t, err)
	return out
}

// hand is a worker at work.
type hand struct {
	y     *yard
	shift *shift
	conn  *bus.Conn
	stop  context.CancelFunc
	done  chan error

	mu    sync.Mutex
	board []string
	moved chan struct{} // closed and replaced with every line of the board
}

// hire makes a worker of an actor on a host of its own; it does not run yet.
func (y *yard) hire(actor, machine string, change ...func(*Config)) *hand {
	y.t.Helper()
	cfg := DefaultConfig()
	cfg.Actor, cfg.DrainS = actor, 20
	for _, f := range change {
		f(&cfg)
	}
	must(y.t, cfg.Validate())
	h := &hand{y: y, conn: y.dial(actor), done: make(chan error, 1), moved: make(chan struct{})}
	layout := site.Layout{Dir: y.dir}
	if machine != "" {
		layout.Dir = filepath.Join(y.dir, machine)
	}
	env := &host.Env{
		Layout: layout, Actor: actor, Version: "0.0.1", Log: slog.New(slog.NewTextHandler(testWriter{y.t}, nil)),
		Bus: h.conn, Append: h.conn.Appender(signing{y.signers[actor]}), Standing: y.standing(h.conn), Report: h.report,
	}
	j, err := openJournal(layout.WorkerState(actor))
	must(y.t, err)
	h.shift = newShift(cfg, env, j)
	return h
}

// run lets it work until the test ends.
func (h *hand) run() *hand {
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	go func() { h.done <- h.shift.run(ctx) }()
	h.y.t.Cleanup(func() {
		h.leave()
		h.conn.Close()
	})
	return h
}

// leave stops it and waits.
func (h *hand) leave() {
	h.y.t.Helper()
	if h.stop == nil {
		return
	}
	h.stop()
	h.stop = nil
	select {
	case err := <-h.done:
		if err != nil {
			h.y.t.Errorf("the worker ended with %v", err)
		}
	case <-time.After(patience):
		h.y.t.Fatal("the worker did not stop")
	}
}

func (h *hand) report(ready bool, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.board = append(h.board, fmt.Sprint(ready, " ", reason))
	close(h.moved)
	h.moved = make(chan struct{})
}

// shows waits for a line on the board.
func (h *hand) shows(what string, want func(line string) bool) {
	h.y.t.Helper()
	limit := time.After(patience)
	for {
		h.mu.Lock()
		seen, moved := slices.ContainsFunc(h.board, want), h.moved
		board := slices.Clone(h.board)
		h.mu.Unlock()
		if seen {
			return
		}
		select {
		case <-moved:
		case <-limit:
			h.y.t.Fatalf("the board never showed %s, but %q", what, board)
		}
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freePort(t testing.TB) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// serveAudit plays the auditor, which has found nothing wrong unless y.closed.
func (y *yard) serveAudit() {
	y.t.Helper()
	stop, err := y.conn("auditor").Serve(y.t.Context(), "banksman-auditor", "1.0.0", "audit log", map[string]bus.Endpoint{
		query.Audit: func(context.Context, []byte) (any, error) {
			dispatch := "open"
			if y.closed.Load() {
				dispatch = "closed"
			}
			return query.AuditStatus{Dispatch: dispatch}, nil
		},
	})
	must(y.t, err)
	y.t.Cleanup(stop)
}

// serveReady plays the index, for which these jobs wait for a start.
func (y *yard) serveReady(ids ...string) {
	y.t.Helper()
	stop, err := y.conn("auditor").Serve(y.t.Context(), "banksman-auditor", "1.0.0", "index", map[string]bus.Endpoint{
		"bmq.ready.*": func(context.Context, []byte) (any, error) { return map[string][]string{"jobs": ids}, nil },
	})
	must(y.t, err)
	y.t.Cleanup(stop)
}
