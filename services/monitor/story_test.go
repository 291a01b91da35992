package monitor

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/alert"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/alerts"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/query"
)

func TestRefusedLogInsStopTheProjectOnceUntilAPersonLiftsIt(t *testing.T) {
	y := newYard(t)
	g := y.post()
	y.claim("demo")
	y.claim("bystander")
	y.round("demo", refused)
	y.round("demo", refused)
	g.caughtUp()
	if n := len(y.stored("alert.raised")); n != 0 {
		t.Fatalf("%d alerts after two rounds", n)
	}
	y.round("demo", refused)
	y.until("the project is ordered to stop", func() bool { return y.project("demo").Stop.InForce() })
	a := y.alert(nameAuth, "demo")
	p := y.project("demo")
	if a.Status != alert.Raised || a.Severity != events.SeverityCritical || a.Scope != "demo" {
		t.Fatalf("alert %+v", a)
	}
	if p.Stop.By != "monitor" || p.Stop.Order.Mode != events.StopDrain || p.Stop.Order.Alert != a.ID || p.Stop.Seq < a.RaisedSeq {
		t.Errorf("order %+v %+v", p.Stop, p.Stop.Order)
	}
	var list query.AlertList
	must(t, y.Conn("reader").Ask(t.Context(), query.Alerts, query.AlertsRequest{}, &list))
	if len(list.Alerts) != 1 || list.Alerts[0].Alert != a.ID || list.Alerts[0].Project != "demo" {
		t.Errorf("the monitor answers %+v", list)
	}
	y.obey("demo", "stop.seen", &events.StopSeen{Ordered: p.Stop.Seq})
	y.obey("demo", "stop.drained", &events.StopDrained{Ordered: p.Stop.Seq})
	y.obey("demo", "stop.confirmed", &events.StopConfirmed{Ordered: p.Stop.Seq})
	g.caughtUp()
	if a := y.alert(nameAuth, "demo"); !a.Open() {
		t.Error("the alert was cleared before anybody had lifted the order")
	}
	said, err := loops.Lift(y.project("demo"), "logged in again")
	must(t, err)
	y.say("p7k2", said.Kind, "demo", "demo", said.Payload)
	y.until("the alert is cleared", func() bool { return y.alert(nameAuth, "demo").Status == alert.Cleared })
	y.round("demo", refused)
	y.round("demo", func(*events.RoundEnded) {})
	g.caughtUp()
	if n := len(y.stored("stop.ordered")); n != 1 || y.project("demo").Stop.InForce() {
		t.Errorf("%d orders, in force %v", n, y.project("demo").Stop.InForce())
	}
	for range 3 {
		y.round("demo", refused)
	}
	y.until("a new episode orders again", func() bool { return y.project("demo").Stop.InForce() })
	if a := y.alert(nameAuth, "demo"); a.Episodes != 2 {
		t.Errorf("episode %d", a.Episodes)
	}
}

// From the first event on, from what was put away, and with a file that is no
// good, a new monitor comes to the same end and repeats nothing.
func TestAMonitorThatStartsAgainRepeatsNothing(t *testing.T) {
	y := newYard(t)
	g := y.post()
	y.claim("demo")
	for range 3 {
		y.round("demo", refused)
	}
	y.until("the project is ordered to stop", func() bool { return y.project("demo").Stop.InForce() })
	g.caughtUp()
	g.leave()
	path := g.watch.path
	for name, prepare := range map[string]func(){
		"with its memory": func() {
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		},
		"without it":     func() { must(t, os.Remove(path)) },
		"with a bad one": func() { must(t, os.WriteFile(path, []byte(`{"version":1,"memory":`), 0o600)) },
	} {
		prepare()
		next := y.post()
		next.caughtUp()
		next.leave()
		for kind, want := range map[events.Kind]int{"alert.raised": 1, "alert.updated": 0, "alert.cleared": 0, "stop.ordered": 1} {
			if got := len(y.stored(kind)); got != want {
				t.Errorf("%s: %d times %s, want %d", name, got, kind, want)
			}
		}
	}
	// What happened while nobody watched counts all the same.
	said, err := loops.Lift(y.project("demo"), "seen to")
	must(t, err)
	y.say("p7k2", said.Kind, "demo", "demo", said.Payload)
	y.post().caughtUp()
	if a := y.alert(nameAuth, "demo"); a.Status != alert.Cleared {
		t.Errorf("the alert is %q", a.Status)
	}
}

