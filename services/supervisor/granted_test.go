package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/query"
)

// granted skips a test of what the bus does not permit to supervisors.
func (h *hand) granted() {
	h.y.t.Helper()
	stop, err := h.shift.serve(h.y.t.Context())
	if err != nil {
		h.y.t.Skipf("the bus does not let supervisors answer: %v", err)
	}
	stop()
}

func TestOutputAndAnswersReachPeople(t *testing.T) {
	y := newYard(t)
	agent := y.agent("agent", `echo one; sleep 0.3; echo two >&2; sleep 0.3; echo three`)
	h := y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(y.repo("demo"), agent, func(p *Project) { p.MaxRounds = 1 })})
	h.granted()
	h.run()
	y.await("demo", "halted", func(p loop.Project) bool { return p.Loop.Status == loop.Halted })
	out := map[string]string{}
	chunks := 0
	must(t, y.Conn("reader").ReadOutput(t.Context(), "demo", "demo-1", 1, 1, func(n int, stream string, _ int64, data []byte) error {
		if n != chunks+1 {
			t.Errorf("chunk %d follows %d", n, chunks)
		}
		chunks = n
		out[stream] += string(data)
		return nil
	}))
	if out["stdout"] != "one\nthree\n" || out["stderr"] != "two\n" {
		t.Errorf("%q", out)
	}
	r, err := y.read.Round(t.Context(), "demo-1")
	must(t, err)
	if r.End.Stdout.Chunks+r.End.Stderr.Chunks != chunks || r.End.Stdout.SHA256 != events.Digest([]byte(out["stdout"])) {
		t.Errorf("%+v for %d chunks", r.End, chunks)
	}
	var list query.LoopList
	must(t, y.Conn("p7k2").Ask(t.Context(), query.Loops, query.LoopsRequest{}, &list))
	if len(list.Loops) != 1 || list.Loops[0].State != query.LoopHalted {
		t.Errorf("%+v", list)
	}
	if err := y.Conn("p7k2").Ask(t.Context(), query.Round, query.RoundRequest{Round: "demo-7"}, &query.RoundView{}); err == nil || !strings.Contains(err.Error(), codeNotFound) {
		t.Errorf("%v", err)
	}
}

func TestASilentSupervisorElsewhereLosesItsProject(t *testing.T) {
	y := newYard(t)
	here, there := y.repo("here"), y.repo("there")
	agent := y.agent("agent", `echo left > left.txt; [ -e ../go ] || sleep 600`)
	first := y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(here, agent)})
	first.granted()
	first.run()
	y.await("demo", "running", func(p loop.Project) bool { return p.Round.Status == loop.Running })
	second := y.hire("other", "m2", map[string]Project{"demo": y.plan(there, agent, func(p *Project) { p.MaxRounds = 2 })}).run()
	second.shows("supervisor on m1 holds it")
	must(t, os.WriteFile(filepath.Join(y.ground, "go"), nil, 0o644))
	// The first one's connection dies; it cannot be heard any more.
	first.conn.Close()
	p := y.await("demo", "run by the other", func(p loop.Project) bool { return p.Loop.Status == loop.Halted })
	if p.Loop.Holder.Actor != "other" || p.Round.Number() != 2 || p.Round.Actor != "other" {
		t.Errorf("%+v, round %s of %s", p.Loop.Holder, p.Round.ID, p.Round.Actor)
	}
	r, err := y.read.Round(t.Context(), "demo-1")
	if err != nil || r.End.Outcome != outcomeInterrupted {
		t.Errorf("%+v, %v", r.End, err)
	}
}
