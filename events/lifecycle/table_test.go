package lifecycle_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/events/lifecycle/alert"
	"github.com/banksman/banksman/events/lifecycle/grant"
	"github.com/banksman/banksman/events/lifecycle/loop"
)

// observedOnly are kinds that move no job, project, alert or grant: somebody reads them
// for what they say. A kind of the family "job" never belongs here.
var observedOnly = []events.Kind{
	"epoch.opened", "epoch.close_requested",
	"policy.published", "trust.published", "worker.started", "worker.stopped",
	"audit.sealed", "audit.violation_found", "audit.gap_found", "audit.fault_found", "gap.acknowledged", "text.erased", "host.observed",
	"ask.cancel_requested", "ask.revoke_requested", "ask.commented", "ask.barred", "ask.unbarred", "ask.waived", "proposal.refused",
}

func TestEveryKindMovesAJobOrIsObservedOnly(t *testing.T) {
	var all []events.Kind
	for _, d := range events.Catalog() {
		all = append(all, d.Kind)
		moves := slices.ContainsFunc(lifecycle.Table, func(r lifecycle.Row) bool { return r.On == d.Kind })
		if slices.ContainsFunc(loop.Table, func(r loop.Row) bool { return r.On == d.Kind }) ||
			slices.ContainsFunc(alert.Table, func(r alert.Row) bool { return r.On == d.Kind }) ||
			slices.ContainsFunc(grant.Table, func(r grant.Row) bool { return r.On == d.Kind }) {
			continue
		}
		switch observed := slices.Contains(observedOnly, d.Kind); {
		case d.Kind.Family() == "job" && (observed || !moves):
			t.Errorf("kind %s has no row in lifecycle.Table", d.Kind)
		case moves == observed:
			t.Errorf("kind %s: moves a job %v, in observedOnly %v; exactly one must hold", d.Kind, moves, observed)
		}
	}
	for _, k := range observedOnly {
		if !slices.Contains(all, k) {
			t.Errorf("observedOnly names %s, which the catalogue does not hold", k)
		}
	}
	for _, r := range lifecycle.Table {
		if !slices.Contains(all, r.On) || !slices.Contains(lifecycle.Statuses, r.From) || !slices.Contains(lifecycle.Statuses, r.To) {
			t.Errorf("row %v names a kind or a status that does not exist", r)
		}
	}
}

// standings are jobs in every status, each by the shortest honest way there.
var standings = []struct {
	name string
	by   string
}{
	{"none", ""},
	{"proposed", "propose"},
	{"proposed, resolved", "propose; resolve"},
	{"pending, unresolved", "propose; assess resolution="},
	{"pending, resolved late", "propose; assess resolution=; resolve"},
	{"pending", "propose; resolve; assess"},
	{"pending, of two", "propose; resolve; assess quorum=2"},
	{"approved", "propose attempts=2 retry_safe=yes; resolve; allow"},
	{"running", "propose; resolve; allow; start"},
	{"running, may retry", "propose attempts=2 retry_safe=yes; resolve; allow; start"},
	{"retry_wait", "propose attempts=2; resolve; allow; start; finish outcome=failed retry=1"},
	{"succeeded", "propose; resolve; allow; start; finish"},
	{"failed", "propose; resolve; allow; start; finish outcome=failed"},
	{"timed_out", "propose; resolve; allow; start; finish outcome=timed_out"},
	{"lost", "propose; resolve; allow; start; lapse"},
	{"lost, late result", "propose; resolve; allow; start; lapse; finish"},
	{"denied", "propose; deny"},
	{"expired", "propose ttl=1; wait; expire"},
	{"cancelled", "propose; cancel"},
	{"cancelled, had run", "propose; resolve; allow; start; cancel w1"},
	{"revoked", "propose; resolve; allow; revoke"},
	{"dead_letter", "propose; resolve; allow; dead_letter"},
	{"approved, for the caller", "propose executor=caller; resolve; allow"},
	{"handed_over", "propose executor=caller; resolve; allow; hand_over"},
	{"handed_over, reported", "propose executor=caller; resolve; allow; hand_over; report exit=3"},
}

