package approver

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// watchman is a gate on a stage.
type watchman struct {
	*stage.Stage
	role *Role

	mu    sync.Mutex
	board []string
	moved chan struct{} // closed and replaced with every line of the board
}

func newWatchman(t *testing.T, o stage.Options) *watchman {
	w := &watchman{Stage: stage.New(t, o), role: New(), moved: make(chan struct{})}
	w.role.config.ResolveWaitMS = 300
	return w
}

func (w *watchman) env() *host.Env {
	return &host.Env{
		Layout: w.Layout, Site: host.SiteConfig{Origin: stage.Origin}, Actor: "gate", Version: "0.0.1", Log: w.Log(), Bus: w.Conn("gate"),
		Append: w.Voice("gate"), Standing: w.Standing("gate"), Report: w.report,
	}
}

func (w *watchman) report(ready bool, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := "not ready: " + reason
	if ready {
		line = "ready"
	}
	w.board = append(w.board, line)
	close(w.moved)
	w.moved = make(chan struct{})
}

// shows waits for a line behind the first n of the board and returns how many
// lines there are.
func (w *watchman) shows(n int, text string) int {
	w.T.Helper()
	limit := time.After(stage.Patience)
	for {
		w.mu.Lock()
		i, moved, all := slices.IndexFunc(w.board[n:], func(l string) bool { return l == text || text != "ready" && strings.Contains(l, text) }), w.moved, slices.Clone(w.board)
		w.mu.Unlock()
		if i >= 0 {
			return n + i + 1
		}
		select {
		case <-moved:
		case <-limit:
			w.T.Fatalf("the board never showed %q behind line %d, but %q", text, n, all)
		}
	}
}

// start runs the gate until the test ends or stop is called.
func (w *watchman) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	env := w.env()
	go func() { done <- w.role.Run(ctx, env) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					w.T.Errorf("the gate ended with %v", err)
				}
			case <-time.After(stage.Patience):
				w.T.Error("the gate did not end")
			}
		})
	}
	w.T.Cleanup(stop)
	return stop
}

func status(s lifecycle.Status) func(lifecycle.Job) bool {
	return func(j lifecycle.Job) bool { return j.Status == s }
}

func TestStory(t *testing.T) {
	w := newWatchman(t, stage.Options{Policy: rules})
	w.start()
	w.shows(0, "ready")

	no := w.Await(w.Propose([]string{"rm", "x"}), "denied", status(lifecycle.Denied))
	if no.DeniedBy != "gate" || no.Denial.Basis != "policy" || no.Denial.Ruling.Rule != "never" || no.Tainted {
		t.Errorf("%+v", no.Denial)
	}

	id := w.Propose([]string{"true"})
	w.Resolve(id, "/usr/bin/true")
	yes := w.Await(id, "approved", status(lifecycle.Approved))
	if len(yes.Approvals) != 1 || yes.Approvals[0].Actor != "gate" || yes.Tainted {
		t.Errorf("%+v", yes.Approvals)
	}

	id = w.Propose([]string{"deploy"})
	w.Resolve(id, "/usr/bin/deploy")
	if j := w.Await(id, "assessed", assessedNow); j.Quorum != 2 || j.Status != lifecycle.Pending {
		t.Errorf("%+v", j)
	}

	id = w.Propose([]string{"make"}) // no worker comes in time
	if j := w.Await(id, "unresolved", func(j lifecycle.Job) bool { return j.Unresolved }); j.Status != lifecycle.Pending {
		t.Errorf("%+v", j)
	}
	w.Resolve(id, "/usr/bin/make") // but late
	if j := w.Await(id, "assessed", assessedNow); j.Unresolved || j.Quorum != 1 {
		t.Errorf("%+v", j)
	}
	id = w.Propose([]string{"true"})
	w.Await(id, "unresolved", func(j lifecycle.Job) bool { return j.Unresolved })
	w.Resolve(id, "/usr/bin/true")
	w.Await(id, "approved", status(lifecycle.Approved))
}

// A gate that is killed after its decision was stored and before it has
// acknowledged the delivery gets the proposal again, and decides nothing twice.
func TestKilledBetweenAppendAndAcknowledgement(t *testing.T) {
	w := newWatchman(t, stage.Options{Policy: rules})
	denied, allowed, asked := w.Propose([]string{"rm", "x"}), w.Propose([]string{"true"}), w.Propose([]string{"make"})
	w.Resolve(allowed, "/usr/bin/true")
	w.Resolve(asked, "/usr/bin/make")
	g := newGate(&w.role.config, w.env())
	for _, id := range []string{denied, allowed, asked} {
		if again, err := g.decideJob(w.Context(), id); again != 0 || err != nil {
			t.Fatal(again, err)
		}
	}
	// All of it is delivered now for the first time; a fresh job comes last.
	w.start()
	w.Await(w.Propose([]string{"rm", "y"}), "denied", status(lifecycle.Denied))
	w.handled(7) // four proposals, two resolutions, one assessment
	for _, c := range []struct {
		kind events.Kind
		id   string
	}{{"job.denied", denied}, {"job.approved", allowed}, {"job.assessed", asked}} {
		if n := w.Count(c.kind, c.id); n != 1 {
			t.Errorf("%s was stored %d times for %s", c.kind, n, c.id)
		}
		if j := w.Job(c.id); j.Tainted {
			t.Errorf("%s is tainted: %s", c.id, j.TaintCode)
		}
	}
}

// handled waits until so many deliveries were decided about: the gate reports
// once when it starts, and after each.
func (w *watchman) handled(deliveries int) {
	w.T.Helper()
	for n := 0; deliveries >= 0; deliveries-- {
		n = w.shows(n, "ready")
	}
}

