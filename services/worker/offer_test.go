package worker

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/view"
)

// A proposal whose delivery somebody holds who is gone is looked up when a worker
// starts, and not when the queue gives it away again.
func TestProposalOfADeadResolverIsLookedUpAtTheNextStart(t *testing.T) {
	y := newYard(t, rules)
	id := y.propose([]string{"echo", "x"})
	done := y.propose([]string{"echo", "y"})
	taking, enough := context.WithCancel(t.Context())
	left := 2
	must(t, y.Conn("worker").Consume(taking, "resolve-default", 1, func(ctx context.Context, d *bus.Delivery) {
		must(t, d.Ack(ctx)) // as good as held for ever
		if left--; left == 0 {
			enough()
		}
	}))
	stop, err := y.Conn("auditor").Serve(t.Context(), "banksman-auditor", "1.0.0", "index", map[string]bus.Endpoint{
		"bmq.jobs.list": func(context.Context, []byte) (any, error) {
			return view.List{Jobs: []view.Job{{Job: done, Status: lifecycle.Pending}, {Job: id, Status: lifecycle.Pending, Unresolved: true}}}, nil
		},
	})
	must(t, err)
	defer stop()
	w := y.hire("worker", "").run()
	y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	w.leave()
	if j := y.Job(done); j.Resolution != nil {
		t.Error("a job was looked up that the index calls resolved")
	}
}

// What one worker declines, another one of the pool gets.
func TestDeclinedProposalIsOfferedToAnotherWorker(t *testing.T) {
	y := newYard(t, rules)
	bin := filepath.Join(y.ground, "own")
	must(t, os.MkdirAll(bin, 0o755))
	must(t, os.WriteFile(filepath.Join(bin, "deploy"), []byte("#!/bin/sh\necho deployed\n"), 0o755))
	first := y.hire("worker", "").run()
	first.shows("that it is ready", func(line string) bool { return line == "true " })
	second := y.hire("other", "elsewhere", func(c *Config) { c.Path = append([]string{bin}, c.Path...) })
	id := y.propose([]string{"deploy"})
	y.Await(id, "declined", func(j lifecycle.Job) bool { return len(j.Declines) > 0 && j.Declines[0].Actor == "worker" })
	second.run()
	second.shows("that it is ready", func(line string) bool { return line == "true " })
	// The first decline was heard by nobody else; the second worker hears this one.
	id = y.propose([]string{"deploy"})
	j := y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	if j.ResolvedBy != "other" {
		t.Errorf("resolved by %s", j.ResolvedBy)
	}
	for _, d := range j.Declines {
		if d.Actor != "worker" || d.Code != proc.CodeNoProgram {
			t.Errorf("declined as %+v", d)
		}
	}
}
