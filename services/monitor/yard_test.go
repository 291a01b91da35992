package monitor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/alert"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/alerts"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
)

const (
	// machine is where the stand-in supervisor works.
	machine = "Build-Host.example"
	// patience bounds every wait of these tests; reaching it is a failure.
	patience = stage.Patience
)

// yard is a site on a real embedded bus with real keys, and hands for those
// whom the monitor watches.
type yard struct {
	*stage.Stage
	t      *testing.T
	dir    string
	stand  *standing.Standing
	read   loops.Reader
	spoken map[string]uint64 // last event about what only one hand speaks of
}

func newYard(t *testing.T) *yard {
	t.Helper()
	s := stage.New(t, stage.Options{TCP: true, Actors: map[string][]events.Role{
		"p7k2": {events.RolePerson}, "supervisor": {events.RoleSupervisor}, "worker": {events.RoleWorker},
		"monitor": {events.RoleMonitor}, "bus": {events.RoleBus}, "auditor": {events.RoleAuditor}, "boss": {events.RoleAdmin}, "reader": {events.RoleReader},
	}})
	y := &yard{Stage: s, t: t, dir: s.Layout.Dir, spoken: map[string]uint64{}, stand: s.Standing("reader")}
	must(t, y.stand.Refresh(t.Context()))
	y.read = loops.Reader{Bus: s.Conn("reader"), Standing: y.stand}
	return y
}

// say appends an event as an actor, behind everything about its id.
func (y *yard) say(actor string, kind events.Kind, scope, id string, payload any) uint64 {
	y.t.Helper()
	v := y.Voice(actor)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := events.For(kind, scope, id, actor)
	last, _, err := y.Conn("reader").Last(ctx, s.Filter())
	must(y.t, err)
	seq, err := v.Append(ctx, s, last.Seq, payload)
	must(y.t, err)
	return seq
}

func (y *yard) project(name string) loop.Project {
	y.t.Helper()
	p, err := y.read.Project(y.t.Context(), name)
	must(y.t, err)
	return p
}

// claim lets the stand-in supervisor take a project.
func (y *yard) claim(project string) {
	y.t.Helper()
	y.spoken[project] = y.say("supervisor", "loop.claimed", project, project, &events.LoopClaimed{Host: machine, WorkDir: "/w/" + project, LeaseS: 30, Version: "test"})
}

// begin lets it start the next round.
func (y *yard) begin(project string, limitS int) string {
	y.t.Helper()
	p := y.project(project)
	n := p.Round.Number() + 1
	id := events.RoundID(project, n)
	y.say("supervisor", "round.started", project, id, &events.RoundStarted{Claim: p.Loop.Holder.Seq, Number: n, Turn: p.NextTurn(), Program: "agent", TimeLimitS: limitS})
	return id
}

// round lets it run a round that ends in a way.
func (y *yard) round(project string, change func(*events.RoundEnded)) {
	y.t.Helper()
	id := y.begin(project, 60)
	r := &events.RoundEnded{Started: y.project(project).Round.StartedSeq, Outcome: outcomeSucceeded, DurationMS: 100}
	change(r)
	y.say("supervisor", "round.ended", project, id, r)
}

func refused(r *events.RoundEnded) { r.Outcome, r.Failure, r.ExitCode = outcomeFailed, failureAuth, 1 }

// order answers about the stop order in force.
func (y *yard) obey(project string, kind events.Kind, payload any) {
	y.t.Helper()
	y.say("supervisor", kind, project, project, payload)
}

// stored is everything of a kind, in order.
func (y *yard) stored(kind events.Kind) []events.Event {
	y.t.Helper()
	var out []events.Event
	for from := uint64(1); ; {
		page, err := y.Conn("reader").Read(y.t.Context(), from, fmt.Sprintf("bm.%s.*.*.%s.*", kind.Family(), kind.Verb()), 256)
		must(y.t, err)
		if len(page) == 0 {
			return out
		}
		for _, st := range page {
			e, err := y.stand.Book().Open(st)
			must(y.t, err)
			out, from = append(out, e), st.Seq+1
		}
	}
}