func TestManyGatesDecideOnce(t *testing.T) {
	w := newWatchman(t, stage.Options{Policy: rules})
	var ids []string
	for range 10 {
		ids = append(ids, w.Propose([]string{"rm", "x"}))
	}
	var wg sync.WaitGroup
	for range 4 {
		env := w.env()
		env.Append = w.Conn("gate").Appender(w.Signing("gate"))
		g := newGate(&w.role.config, env)
		for _, id := range ids {
			wg.Go(func() {
				if _, err := g.decideJob(w.Context(), id); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for _, id := range ids {
		if n := w.Count("job.denied", id); n != 1 {
			t.Errorf("%s was denied %d times", id, n)
		}
	}
}

func TestUnreadablePolicyDecidesNothing(t *testing.T) {
	w := newWatchman(t, stage.Options{})
	w.role.config.ExpireEveryS = 1
	w.start()
	n := w.shows(0, "not ready: nothing is decided: read the policy in force")
	w.Publish(rules)
	n = w.shows(n, "ready") // without any job
	w.PublishRaw(events.PolicyPublished{Digest: events.Digest([]byte("nonsense")), Text: "nonsense"})
	id := w.Propose([]string{"rm", "x"})
	n = w.shows(n, "not ready: nothing is decided: parse policy")
	if j := w.Job(id); j.Status != lifecycle.Proposed {
		t.Errorf("%+v", j)
	}
	w.Publish(rules)
	w.Await(id, "denied", status(lifecycle.Denied))
	w.shows(n, "ready")
}

func TestForgedProposalIsLeftAlone(t *testing.T) {
	w := newWatchman(t, stage.Options{Policy: rules})
	w.start()
	m, err := events.New(stage.Origin, events.For("job.proposed", "default", "forged", "proposer"), events.ID{Actor: "proposer", Session: strings.Repeat("0", 20), N: 1}, time.Now(), 0,
		events.JobProposed{Argv: []string{"rm"}, Cwd: "/", Pool: "default", TimeoutS: 1, MaxAttempts: 1, ExpiresS: 9})
	stage.Must(t, err)
	m.Sign(stage.Origin, string(w.Root.Public()), w.Root.Sign)
	w.AppendSigned(m)
	w.Await(w.Propose([]string{"rm", "x"}), "denied", status(lifecycle.Denied))
	w.handled(2)
	if n := w.Count("job.denied", "forged"); n != 0 {
		t.Error("the gate has said something about a forged proposal")
	}
}

// listing plays the auditor's list of jobs.
func (w *watchman) listing(ids ...string) {
	w.T.Helper()
	stop, err := w.Conn("auditor").Serve(w.Context(), "banksman-auditor", "0.0.1", "a test", map[string]bus.Endpoint{
		query.Jobs: func(context.Context, []byte) (any, error) {
			var l view.List
			for _, id := range ids {
				l.Jobs = append(l.Jobs, view.Job{Job: id})
			}
			return l, nil
		},
	})
	stage.Must(w.T, err)
	w.T.Cleanup(stop)
}

func TestExpireLoop(t *testing.T) {
	w := newWatchman(t, stage.Options{Policy: rules})
	w.role.config.ExpireEveryS, w.role.config.ResolveWaitMS = 1, 60000
	short := func(p *events.JobProposed) { p.ExpiresS = 1 }
	soon, later := w.Propose([]string{"make"}, short), w.Propose([]string{"make"})
	w.listing("nothing", soon, later) // a job that cannot be read keeps no other open
	w.start()
	if j := w.Await(soon, "expired", status(lifecycle.Expired)); j.Tainted {
		t.Errorf("%+v", j)
	}
	if j := w.Job(later); j.Status != lifecycle.Proposed {
		t.Errorf("%+v", j)
	}
}

// A gate whose clock is ahead of the stream's does not store a refused event
// every few seconds.
func TestExpiringWithAClockAhead(t *testing.T) {
	w := newWatchman(t, stage.Options{Policy: rules})
	id := w.Propose([]string{"make"})
	g := newGate(&w.role.config, w.env())
	g.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	for range 5 {
		stage.Must(t, g.expireJob(w.Context(), id))
	}
	if n := w.Count("job.expired", id); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	if j := w.Job(id); j.Tainted || j.Status != lifecycle.Proposed {
		t.Errorf("%+v", j)
	}
}

func TestAssess(t *testing.T) {
	w := newWatchman(t, stage.Options{Policy: rules})
	w.start()
	w.shows(0, "ready")
	before := w.Last("bm.>")
	for program, want := range map[string]query.Assessment{
		"rm": {Verdict: "deny", Rule: "never"}, "true": {Verdict: "allow", Rule: "free"}, "deploy": {Verdict: "ask", Rule: "two", Quorum: 2}, "curl": {Verdict: "deny"},
	} {
		var got query.Assessment
		err := w.Conn("proposer").Ask(w.Context(), query.Assess, query.AssessRequest{Argv: []string{program}, Cwd: "/src", Pool: "default"}, &got)
		if err != nil || got.Verdict != want.Verdict || got.Rule != want.Rule || got.Quorum != want.Quorum || got.Policy != events.Digest([]byte(rules)) || got.Reason == "" {
			t.Errorf("%s: %+v, %v", program, got, err)
		}
	}
	if w.Last("bm.>") != before {
		t.Error("an assessment was stored")
	}
}

func assessedNow(j lifecycle.Job) bool { return j.Assessed() }
