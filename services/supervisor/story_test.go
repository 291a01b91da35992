package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/query"
)

func TestThreeRoundsLeaveTheirWorkAndTheLoopHalts(t *testing.T) {
	y := newYard(t)
	dir := y.repo("demo")
	agent := y.agent("agent", `cat > got; echo "round $BANKSMAN_ROUND" >> notes.txt; env | sort > ../env; echo out; echo err >&2`)
	h := y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(dir, agent, func(p *Project) { p.MaxRounds = 3 })}).run()
	p := y.await("demo", "halted", func(p loop.Project) bool { return p.Loop.Status == loop.Halted })
	if p.Loop.Halt.Code != codeMaxRounds || p.Round.Number() != 3 || p.NextTurn() != 4 {
		t.Errorf("halted %+v at round %d, next turn %d", p.Loop.Halt, p.Round.Number(), p.NextTurn())
	}
	for n := 1; n <= 3; n++ {
		r := y.roundEnds("demo", n)
		if r.End == nil || r.End.Outcome != outcomeSucceeded || r.Salvage == nil || r.Salvage.Files != 2 {
			t.Fatalf("round %d: %+v, salvage %+v %+v", n, r.End, r.Salvage, r.SalvageFailed)
		}
		if r.Salvage.Ref != "refs/banksman/salvage/demo/"+r.ID || y.git(dir, "rev-parse", r.Salvage.Ref) != r.Salvage.Commit {
			t.Errorf("round %d: salvage %+v", n, r.Salvage)
		}
		if got := y.git(dir, "show", r.Salvage.Ref+":notes.txt"); strings.Count(got, "\n")+1 != n {
			t.Errorf("round %d kept %q", n, got)
		}
	}
	if got := y.git(dir, "show", "refs/banksman/salvage/demo/demo-1:got"); got != "do the work" {
		t.Errorf("the agent got the prompt %q", got)
	}
	if got := y.git(dir, "status", "--porcelain"); !strings.Contains(got, "?? got") || !strings.Contains(got, "?? notes.txt") {
		t.Errorf("the work tree was touched: %q", got)
	}
	env, err := os.ReadFile(filepath.Join(y.ground, "env"))
	must(t, err)
	for _, want := range []string{"BANKSMAN_TOKEN=bmt_", "BANKSMAN_SOCKET=" + y.dir, "BANKSMAN_ROUND=demo-3", "BANKSMAN_PROJECT=demo"} {
		if !strings.Contains(string(env), want) {
			t.Errorf("the environment lacks %s:\n%s", want, env)
		}
	}
	if strings.Contains(string(env), "GOTOOLCHAIN") {
		t.Error("a variable that nobody named was passed")
	}
	log, err := os.ReadFile(filepath.Join(stateDir(h.shift.env, "supervisor", "demo"), "demo-3.log"))
	if err != nil || !strings.Contains(string(log), "out\n") || !strings.Contains(string(log), "err\n") {
		t.Errorf("log %q, %v", log, err)
	}
	tokens, err := os.ReadDir(filepath.Join(y.dir, "tokens"))
	if err != nil || len(tokens) != 0 {
		t.Errorf("tokens are left: %v, %v", tokens, err)
	}
}

func TestMaxRoundsOutlivesRestartsUntilAPersonStartsAnew(t *testing.T) {
	y := newYard(t)
	list := map[string]Project{"demo": y.plan(y.repo("demo"), y.agent("agent", "true"), func(p *Project) { p.MaxRounds = 2 })}
	y.hire("supervisor", "m1", list).run()
	halted := func(n int) func(loop.Project) bool {
		return func(p loop.Project) bool { return p.Loop.Status == loop.Halted && p.Round.Number() == n }
	}
	y.await("demo", "halted", halted(2))
	second := y.hire("supervisor", "m1", list)
	// The first one still works in the folder, so the second waits.
	second.run().shows("another supervisor on this machine works in it")
	second.leave()
	said, err := loops.Restart(y.project("demo"), "again")
	y.say("p7k2", "demo", said, err)
	p := y.await("demo", "halted again", halted(4))
	if p.NextTurn() != 3 {
		t.Errorf("next turn %d", p.NextTurn())
	}
}