func TestTwoMonitorsRaiseOneAlert(t *testing.T) {
	y := newYard(t)
	one, two := y.post(), y.post()
	y.claim("demo")
	for range 3 {
		y.round("demo", refused)
	}
	y.until("the project is ordered to stop", func() bool { return y.project("demo").Stop.InForce() })
	one.caughtUp()
	two.caughtUp()
	if a, o := len(y.stored("alert.raised")), len(y.stored("stop.ordered")); a != 1 || o != 1 {
		t.Errorf("%d alerts, %d orders", a, o)
	}
}

func TestAnOrderThatNobodyConfirmsIsEscalatedToKill(t *testing.T) {
	y := newYard(t)
	g := y.post()
	y.claim("demo")
	for range 3 {
		y.round("demo", refused)
	}
	y.begin("demo", 3600) // began before the order was seen
	y.until("the project is ordered to stop", func() bool { return y.project("demo").Stop.InForce() })
	g.caughtUp()
	g.later(299 * time.Second)
	if n := len(y.stored("stop.escalated")); n != 0 {
		t.Fatal("escalated too early")
	}
	g.later(5 * time.Second)
	y.until("the order has become one to kill", func() bool { return y.project("demo").Stop.Wants(events.StopKill) })
	g.caughtUp()
	e := y.stored("stop.escalated")
	if len(e) == 0 || e[0].Payload.(*events.StopEscalated).State != string(loop.Ordered) {
		t.Fatalf("escalated %+v", e)
	}
	if a := y.alert(nameUnconfirmed, "demo"); !a.Open() || a.Severity != events.SeverityCritical {
		t.Errorf("alert %+v", a)
	}
	g.later(time.Hour)
	g.caughtUp()
	if e, o := len(y.stored("stop.escalated")), len(y.stored("stop.ordered")); e != 2 || o != 2 {
		t.Errorf("%d escalations, %d orders: each order is escalated once", e, o)
	}
	seq := y.project("demo").Stop.Seq
	y.obey("demo", "stop.seen", &events.StopSeen{Ordered: seq})
	y.obey("demo", "stop.killed", &events.StopKilled{Ordered: seq})
	y.obey("demo", "stop.confirmed", &events.StopConfirmed{Ordered: seq})
	y.until("nothing is unconfirmed", func() bool { return y.alert(nameUnconfirmed, "demo").Status == alert.Cleared })
}

func TestAFullDiskStopsWhatRunsOnItsMachine(t *testing.T) {
	y := newYard(t)
	g := y.post()
	y.claim("here")
	observe := func(host string, free int64) {
		y.say("worker", "host.observed", "default", "00000000000000000009", &events.HostObserved{Host: host, Level: events.LevelOK, Disks: []events.Disk{
			{Path: "/", TotalBytes: 1000, FreeBytes: free, Level: events.LevelOK},
		}})
	}
	observe(machine, 80)
	about := machine + ":/"
	y.until("it is worth a warning", func() bool { return y.alert(nameDisk, about).Severity == events.SeverityWarning })
	g.caughtUp()
	if y.project("here").Stop.InForce() {
		t.Fatal("a warning has stopped a project")
	}
	observe("elsewhere", 10)
	y.until("the other machine's disk is critical", func() bool { return y.alert(nameDisk, "elsewhere:/").Open() })
	g.caughtUp()
	if y.project("here").Stop.InForce() {
		t.Fatal("another machine's disk has stopped a project")
	}
	observe(machine, 20)
	y.until("the project is ordered to stop", func() bool { return y.project("here").Stop.InForce() })
	if a := y.alert(nameDisk, about); a.Severity != events.SeverityCritical || a.Updates != 1 || a.Scope != events.SiteScope {
		t.Errorf("alert %+v", a)
	}
	// A person who lifts the order is not overruled while the disk stays full.
	said, err := loops.Lift(y.project("here"), "it may go on")
	must(t, err)
	y.say("p7k2", said.Kind, "here", "here", said.Payload)
	observe(machine, 15)
	g.caughtUp()
	if y.project("here").Stop.InForce() {
		t.Error("the same episode has stopped the project again")
	}
	observe(machine, 500)
	y.until("the disk has room again", func() bool { return y.alert(nameDisk, about).Status == alert.Cleared })
	g.later(unseenAfter + time.Minute)
	y.until("a machine that nobody observes is unknown", func() bool { return y.alert(nameDisk, "elsewhere:/").Status == alert.Cleared })
}

