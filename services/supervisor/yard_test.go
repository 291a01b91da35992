package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/site"
)

// patience bounds every wait of these tests; reaching it is a failure.
const patience = stage.Patience

// yard is a site on a real embedded bus with real keys, and a ground where
// agents work.
type yard struct {
	*stage.Stage
	t      testing.TB
	dir    string // the banksman folder
	ground string // where agents and repositories lie, outside of it
	read   loops.Reader
}

func newYard(t testing.TB) *yard {
	t.Helper()
	s := stage.New(t, stage.Options{TCP: true, Actors: map[string][]events.Role{
		"p7k2": {events.RolePerson, events.RoleAdmin}, "supervisor": {events.RoleSupervisor}, "other": {events.RoleSupervisor},
		"monitor": {events.RoleMonitor}, "bus": {events.RoleBus}, "reader": {events.RoleReader},
	}})
	must(t, os.MkdirAll(s.Layout.Tokens(), 0o700))
	return &yard{Stage: s, t: t, dir: s.Layout.Dir, ground: s.Work, read: loops.Reader{Bus: s.Conn("reader"), Standing: s.Standing("reader")}}
}

// say appends what was made about a project, as an actor.
func (y *yard) say(actor, project string, s loops.Saying, err error) {
	y.t.Helper()
	must(y.t, err)
	v := y.Voice(actor)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = v.Append(ctx, s.Subject(project, actor), s.Expect, s.Payload)
	must(y.t, err)
}

func (y *yard) project(name string) loop.Project {
	y.t.Helper()
	p, err := y.read.Project(context.Background(), name)
	must(y.t, err)
	return p
}

// await folds the project at each of its events until it is as wanted.
func (y *yard) await(name, what string, want func(loop.Project) bool) loop.Project {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), patience)
	defer cancel()
	found := errors.New("found")
	var p loop.Project
	err := y.Conn("reader").Follow(ctx, 1, "bm.>", func(st events.Stored) error {
		if strings.Split(st.Subject, ".")[2] != name {
			return nil
		}
		var err error
		if p, err = y.read.Project(ctx, name); err == nil && want(p) {
			return found
		}
		return err
	})
	if !errors.Is(err, found) {
		y.t.Fatalf("project %s was never %s: loop %q, round %s %q, stop %q, %v", name, what, p.Loop.Status, p.Round.ID, p.Round.Status, p.Stop.Status, err)
	}
	return p
}

// roundEnds waits until a round has ended and its leftovers are spoken of, or
// the next thing about the project shows that there were none.
func (y *yard) roundEnds(project string, number int) loop.Round {
	y.t.Helper()
	y.await(project, fmt.Sprintf("past round %d", number), func(p loop.Project) bool {
		return p.Round.Number() > number || p.Round.Number() == number && p.Round.Status == loop.Ended &&
			(p.Round.Settled() || p.Loop.Status == loop.Halted || p.Loop.Status == loop.Free || p.Stop.Status == loop.Confirmed)
	})
	r, err := y.read.Round(y.t.Context(), events.RoundID(project, number))
	must(y.t, err)
	return r
}

// repo makes a git repository with one commit.
func (y *yard) repo(name string) string {
	y.t.Helper()
	dir := filepath.Join(y.ground, name)
	must(y.t, os.MkdirAll(dir, 0o755))
	must(y.t, os.WriteFile(filepath.Join(dir, "kept.txt"), []byte("kept\n"), 0o644))
	y.git(dir, "init", "-q")
	y.git(dir, "add", ".")
	y.git(dir, "-c", "user.name=u", "-c", "user.email=u@x", "commit", "-qm", "first")
	return dir
}

func (y *yard) git(dir string, args ...string) string {
	y.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		y.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// agent writes a stand-in agent outside its work folder.
func (y *yard) agent(name, body string) string {
	y.t.Helper()
	path := filepath.Join(y.ground, name)
	must(y.t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	return path
}

// plan is a project that works in a folder with an agent.
func (y *yard) plan(dir, agent string, change ...func(*Project)) Project {
	y.t.Helper()
	p := DefaultProject()
	p.WorkDir, p.Agent, p.PromptFile, p.RestartDelayS = dir, []string{agent}, filepath.Join(y.ground, "prompt.md"), 1
	must(y.t, os.WriteFile(p.PromptFile, []byte("do the work\n"), 0o644))
	for _, f := range change {
		f(&p)
	}
	must(y.t, p.Validate())
	p.RestartDelayS = 0 // tests have no time to rest
	return p
}

// hand is a supervisor at work.
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

// hire makes a supervisor of an actor on a machine; it does not run yet.
func (y *yard) hire(actor, machine string, list map[string]Project, change ...func(*Config)) *hand {
	y.t.Helper()
	cfg := DefaultConfig()
	cfg.Actor, cfg.DrainS, cfg.GraceS, cfg.LeaseS = actor, 0, 1, 3
	for _, f := range change {
		f(&cfg)
	}
	must(y.t, cfg.Validate())
	h := &hand{y: y, conn: y.Dial(actor), done: make(chan error, 1), moved: make(chan struct{})}
	y.t.Cleanup(func() {
		h.shift.crew.Close()
		h.conn.Close()
	})
	env := &host.Env{
		Layout: site.Layout{Dir: y.dir}, Actor: actor, Version: "test", Log: y.Log(),
		Bus: h.conn, Append: h.conn.Appender(y.Signing(actor)), Standing: y.Over(h.conn), Report: h.report,
	}
	h.shift = newShift(cfg, list, machine, env)
	return h
}

// run lets it work until the test ends.
func (h *hand) run() *hand {
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	go func() { h.done <- h.shift.run(ctx) }()
	h.y.t.Cleanup(h.leave)
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
		if err != nil && !errors.Is(err, bus.ErrClosed) { // a test has closed it
			h.y.t.Errorf("the supervisor ended with %v", err)
		}
		h.agrees()
	case <-time.After(patience):
		h.y.t.Fatal("the supervisor did not stop")
	}
}

// agrees compares what the supervisor knows with what anybody reads anew.
func (h *hand) agrees() {
	h.y.t.Helper()
	if !h.conn.Connected() {
		return
	}
	for _, t := range h.shift.tends {
		for {
			p, through, err := t.keeper.Project(context.Background())
			anew := h.y.project(t.name)
			if _, now, _ := t.keeper.Project(context.Background()); now != through {
				continue // another supervisor goes on
			}
			if err != nil || through == 0 || !reflect.DeepEqual(p, anew) {
				h.y.t.Errorf("the supervisor knows %+v, the log says %+v, %v", p, anew, err)
			}
			break
		}
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
func (h *hand) shows(part string) {
	h.y.t.Helper()
	h.showsWithin(patience, part)
}

func (h *hand) showsWithin(most time.Duration, part string) {
	h.y.t.Helper()
	limit := time.After(most)
	for {
		h.mu.Lock()
		seen, moved := slices.ContainsFunc(h.board, func(line string) bool { return strings.Contains(line, part) }), h.moved
		board := slices.Clone(h.board)
		h.mu.Unlock()
		if seen {
			return
		}
		select {
		case <-moved:
		case <-limit:
			h.y.t.Fatalf("the board never showed %q, but %q", part, board)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