func TestARoundEndsAtItsLimitWithItsWholeTree(t *testing.T) {
	y := newYard(t)
	dir := y.repo("demo")
	agent := y.agent("agent", `echo half > half.txt; (trap '' TERM; setsid sleep 600 & echo $! > ../pid; wait); sleep 600`)
	y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(dir, agent, func(p *Project) { p.RoundTimeLimitS, p.MaxRounds = 1, 1 })}).run()
	r := y.roundEnds("demo", 1)
	if r.End.Outcome != outcomeTimedOut || r.End.Survivors != 0 || len(r.End.Means) == 0 {
		t.Errorf("%+v", r.End)
	}
	if r.Salvage == nil || y.git(dir, "show", r.Salvage.Ref+":half.txt") != "half" {
		t.Errorf("salvage %+v", r.Salvage)
	}
	pid, err := os.ReadFile(filepath.Join(y.ground, "pid"))
	must(t, err)
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
		t.Errorf("process %s is alive", pid)
	}
}

func TestAnOrderToKillEndsTheRoundAndHoldsUntilLifted(t *testing.T) {
	y := newYard(t)
	dir := y.repo("demo")
	agent := y.agent("agent", `echo mid > mid.txt; [ -e ../go ] || sleep 600`)
	list := map[string]Project{"demo": y.plan(dir, agent, func(p *Project) { p.MaxRounds = 2 })}
	h := y.hire("supervisor", "m1", list).run()
	y.await("demo", "running", func(p loop.Project) bool { return p.Round.Status == loop.Running })
	eventually(t, "the agent has begun", func() bool { _, err := os.Stat(filepath.Join(dir, "mid.txt")); return err == nil })
	said, err := loops.Order(y.project("demo"), events.StopKill, "it deletes things", "")
	y.say("p7k2", "demo", said, err)
	p := y.await("demo", "stopped", func(p loop.Project) bool { return p.Stop.Status == loop.Confirmed })
	if p.Round.End.Outcome != outcomeStopped || !strings.Contains(p.Round.End.Reason, "it deletes things") || p.Round.Salvage == nil {
		t.Errorf("round %+v, salvage %+v", p.Round.End, p.Round.Salvage)
	}
	h.leave()
	if p := y.project("demo"); p.Loop.Status != loop.Free || !p.Stop.InForce() {
		t.Errorf("after leaving: loop %q, stop %q", p.Loop.Status, p.Stop.Status)
	}
	y.hire("supervisor", "m1", list).run().shows("stopped by p7k2: it deletes things")
	if p := y.project("demo"); p.Round.Number() != 1 {
		t.Fatalf("a stopped project began round %d", p.Round.Number())
	}
	must(t, os.WriteFile(filepath.Join(y.ground, "go"), nil, 0o644))
	said, err = loops.Lift(y.project("demo"), "fixed")
	y.say("p7k2", "demo", said, err)
	if p := y.await("demo", "done", func(p loop.Project) bool { return p.Loop.Status == loop.Halted }); p.Round.Number() != 2 {
		t.Errorf("round %d", p.Round.Number())
	}
}

