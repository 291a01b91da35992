package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/proc"
)

func TestABusThatIsAwayLosesNothing(t *testing.T) {
	y := newYard(t)
	dir := y.repo("demo")
	agent := y.agent("agent", `echo "$BANKSMAN_ROUND" >> f; echo up > ../up; until [ -e ../go ]; do sleep 0.05; done; echo end > ../end`)
	h := y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(dir, agent, func(p *Project) { p.MaxRounds = 2 })}).run()
	eventually(t, "the agent is up", func() bool { _, err := os.Stat(filepath.Join(y.ground, "up")); return err == nil })
	y.Down()
	h.shows("the bus is away")
	must(t, os.WriteFile(filepath.Join(y.ground, "go"), nil, 0o644))
	eventually(t, "the agent ends", func() bool { _, err := os.Stat(filepath.Join(y.ground, "end")); return err == nil })
	eventually(t, "the round's end is on disk", func() bool {
		list, err := h.shift.tends[0].journal.Leftovers()
		return err == nil && len(list) == 1 && list[0].Looked && list[0].Salvaged != nil
	})
	y.Up()
	y.await("demo", "halted", func(p loop.Project) bool { return p.Loop.Status == loop.Halted && p.Round.Number() == 2 })
	r, err := y.read.Round(t.Context(), "demo-1")
	if err != nil || r.End.Outcome != outcomeSucceeded || r.Salvage == nil || y.git(dir, "show", r.Salvage.Ref+":f") != "demo-1" {
		t.Errorf("%+v, salvage %+v, %v", r.End, r.Salvage, err)
	}
}

func TestASupervisorStoppedWithoutItsBusSaysItLater(t *testing.T) {
	y := newYard(t)
	dir := y.repo("demo")
	agent := y.agent("agent", `echo half > f; echo up > ../up; while :; do sleep 0.05; done`)
	list := map[string]Project{"demo": y.plan(dir, agent, func(p *Project) { p.MaxRounds = 1 })}
	h := y.hire("supervisor", "m1", list)
	h.shift.settle = 200 * time.Millisecond
	h.run()
	eventually(t, "the agent is up", func() bool { _, err := os.Stat(filepath.Join(y.ground, "up")); return err == nil })
	y.Down()
	h.shows("the bus is away")
	h.leave()
	if list, err := h.shift.tends[0].journal.Leftovers(); err != nil || len(list) != 1 || list[0].Ended == nil || list[0].Ended.Outcome != outcomeStopped {
		t.Fatalf("%+v, %v", list, err)
	}
	y.Up()
	y.hire("supervisor", "m1", list).run()
	y.await("demo", "halted", func(p loop.Project) bool { return p.Loop.Status == loop.Halted })
	r, err := y.read.Round(t.Context(), "demo-1")
	if err != nil || r.End.Outcome != outcomeStopped || r.End.Reason != reasonStopped || r.Salvage == nil {
		t.Errorf("%+v, salvage %+v, %v", r.End, r.Salvage, err)
	}
}

// Two supervisors with folders of their own never run a project at once, and
// share its rounds.
func TestTwoSupervisorsRunOneAtATime(t *testing.T) {
	y := newYard(t)
	agent := y.agent("agent", `mkdir ../busy || touch ../overlap; sleep 0.05; rmdir ../busy; echo x > f$BANKSMAN_ROUND`)
	var hands []*hand
	for i, actor := range []string{"supervisor", "other"} {
		dir := y.repo(fmt.Sprintf("demo%d", i))
		hands = append(hands, y.hire(actor, fmt.Sprintf("m%d", i), map[string]Project{"demo": y.plan(dir, agent, func(p *Project) { p.MaxRounds = 6 })},
			func(c *Config) { c.DrainS = 20 }))
	}
	for _, h := range hands {
		h.run()
	}
	p := y.await("demo", "in its second round", func(p loop.Project) bool { return p.Round.Number() == 2 })
	for _, h := range hands {
		if h.shift.me.actor == p.Loop.Holder.Actor {
			h.leave() // the other one goes on
		}
	}
	p = y.await("demo", "halted", func(p loop.Project) bool { return p.Loop.Status == loop.Halted })
	if p.NextTurn() != 7 || p.Round.Number() != 6 {
		t.Errorf("halted after round %d, turn %d", p.Round.Number(), p.NextTurn()-1)
	}
	if _, err := os.Stat(filepath.Join(y.ground, "overlap")); err == nil {
		t.Error("two agents ran at once")
	}
}

// Neither the agent nor a program that it has configured git to run sees
// banksman's keys; the way to the proposer stays open.
func TestAgentsAndTheirGitSeeNoKeys(t *testing.T) {
	if err := proc.Namespaces(os.TempDir()); err != nil {
		need.Missing(t, "%v", err)
	}
	y := newYard(t)
	dir := y.repo("demo")
	secret := filepath.Join(y.dir, "keys", "p7k2.sign")
	must(t, os.WriteFile(secret, []byte("secret\n"), 0o600))
	agent := y.agent("agent", fmt.Sprintf(`
cat %[1]s > ../seen 2>&1
ls -A %[2]s >> ../seen
ls -d "$(dirname "$BANKSMAN_SOCKET")" > ../door
git config filter.loot.clean 'cat %[1]s >> ../loot 2>&1; cat'
echo '* filter=loot' > .gitattributes
git config core.worktree %[2]s/keys
git config --unset core.worktree
echo changed > kept.txt`, secret, y.dir))
	y.hire("supervisor", "m1", map[string]Project{"demo": y.plan(dir, agent, func(p *Project) { p.MaxRounds = 1 })}).run()
	r := y.roundEnds("demo", 1)
	if r.Salvage == nil {
		t.Fatalf("salvage failed: %+v", r.SalvageFailed)
	}
	for _, name := range []string{"seen", "loot"} {
		text, err := os.ReadFile(filepath.Join(y.ground, name))
		if err != nil || strings.Contains(string(text), "secret") || strings.Contains(string(text), "keys\n") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if door, err := os.ReadFile(filepath.Join(y.ground, "door")); err != nil || !strings.Contains(string(door), "proposer") {
		t.Errorf("the way to the proposer: %q, %v", door, err)
	}
	if r.Start.UnsafeSharedUser {
		t.Error("the round says that it is not covered")
	}
}
