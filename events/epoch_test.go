package events_test

import (
	"testing"

	"github.com/banksman/banksman/events"
)

func TestEpochNames(t *testing.T) {
	for n := events.FirstEpoch; n < 12; n++ {
		if got, ok := events.ParseEpoch(events.EpochID(n)); !ok || got != n {
			t.Errorf("%s is epoch %d, %v", events.EpochID(n), got, ok)
		}
	}
	for _, id := range []string{"", "epoch-", "epoch-0", "epoch-01", "epoch--1", "epoch-+1", "epoch-1x", "1", "Epoch-1"} {
		if n, ok := events.ParseEpoch(id); ok {
			t.Errorf("%q is epoch %d", id, n)
		}
	}
}

// What is not surely over goes along: later events, families that nobody listed, and what
// has no form that is known.
func TestEpochCarriesWhatIsNotOver(t *testing.T) {
	open := events.EpochOpened{Through: 100, Carried: map[string][]string{"job": {"a", "b"}, "audit": {}}}
	carries := open.Carries()
	for _, c := range []struct {
		seq     uint64
		subject string
		want    bool
	}{
		{5, "bm.job.default.a.proposed.proposer", true}, {5, "bm.job.default.c.proposed.proposer", false},
		{100, "bm.job.default.c.finished.worker", false}, {101, "bm.job.default.c.finished.worker", true},
		{5, "bm.audit.site.epoch-1.sealed.auditor", false}, {101, "bm.audit.site.epoch-1.sealed.auditor", true},
		{1, "bm.trust.site.main.published.root", true}, {5, "bm.stop.demo.demo.ordered.p7k2", true}, {5, "bm.later.site.x.invented.y", true},
		{5, "bm.job.a", true}, {5, "", true},
	} {
		if got := carries(c.seq, c.subject); got != c.want {
			t.Errorf("event %d under %q goes along: %v", c.seq, c.subject, got)
		}
	}
}

func TestEpochFollows(t *testing.T) {
	good := events.EpochOpened{Epoch: 3, Through: 9}
	at := func(change func(*events.Event, *events.EpochOpened)) error {
		p, e := good, events.Event{Seq: 10, Subject: events.For("epoch.opened", events.SiteScope, events.EpochID(3), "auditor")}
		change(&e, &p)
		return p.Follows(e, 2)
	}
	if err := at(func(*events.Event, *events.EpochOpened) {}); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*events.Event, *events.EpochOpened){
		"the same epoch":       func(_ *events.Event, p *events.EpochOpened) { p.Epoch = 2 },
		"one is left out":      func(_ *events.Event, p *events.EpochOpened) { p.Epoch = 4 },
		"another subject":      func(e *events.Event, _ *events.EpochOpened) { e.Subject.ID = events.EpochID(4) },
		"opened twice":         func(e *events.Event, _ *events.EpochOpened) { e.Expect = 7 },
		"it seals what is not": func(_ *events.Event, p *events.EpochOpened) { p.Through = 10 },
	} {
		if at(change) == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