func TestAnOrderToDrainLetsTheRoundEnd(t *testing.T) {
	y := newYard(t)
	agent := y.agent("agent", `until [ -e ../go ]; do sleep 0.05; done`)
	y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(y.repo("demo"), agent)}).run()
	y.await("demo", "running", func(p loop.Project) bool { return p.Round.Status == loop.Running })
	said, err := loops.Order(y.project("demo"), events.StopDrain, "enough", "alert-7")
	y.say("monitor", "demo", said, err)
	p := y.await("demo", "seen", func(p loop.Project) bool { return p.Stop.Status == loop.Seen })
	if p.Round.Status != loop.Running {
		t.Errorf("round %q when the order was seen", p.Round.Status)
	}
	must(t, os.WriteFile(filepath.Join(y.ground, "go"), nil, 0o644))
	p = y.await("demo", "stopped", func(p loop.Project) bool { return p.Stop.Status == loop.Confirmed })
	if p.Round.Number() != 1 || p.Round.End.Outcome != outcomeSucceeded || p.Stop.By != "monitor" || p.Stop.Order.Alert != "alert-7" {
		t.Errorf("round %d %+v, stop %+v", p.Round.Number(), p.Round.End, p.Stop)
	}
}

func TestASignalEndsTheRoundAndReleasesTheProject(t *testing.T) {
	y := newYard(t)
	dir := y.repo("demo")
	agent := y.agent("agent", `trap 'echo bye > bye.txt; exit 3' TERM; echo up > ../up; while :; do sleep 0.05; done`)
	h := y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(dir, agent)}).run()
	y.await("demo", "running", func(p loop.Project) bool { return p.Round.Status == loop.Running })
	eventually(t, "the agent is up", func() bool { _, err := os.Stat(filepath.Join(y.ground, "up")); return err == nil })
	h.leave()
	p := y.project("demo")
	if p.Loop.Status != loop.Free || p.Round.Status != loop.Ended || p.Round.End.Outcome != outcomeStopped || p.Round.End.Reason != reasonStopped {
		t.Fatalf("loop %q, round %+v", p.Loop.Status, p.Round.End)
	}
	if p.Round.Salvage == nil || y.git(dir, "show", p.Round.Salvage.Ref+":bye.txt") != "bye" {
		t.Errorf("salvage %+v", p.Round.Salvage)
	}
}

func TestAProjectThatCannotStartWaitsAndSaysWhy(t *testing.T) {
	y := newYard(t)
	big := strings.Repeat("x", maxArgumentBytes)
	list := map[string]Project{
		"noprompt": y.plan(y.repo("a"), y.agent("agent", "true"), func(p *Project) { p.PromptFile = "missing.md" }),
		"big": y.plan(y.repo("b"), "/bin/echo", func(p *Project) {
			p.Agent, p.PromptBy, p.PromptFile = []string{"/bin/echo", "{prompt}"}, byArgv, filepath.Join(y.ground, "big.md")
		}),
	}
	must(t, os.WriteFile(filepath.Join(y.ground, "big.md"), []byte(big), 0o644))
	h := y.hire("supervisor", "m1", list).run()
	h.shows("missing.md")
	h.shows("use prompt_by = \"stdin\"")
	for name := range list {
		if p := y.project(name); p.Round.ID != "" {
			t.Errorf("project %s began round %s", name, p.Round.ID)
		}
	}
}

func TestArgumentsCarryThePrompt(t *testing.T) {
	y := newYard(t)
	dir := y.repo("demo")
	agent := y.agent("agent", `printf '%s|' "$@" > args; cat > in`)
	y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(dir, agent, func(p *Project) {
		p.Agent, p.PromptBy, p.MaxRounds = []string{agent, "-p", "say: {prompt}", "end"}, byArgv, 1
	})}).run()
	y.roundEnds("demo", 1)
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	if err != nil || string(args) != "-p|say: do the work\n|end|" {
		t.Errorf("arguments %q, %v", args, err)
	}
	if in, err := os.ReadFile(filepath.Join(dir, "in")); err != nil || len(in) != 0 {
		t.Errorf("standard input %q, %v", in, err)
	}
}