func TestARoundThatOutlivesItsLimitIsFoundByTimeAlone(t *testing.T) {
	y := newYard(t)
	g := y.post()
	y.claim("demo")
	y.begin("demo", 600)
	g.caughtUp()
	g.later(14 * time.Minute)
	if y.alert(nameHung, "demo").Open() {
		t.Fatal("found too early")
	}
	g.later(2 * time.Minute)
	y.until("the round is found to hang", func() bool { return y.alert(nameHung, "demo").Open() })
	g.later(time.Minute)
	g.caughtUp()
	if a := y.alert(nameHung, "demo"); a.Updates != 0 {
		t.Errorf("%d updates in a minute", a.Updates)
	}
	p := y.project("demo")
	y.say("supervisor", "round.ended", "demo", p.Round.ID, &events.RoundEnded{Started: p.Round.StartedSeq, Outcome: outcomeTimedOut})
	y.until("the alert is cleared", func() bool { return y.alert(nameHung, "demo").Status == alert.Cleared })
}

func TestBadEventsChangeNothingAndEndNothing(t *testing.T) {
	y := newYard(t)
	g := y.post()
	y.claim("demo")
	y.round("demo", refused)
	y.round("demo", refused)
	// A stranger's event, garbage, a kind that nobody knows, and a believed
	// event that the fold refuses.
	admin := y.Server.Admin()
	for i, s := range []string{"bm.round.demo.demo-9.ended.supervisor", "bm.alert.demo.auth_failures-demo.raised.monitor", "bm.loop.demo.demo.dreamt.supervisor", "bm.host.site.x.observed.worker"} {
		subject, err := events.ParseSubject(s)
		must(t, err)
		m := events.Message{Subject: subject, Data: []byte(`{"outcome":7`), Header: map[string][]string{}}
		if i == 2 {
			m.Expect = y.project("demo").Loop.LastSeq
		}
		m.Header[events.HeaderExpect], m.Header[events.HeaderExpectFilter] = []string{"0"}, []string{subject.Filter()}
		if i == 2 {
			m.Header[events.HeaderExpect] = []string{strconv.FormatUint(m.Expect, 10)}
		}
		_, err = admin.AppendRaw(t.Context(), m)
		must(t, err)
	}
	y.say("supervisor", "round.ended", "demo", "demo-1", &events.RoundEnded{Started: 1, Outcome: outcomeFailed, Failure: failureAuth})
	g.caughtUp()
	if y.project("demo").Stop.InForce() {
		t.Fatal("an event that changes nothing was counted")
	}
	y.round("demo", refused)
	y.until("the project is ordered to stop", func() bool { return y.project("demo").Stop.InForce() })
}

func TestAnAlertCanBeAcknowledged(t *testing.T) {
	y := newYard(t)
	g := y.post()
	y.claim("demo")
	for range 2 {
		y.round("demo", func(r *events.RoundEnded) { r.Outcome = outcomeTimedOut })
	}
	y.until("the timeout rate is found", func() bool { return y.alert(nameTimeouts, "demo").Open() })
	a := y.alert(nameTimeouts, "demo")
	word, err := alerts.Acknowledge(a, "the repository is large")
	must(t, err)
	y.say("p7k2", "alert.acknowledged", a.Scope, a.ID, word)
	y.round("demo", func(r *events.RoundEnded) { r.Outcome = outcomeTimedOut })
	y.until("it has become worse", func() bool { return y.alert(nameTimeouts, "demo").Updates == 1 })
	a = y.alert(nameTimeouts, "demo")
	if a.Status != alert.Acknowledged || a.AckBy != "p7k2" {
		t.Errorf("%+v", a)
	}
	if _, err := alerts.Acknowledge(a, ""); err == nil {
		t.Error("acknowledged twice")
	}
	for range 9 {
		y.round("demo", func(*events.RoundEnded) {})
	}
	y.until("it is cleared", func() bool { return y.alert(nameTimeouts, "demo").Status == alert.Cleared })
	g.caughtUp()
	holds(t, g.shows(), "true")
}

// What nobody believes is not said again and again.
func TestAMonitorThatIsNotBelievedDoesNotFillTheStream(t *testing.T) {
	y := newYard(t)
	stranger, err := keys.GenerateSigner()
	must(t, err)
	g := y.postSigning(stranger)
	y.claim("demo")
	for range 3 {
		y.round("demo", refused)
	}
	raised := func() int {
		page, err := y.Conn("reader").Read(t.Context(), 1, "bm.alert.>", 256)
		must(t, err)
		return len(page)
	}
	y.until("it has said so once", func() bool { return raised() == 1 })
	g.caughtUp()
	y.round("demo", refused)
	g.later(50 * time.Second)
	if n := raised(); n != 1 {
		t.Errorf("said %d times", n)
	}
	holds(t, g.shows(), "not believed")
	g.later(20 * time.Second)
	g.caughtUp()
	if n := raised(); n != 2 {
		t.Errorf("said %d times after a minute", n)
	}
}