// deeds are events of every kind in every case, as well-formed as the job
// that they hit permits.
var deeds = []string{
	"propose", "resolve", "assess", "allow", "approve", "deny", "decline", "expire", "expire due", "cancel", "cancel w1", "revoke", "grant", "start",
	"finish", "finish outcome=failed", "finish outcome=timed_out", "finish outcome=failed retry=60", "lapse", "dead_letter", "hand_over", "report",
}

func standing(t testing.TB, by string) *world {
	t.Helper()
	w := newWorld()
	for _, line := range strings.Split(by, "; ") {
		switch line {
		case "":
		case "wait":
			w.now = w.now.Add(2 * time.Second)
		default:
			if err := w.do(line); err != nil {
				t.Fatalf("%s: %v", by, err)
			}
		}
	}
	return w
}

// Every status meets every kind in every case, and the answer is the one in
// testdata/answers.txt: a status, "-" for a refusal, "!" for one that taints.
func TestEveryStatusAnswersEveryKind(t *testing.T) {
	moved := map[lifecycle.Row]bool{}
	var got strings.Builder
	for _, s := range standings {
		fmt.Fprintf(&got, "%s\n", s.name)
		for _, deed := range deeds {
			fmt.Fprintf(&got, "    %-32s %s\n", deed, answer(t, standing(t, s.by), deed, moved))
		}
	}
	for _, r := range lifecycle.Table {
		if !moved[lifecycle.Row{From: r.From, On: r.On, To: r.To}] {
			t.Errorf("row %v was never taken", r)
		}
	}
	const path = "testdata/answers.txt"
	want, err := os.ReadFile(path)
	if *update && got.String() != string(want) {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if err != nil || got.String() != string(want) {
		t.Errorf("%s differs (%v); the answers are:\n%s", path, err, got.String())
	}
}

func answer(t *testing.T, w *world, deed string, moved map[lifecycle.Row]bool) string {
	t.Helper()
	deed, due := strings.CutSuffix(deed, " due")
	if due {
		w.now = w.now.Add(24 * time.Hour)
	}
	before := w.job
	err := w.do(deed)
	var refused *lifecycle.Refusal
	switch {
	case err == nil:
		e := w.stored[len(w.stored)-1]
		moved[lifecycle.Row{From: before.Status, On: e.Kind, To: w.job.Status}] = true
		return string(w.job.Status)
	case !errors.As(err, &refused):
		t.Fatalf("%s in %q: untyped error %v", deed, before.Status, err)
	case refused.From != before.Status || w.job.Status != before.Status || w.job.Tainted != refused.Taints:
		t.Errorf("%s in %q: %+v left %q, tainted %v", deed, before.Status, refused, w.job.Status, w.job.Tainted)
	case refused.Taints:
		return "! " + refused.Code
	}
	return "- " + refused.Code
}

// Every status is reached, and every final one is an end.
func TestStandingsCoverEveryStatus(t *testing.T) {
	reached := map[lifecycle.Status]bool{}
	for _, s := range standings {
		reached[standing(t, s.by).job.Status] = true
	}
	for _, s := range lifecycle.Statuses {
		if !reached[s] {
			t.Errorf("no standing reaches %q", s)
		}
		for _, r := range lifecycle.Table {
			if s.Final() && r.From == s && r.To != s {
				t.Errorf("row %v leaves a final status", r)
			}
		}
	}
}

// The diagram is drawn from the rows: every arrow once, no self-moves.
func TestDiagram(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(lifecycle.Diagram()), "\n")
	slices.Sort(lines)
	if len(slices.Compact(slices.Clone(lines))) != len(lines) {
		t.Error("an arrow is drawn twice")
	}
	for _, want := range []string{"    [*] --> proposed: proposed", "    running --> retry_wait: lapsed, attempts left", "    lost --> [*]"} {
		if !slices.Contains(lines, want) {
			t.Errorf("the diagram lacks %q", want)
		}
	}
	for _, line := range lines {
		if strings.Contains(line, "lost --> lost") || strings.Contains(line, "pending --> pending") {
			t.Errorf("self-move %q", line)
		}
	}
}