// until waits for something to be true after each event that is stored.
func (y *yard) until(what string, is func() bool) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), patience)
	defer cancel()
	found := errors.New("found")
	last, err := y.Conn("reader").LastSeq(ctx)
	must(y.t, err)
	err = y.Conn("reader").Follow(ctx, last, "bm.>", func(events.Stored) error {
		if is() {
			return found
		}
		return nil
	})
	if !errors.Is(err, found) {
		y.t.Fatalf("it never came about that %s: %v", what, err)
	}
}

func (y *yard) alert(detector, about string) alert.Alert {
	y.t.Helper()
	a, err := alerts.Read(y.t.Context(), y.Conn("reader"), y.stand.Book(), events.AlertID(detector, about))
	must(y.t, err)
	return a
}

// guard is a monitor at work.
type guard struct {
	y     *yard
	watch *watch
	conn  *bus.Conn
	stop  context.CancelFunc
	done  chan error
	tick  chan time.Time

	mu    sync.Mutex
	shift time.Duration // how far its clock is ahead
	board string
}

// post makes a monitor; it works until the test ends.
func (y *yard) post() *guard { return y.postSigning(y.Signer("monitor")) }

// postSigning makes one that signs with a key.
func (y *yard) postSigning(key *keys.Signer) *guard {
	y.t.Helper()
	cfg := DefaultConfig()
	g := &guard{y: y, conn: y.Dial("monitor"), done: make(chan error, 1), tick: make(chan time.Time)}
	env := &host.Env{
		Layout: site.Layout{Dir: y.dir}, Actor: "monitor", Version: "test", Log: y.Log(),
		Bus: g.conn, Append: g.conn.Appender(stage.Signing(key)), Standing: y.Over(g.conn), Report: g.report,
	}
	g.watch = newWatch(cfg, env, clock{now: g.now, tick: g.tick})
	ctx, cancel := context.WithCancel(context.Background())
	g.stop = cancel
	go func() { g.done <- g.watch.run(ctx) }()
	y.t.Cleanup(func() {
		g.leave()
		g.conn.Close()
	})
	return g
}

func (g *guard) now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Add(g.shift)
}

func (g *guard) report(ready bool, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.board = fmt.Sprint(ready, " ", reason)
}

func (g *guard) shows() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.board
}

// later sets the clock forward and lets the monitor look, twice: when the
// second tick is taken, the first one was worked off.
func (g *guard) later(d time.Duration) {
	g.y.t.Helper()
	g.mu.Lock()
	g.shift += d
	g.mu.Unlock()
	g.look()
	g.look()
}

func (g *guard) look() {
	g.y.t.Helper()
	select {
	case g.tick <- time.Time{}:
	case err := <-g.done:
		g.done <- err
		g.y.t.Fatalf("the monitor has ended: %v", err)
	case <-time.After(patience):
		g.y.t.Fatal("the monitor takes no tick")
	}
}

// caughtUp waits until the monitor has read and decided about everything.
func (g *guard) caughtUp() {
	g.y.t.Helper()
	for {
		g.look()
		g.look()
		last, err := g.y.Conn("reader").LastSeq(g.y.t.Context())
		must(g.y.t, err)
		g.watch.mu.Lock()
		seq := g.watch.memory.Seq
		g.watch.mu.Unlock()
		if seq >= last {
			g.look()
			g.look()
			now, err := g.y.Conn("reader").LastSeq(g.y.t.Context())
			must(g.y.t, err)
			if now == last {
				return
			}
		}
	}
}

// leave stops it and waits.
func (g *guard) leave() {
	g.y.t.Helper()
	if g.stop == nil {
		return
	}
	g.stop()
	g.stop = nil
	select {
	case err := <-g.done:
		if err != nil {
			g.y.t.Errorf("the monitor ended with %v", err)
		}
	case <-time.After(patience):
		g.y.t.Fatal("the monitor did not stop")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q does not hold %q", text, part)
	}
}
