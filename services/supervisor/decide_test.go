package supervisor

import (
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// held is a project that this session holds, with a round behind it.
func held(change ...func(*loop.Project)) loop.Project {
	p := loop.Project{Name: "demo"}
	p.Loop = loop.Loop{Status: loop.Held, Holder: loop.Holder{
		Actor: "supervisor", Session: "s1", Seq: 3, Claim: events.LoopClaimed{Host: "m1", WorkDir: "/w", LeaseS: 30},
	}}
	p.Round = loop.Round{
		ID: "demo-4", Status: loop.Ended, Actor: "supervisor", StartedSeq: 5, EndedSeq: 6, EndedAt: noon,
		Start: &events.RoundStarted{Number: 4, Turn: 4}, End: &events.RoundEnded{Outcome: outcomeSucceeded},
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func ordered(mode string, s loop.Status) func(*loop.Project) {
	return func(p *loop.Project) {
		p.Stop = loop.Stop{Status: s, Order: &events.StopOrdered{Mode: mode, Reason: "enough"}, Seq: 7, By: "p7k2"}
	}
}

func holder(actor, session, host, dir string) func(*loop.Project) {
	return func(p *loop.Project) {
		p.Loop.Holder.Actor, p.Loop.Holder.Session, p.Loop.Holder.Claim.Host, p.Loop.Holder.Claim.WorkDir = actor, session, host, dir
	}
}

func TestNextStep(t *testing.T) {
	me := identity{actor: "supervisor", session: "s1", host: "m1"}
	later := facts{now: noon.Add(time.Hour), silent: time.Second}
	for _, c := range []struct {
		name   string
		p      loop.Project
		cfg    Project
		f      facts
		want   doing
		reason string
		until  time.Time
	}{
		{"unknown", loop.Project{Name: "demo"}, Project{}, later, doClaim, "", time.Time{}},
		{"free", held(func(p *loop.Project) { p.Loop.Status, p.Loop.Holder = loop.Free, loop.Holder{} }), Project{}, later, doClaim, "", time.Time{}},
		{"an earlier session of this place", held(holder("supervisor", "s0", "m1", "/w")), Project{}, later, doClaim, "", time.Time{}},
		{"another machine, lately heard", held(holder("supervisor", "s0", "m2", "/w")), Project{}, later, doWait, "on m2 holds it", later.now.Add(29 * time.Second)},
		{"another folder", held(holder("supervisor", "s0", "m1", "/v")), Project{}, later, doWait, "holds it", later.now.Add(29 * time.Second)},
		{"another machine, silent", held(holder("other", "s0", "m2", "/w")), Project{}, facts{now: noon, silent: 30 * time.Second}, doClaim, "", time.Time{}},
		{"another machine, deaf", held(holder("other", "s0", "m2", "/w")), Project{}, facts{now: noon, silent: -1}, doWait, "holds it", time.Time{}},
		{"a round without a process", held(func(p *loop.Project) { p.Round.Status = loop.Running }, ordered("kill", loop.Ordered)), Project{}, later, doInterrupt, "", time.Time{}},
		{"ordered", held(ordered("drain", loop.Ordered)), Project{}, later, doSee, "", time.Time{}},
		{"seen", held(ordered("drain", loop.Seen)), Project{}, later, doSettle, "", time.Time{}},
		{"drained", held(ordered("drain", loop.Drained)), Project{}, later, doConfirm, "", time.Time{}},
		{"killed", held(ordered("kill", loop.Killed)), Project{}, later, doConfirm, "", time.Time{}},
		{"confirmed", held(ordered("kill", loop.Confirmed)), Project{}, later, doWait, "stopped by p7k2: enough", time.Time{}},
		{"a stopped loop is not halted", held(ordered("kill", loop.Confirmed)), Project{MaxRounds: 4}, later, doWait, "stopped", time.Time{}},
		{"halted", held(func(p *loop.Project) { p.Loop.Status, p.Loop.Halt = loop.Halted, &events.LoopHalted{Reason: "done"} }), Project{}, later, doWait, "done", time.Time{}},
		{"a halted loop obeys", held(func(p *loop.Project) { p.Loop.Status, p.Loop.Halt = loop.Halted, &events.LoopHalted{} }, ordered("kill", loop.Ordered)), Project{}, later, doSee, "", time.Time{}},
		{"enough rounds", held(), Project{MaxRounds: 4}, later, doHalt, "", time.Time{}},
		{"started anew", held(func(p *loop.Project) { p.Loop.RequestedSeq = 9 }), Project{MaxRounds: 4}, later, doRound, "", time.Time{}},
		{"rests", held(), Project{RestartDelayS: 3}, facts{now: noon.Add(time.Second)}, doWait, "", noon.Add(3 * time.Second)},
		{"rested", held(), Project{RestartDelayS: 3}, facts{now: noon.Add(3 * time.Second)}, doRound, "", time.Time{}},
		{"unreadable", held(func(p *loop.Project) { p.Unreadable = true }), Project{}, later, doWait, "newer banksman", time.Time{}},
	} {
		c.cfg.WorkDir = "/w"
		s := next(c.p, me, c.cfg, c.f)
		if s.do != c.want || !strings.Contains(s.reason, c.reason) || (s.reason == "") != (c.reason == "") || !s.until.Equal(c.until) {
			t.Errorf("%s: %+v, want %v %q until %v", c.name, s, c.want, c.reason, c.until)
		}
	}
}

func TestVerdictOnARunningRound(t *testing.T) {
	me := identity{actor: "supervisor", session: "s1", host: "m1"}
	running := func(p *loop.Project) { p.Round.Status = loop.Running }
	for name, c := range map[string]struct {
		p    loop.Project
		see  bool
		ends string
	}{
		"nothing new":     {held(running), false, ""},
		"drain":           {held(running, ordered("drain", loop.Ordered)), true, ""},
		"drain, seen":     {held(running, ordered("drain", loop.Seen)), false, ""},
		"kill":            {held(running, ordered("kill", loop.Ordered)), true, "stop ordered by p7k2: enough"},
		"kill, seen":      {held(running, ordered("kill", loop.Seen)), false, "stop ordered by p7k2: enough"},
		"lost":            {held(running, holder("other", "s2", "m2", "/w")), false, "lost to other on m2"},
		"given away":      {held(running, func(p *loop.Project) { p.Loop.Holder = loop.Holder{} }), false, "lost to nobody"},
		"another round":   {held(running, func(p *loop.Project) { p.Round.ID = "demo-5" }), false, "does not know"},
		"lost and killed": {held(running, holder("other", "s2", "m2", "/w"), ordered("kill", loop.Ordered)), false, "lost to other"},
	} {
		v := judge(c.p, me, "demo-4")
		if v.see != c.see || !strings.Contains(v.end, c.ends) || (v.end == "") != (c.ends == "") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestSettledNamesTheRoundThatTheOrderMet(t *testing.T) {
	p := held(ordered("kill", loop.Seen), func(p *loop.Project) { p.Round.EndedSeq, p.Round.End.Survivors = 8, 2 })
	kind, payload := settled(p)
	if k, ok := payload.(*events.StopKilled); !ok || kind != "stop.killed" || k.Ordered != 7 || k.Round != "demo-4" || k.Survivors != 2 {
		t.Errorf("%s %+v", kind, payload)
	}
	kind, payload = settled(held(ordered("drain", loop.Seen)))
	if d, ok := payload.(*events.StopDrained); !ok || kind != "stop.drained" || d.Ordered != 7 || d.Round != "" {
		t.Errorf("%s %+v", kind, payload)
	}
}
