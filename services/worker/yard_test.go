package worker

import (
	"bytes"
	"context"
	"fmt"
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
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
)

// patience bounds every wait of these tests; reaching it is a failure.
const patience = stage.Patience

// yard is a stage with two workers: everything but them is played by the test.
type yard struct {
	*stage.Stage
	t      testing.TB
	dir    string // the banksman folder
	ground string // where jobs work and programs lie, outside of it
	reads  *standing.Standing
	n      int         // jobs so far
	closed atomic.Bool // what the played auditor says of dispatch
}

// newYard opens a site with this policy; every %s in it is the ground.
func newYard(t testing.TB, policyText string) *yard {
	t.Helper()
	s := stage.New(t, stage.Options{TCP: true, Actors: map[string][]events.Role{
		"proposer": {events.RoleProposer}, "gate": {events.RoleGate}, "p7k2": {events.RolePerson, events.RoleAdmin},
		"worker": {events.RoleWorker}, "other": {events.RoleWorker}, "auditor": {events.RoleAuditor},
		"bus": {events.RoleBus}, "reader": {events.RoleReader},
	}})
	y := &yard{Stage: s, t: t, dir: s.Layout.Dir, ground: s.Work, reads: s.Standing("reader")}
	for _, dir := range []string{"bin", "work"} {
		must(t, os.MkdirAll(filepath.Join(y.ground, dir), 0o755))
	}
	must(t, os.Chmod(y.ground, 0o755)) // jobs of other users, too
	y.publish(policyText)
	y.serveAudit()
	return y
}

// publish puts a policy in force.
func (y *yard) publish(text string) {
	y.t.Helper()
	text = string(bytes.ReplaceAll([]byte(text), []byte("%s"), []byte(y.ground)))
	var expect uint64
	if st, found, err := y.Conn("reader").Last(y.t.Context(), events.Filter("policy", events.PolicyID)); err == nil && found {
		expect = st.Seq
	}
	y.Say("p7k2", "policy.published", events.SiteScope, events.PolicyID, expect,
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
	y.Say("proposer", "job.proposed", "default", id, 0, p)
	return id
}

// approve says yes as a person, after asking for one.
func (y *yard) approve(id string, change ...func(*events.JobApproved)) uint64 {
	y.t.Helper()
	j := y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	p, err := y.reads.Policy(y.t.Context())
	must(y.t, err)
	seq := y.Say("gate", "job.assessed", "default", id, j.LastSeq, &events.JobAssessed{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: p.Digest(), Quorum: 1,
		Ruling: events.Ruling{Code: "rule", Reason: "the rule asks"},
	})
	a := y.approval(id, "person")
	for _, f := range change {
		f(a)
	}
	return y.Say("p7k2", "job.approved", "default", id, seq, a)
}

// allow says yes as the gate.
func (y *yard) allow(id string) uint64 {
	y.t.Helper()
	j := y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	return y.Say("gate", "job.approved", "default", id, j.LastSeq, y.approval(id, "policy"))
}

func (y *yard) approval(id, basis string) *events.JobApproved {
	j := y.Job(id)
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
	last, err := y.Conn("reader").LastSeq(y.t.Context())
	must(y.t, err)
	var expect uint64
	if st, found, err := y.Conn("reader").Last(y.t.Context(), events.Filter("audit", "epoch-1")); err == nil && found {
		expect = st.Seq
	}
	y.Say(actor, "audit.sealed", events.SiteScope, "epoch-1", expect,
		&events.AuditSealed{Note: "note", Size: int64(last), Root: "root", ThroughSeq: last, Dispatch: dispatch})
}

func (y *yard) ends(id string) lifecycle.Job {
	y.t.Helper()
	return y.Await(id, "ended", func(j lifecycle.Job) bool { return j.Status.Final() })
}

// output reads what the job wrote to a stream in its attempt.
func (y *yard) output(id string, attempt int, stream string) []byte {
	y.t.Helper()
	var out []byte
	err := y.Conn("reader").ReadOutput(y.t.Context(), "default", id, attempt, 1, func(_ int, s string, _ int64, data []byte) error {
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
	h := &hand{y: y, conn: y.Dial(actor), done: make(chan error, 1), moved: make(chan struct{})}
	layout := site.Layout{Dir: y.dir}
	if machine != "" {
		layout.Dir = filepath.Join(y.dir, machine)
	}
	env := &host.Env{
		Layout: layout, Actor: actor, Version: "0.0.1", Log: y.Log(),
		Bus: h.conn, Append: h.conn.Appender(y.Signing(actor)), Standing: y.Over(h.conn), Report: h.report,
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serveAudit plays the auditor, which has found nothing wrong unless y.closed.
func (y *yard) serveAudit() {
	y.t.Helper()
	stop, err := y.Conn("auditor").Serve(y.t.Context(), "banksman-auditor", "1.0.0", "audit log", map[string]bus.Endpoint{
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
	stop, err := y.Conn("auditor").Serve(y.t.Context(), "banksman-auditor", "1.0.0", "index", map[string]bus.Endpoint{
		"bmq.ready.*": func(context.Context, []byte) (any, error) { return map[string][]string{"jobs": ids}, nil },
	})
	must(y.t, err)
	y.t.Cleanup(stop)
}
