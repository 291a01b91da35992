package worker

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/view"
)

// Whatever comes and goes: no slot is idle while somebody waits, never more are
// held than there are, and whoever is given one holds no more than any other who
// waits.
func TestSlotsAreSharedOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "slots")
		q := newSlots(n)
		var held []string
		waiting := map[*turn]string{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				who := held[i]
				held = slices.Delete(held, i, i+1)
				q.give(who)
			} else {
				who := rapid.SampledFrom([]string{"flood", "flood", "flood", "rare", "new"}).Draw(t, "who")
				if len(q.queue) == 0 && q.free > 0 {
					if !q.try() {
						t.Fatal("a free slot is not to be had")
					}
					q.name(who)
					held = append(held, who)
				} else { // what take does before it waits
					w := &turn{who: who, given: make(chan struct{})}
					q.queue = append(q.queue, w)
					waiting[w] = who
				}
			}
			before := map[string]int{}
			for _, who := range held {
				before[who]++
			}
			for w, who := range waiting {
				select {
				case <-w.given:
					delete(waiting, w)
					held = append(held, who)
					for _, other := range waiting {
						if before[other] < before[who] {
							t.Fatalf("%s was served with %d in hand, and %s waits with %d", who, before[who], other, before[other])
						}
					}
				default:
				}
			}
			if len(held)+q.free != n || q.free > 0 && len(waiting) > 0 || len(waiting) != len(q.queue) {
				t.Fatalf("%d held, %d free of %d, %d wait", len(held), q.free, n, len(waiting))
			}
		}
	})
}

func TestSlotThatIsNotWaitedForGoesOn(t *testing.T) {
	q := newSlots(1)
	must(t, q.take(t.Context(), "a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if q.take(ctx, "b") == nil || len(q.queue) != 0 {
		t.Errorf("a turn was left behind: %v", q.queue)
	}
	q.give("a")
	if q.crowded() || len(q.held) != 0 || !q.try() {
		t.Errorf("the slot is lost: %+v", q)
	}
}

// One proposer has filled the queue; another one's job is next all the same.
func TestProposerWithManyJobsWaitsForItsOwn(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "", func(c *Config) { c.Slots = 1 }).run()
	by := func(who string) func(*events.JobProposed) {
		return func(p *events.JobProposed) { p.Proposer.ID = who }
	}
	first, open := atGate(y, "gate")
	y.seal()
	y.Await(first, "running", running)
	var list view.List
	for _, who := range []string{"local", "local", "local", "rare"} {
		id := y.propose([]string{"echo", "x"}, by(who))
		y.allow(id)
		list.Jobs = append([]view.Job{{Job: id, Status: lifecycle.Approved, Proposer: "agent:" + who}}, list.Jobs...)
	}
	y.seal()
	stop, err := y.Conn("auditor").Serve(t.Context(), "banksman-auditor", "1.0.0", "index", map[string]bus.Endpoint{
		"bmq.jobs.list": func(context.Context, []byte) (any, error) { return list, nil },
	})
	must(t, err)
	defer stop()
	w.shift.takeOthers(w.shift.taking)
	for limit := time.Now().Add(patience); !w.shift.slots.waiting()["agent:rare"]; runtime.Gosched() { // a turn gives no sign
		if time.Now().After(limit) {
			t.Fatal("the other proposer's job does not wait for its turn")
		}
	}
	open()
	rare := y.ends(list.Jobs[0].Job)
	for _, j := range list.Jobs[1:] {
		if other := y.ends(j.Job); other.Current().StartedSeq < rare.Current().StartedSeq {
			t.Errorf("job %s of the one with many was started before", other.ID)
		}
	}
}