func TestAnAgentThatCannotLogInIsNamed(t *testing.T) {
	y := newYard(t)
	said, err := filepath.Abs("testdata/claude-401.jsonl")
	must(t, err)
	agent := y.agent("agent", "cat "+said+"; exit 1")
	y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(y.repo("demo"), agent, func(p *Project) { p.MaxRounds = 1 })}).run()
	r := y.roundEnds("demo", 1)
	if r.End.Outcome != outcomeFailed || r.End.ExitCode != 1 || r.End.Failure != failureAuth || r.Settled() {
		t.Errorf("%+v, salvage %+v %+v", r.End, r.Salvage, r.SalvageFailed)
	}
}

func TestASupervisorThatDiedLeavesAnInterruptedRound(t *testing.T) {
	y := newYard(t)
	dir := y.repo("demo")
	list := map[string]Project{"demo": y.plan(dir, y.agent("agent", "true"), func(p *Project) { p.MaxRounds = 1 })}
	// What a supervisor that was killed leaves: its claim, the round's start
	// and the round's file, and work in the tree.
	dead := y.hire("supervisor", "m1", list)
	tend := dead.shift.tends[0]
	must(t, tend.open())
	ctx := t.Context()
	must(t, tend.do(ctx, doClaim, y.project("demo")))
	p := y.project("demo")
	agent, err := prepare(tend.cfg, os.Getenv("PATH"))
	must(t, err)
	must(t, tend.journal.Put(record{Project: "demo", Round: "demo-1", Marker: "gone"}, true))
	_, err = dead.shift.env.Append.Append(ctx, events.For("round.started", "demo", "demo-1", "supervisor"), 0, tend.start(p, 1, agent))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "half.txt"), []byte("half\n"), 0o644))
	must(t, os.WriteFile(dead.shift.env.Layout.Token("agent", "demo-1"), []byte("x\n"), 0o600))

	y.hire("supervisor", "m1", list).run()
	r := y.roundEnds("demo", 1)
	if r.End.Outcome != outcomeInterrupted || r.Salvage == nil || y.git(dir, "show", r.Salvage.Ref+":half.txt") != "half" {
		t.Errorf("%+v, salvage %+v %+v", r.End, r.Salvage, r.SalvageFailed)
	}
	y.await("demo", "halted", func(p loop.Project) bool { return p.Loop.Status == loop.Halted && p.Round.Number() == 1 })
	if list, err := tend.journal.Leftovers(); err != nil || len(list) != 0 {
		t.Errorf("round files are left: %v, %v", list, err)
	}
	if _, err := os.Stat(dead.shift.env.Layout.Token("agent", "demo-1")); err == nil {
		t.Error("the token of the interrupted round is left")
	}
}

func TestQuestionsAreAnsweredFromTheLog(t *testing.T) {
	y := newYard(t)
	h := y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(y.repo("demo"), y.agent("agent", "echo x > f$BANKSMAN_ROUND"), func(p *Project) { p.MaxRounds = 3 })}).run()
	y.await("demo", "halted", func(p loop.Project) bool { return p.Loop.Status == loop.Halted })
	ctx := t.Context()
	all, err := h.shift.answerLoops(ctx, query.LoopsRequest{})
	must(t, err)
	if len(all.Loops) != 1 || all.Loops[0].State != query.LoopHalted || all.Loops[0].Turns != 3 || all.Loops[0].Round.Round != "demo-3" {
		t.Errorf("%+v", all)
	}
	list, err := h.shift.answerRounds(ctx, query.RoundsRequest{Project: "demo", Limit: 2})
	must(t, err)
	if len(list.Rounds) != 2 || !list.More || list.Rounds[0].Round != "demo-3" || list.Rounds[1].Salvage == nil {
		t.Errorf("%+v", list)
	}
	one, err := h.shift.answerRound(ctx, query.RoundRequest{Round: "demo-1"})
	if err != nil || one.Outcome != outcomeSucceeded || one.Number != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	for _, id := range []string{"demo-9", "nothing", "-1", "demo-01"} {
		if _, err := h.shift.answerRound(ctx, query.RoundRequest{Round: id}); err == nil {
			t.Errorf("round %q was found", id)
		}
	}
}
