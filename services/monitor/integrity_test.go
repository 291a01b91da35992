package monitor

import (
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/alert"
	"github.com/banksman/banksman/services/internal/site"
)

// What the auditor finds wrong stops every project that somebody holds, and stays an
// alert until an admin has named each fault.
func TestAFaultOfTheStreamStopsEveryProject(t *testing.T) {
	y := newYard(t)
	g := y.post()
	y.claim("demo")
	y.claim("other")
	y.say("auditor", "audit.gap_found", events.SiteScope, site.Epoch, &events.AuditGapFound{From: 5, To: 7})
	for _, name := range []string{"demo", "other"} {
		y.until(name+" is ordered to stop", func() bool { return y.project(name).Stop.InForce() })
	}
	a := y.alert(nameIntegrity, "stream")
	if a.Status != alert.Raised || a.Severity != events.SeverityCritical || a.Scope != events.SiteScope {
		t.Errorf("alert %+v", a)
	}
	weak := y.say("auditor", "audit.fault_found", events.SiteScope, site.Epoch, &events.AuditFaultFound{Code: "weak_stream", Detail: "max_msgs"})
	y.until("the alert is worse", func() bool { return y.alert(nameIntegrity, "stream").Grade == 2 })
	ack := func(who string, names ...events.FaultName) {
		y.say(who, "gap.acknowledged", events.SiteScope, site.Epoch, &events.GapAcknowledged{Faults: names, Reason: "known"})
	}
	ack("boss", events.FaultName{Code: "gap", Seq: 5, To: 8}, events.FaultName{Code: "weak_stream", Seq: weak})
	g.caughtUp()
	if a := y.alert(nameIntegrity, "stream"); !a.Open() {
		t.Error("the alert was cleared although one fault was not named")
	}
	ack("boss", events.FaultName{Code: "gap", Seq: 5, To: 7})
	y.until("the alert is cleared", func() bool { return y.alert(nameIntegrity, "stream").Status == alert.Cleared })
	if n := len(y.stored("stop.ordered")); n != 2 {
		t.Errorf("%d orders", n)
	}
}
