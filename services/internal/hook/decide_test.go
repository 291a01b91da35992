package hook

import (
	"encoding/json/v2"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/view"
)

const jobOfTests = "0192f0c1-7b3a-7c4e-9d2f-0123456789ab"

func job(status lifecycle.Status, change func(*view.Detail)) view.Detail {
	j := view.Detail{Job: view.Job{Job: jobOfTests, Status: status}}
	if change != nil {
		change(&j)
	}
	return j
}

// told is an answer as the program reads it.
type told struct {
	Specific struct {
		Event    string         `json:"hookEventName"`
		Decision string         `json:"permissionDecision"`
		Reason   string         `json:"permissionDecisionReason"`
		Input    map[string]any `json:"updatedInput"`
	} `json:"hookSpecificOutput"`
}

func tell(t *testing.T, a Answer) told {
	t.Helper()
	text, err := a.Text()
	if err != nil {
		t.Fatal(err)
	}
	var out told
	if err := json.Unmarshal(text, &out, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if out.Specific.Event != "PreToolUse" {
		t.Errorf("event %q", out.Specific.Event)
	}
	return out
}

func TestEveryStateOfAJobIsAnswered(t *testing.T) {
	ran := func(j *view.Detail) { j.Attempts = []view.Attempt{{Attempt: 1}} }
	for _, c := range []struct {
		name    string
		job     view.Detail
		allow   bool
		pending bool
		says    []string
	}{
		{"proposed", job(lifecycle.Proposed, nil), false, true, []string{"pending", jobOfTests}},
		{"pending", job(lifecycle.Pending, nil), false, true, []string{"banksman approve " + jobOfTests, here.Command(jobOfTests)}},
		{"denied by a rule", job(lifecycle.Denied, func(j *view.Detail) {
			j.DeniedBy, j.Ruling = "gate", &events.Ruling{Rule: "no-rm", Code: "denied", Reason: "it removes all", Instead: "name the files"}
		}), false, false, []string{"rule no-rm: it removes all", "Instead: name the files"}},
		{"denied by a person", job(lifecycle.Denied, func(j *view.Detail) {
			j.DeniedBy, j.Ruling = "pabcd", &events.Ruling{Code: "person", Reason: "not on a Sunday"}
		}), false, false, []string{"denied by pabcd: not on a Sunday"}},
		{"denied without a ruling", job(lifecycle.Denied, func(j *view.Detail) { j.Ending = "gone" }), false, false, []string{"gone"}},
		{"expired", job(lifecycle.Expired, func(j *view.Detail) { j.Ending = "nobody decided" }), false, false, []string{"did not run: nobody decided"}},
		{"dead letter", job(lifecycle.DeadLetter, nil), false, false, []string{"did not run"}},
		{"approved", job(lifecycle.Approved, nil), true, false, nil},
		{"running", job(lifecycle.Running, ran), true, false, nil},
		{"succeeded", job(lifecycle.Succeeded, ran), true, false, nil},
		{"failed", job(lifecycle.Failed, ran), true, false, nil},
		{"timed out", job(lifecycle.TimedOut, ran), true, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, pending := Decide(call(t, recorded), here, c.job)
			if pending != c.pending {
				t.Errorf("pending %v", pending)
			}
			got := tell(t, a).Specific
			for _, s := range c.says {
				if !strings.Contains(got.Reason, s) {
					t.Errorf("%q does not say %q", got.Reason, s)
				}
			}
			if !c.allow {
				if got.Decision != "deny" || got.Input != nil || got.Reason == "" {
					t.Errorf("want a denial with a reason: %+v", got)
				}
				return
			}
			if got.Decision != "allow" || got.Input["command"] != "/opt/bin/banksman run --attach "+jobOfTests || got.Input["description"] != "write file" {
				t.Errorf("want the input rewritten and the rest kept: %+v", got)
			}
		})
	}
}

// Whatever states a job may get: an undecided one is never let through, and no
// state lets the agent's own command through.
func TestNothingUndecidedIsAllowed(t *testing.T) {
	for _, s := range lifecycle.Statuses {
		a, _ := Decide(call(t, recorded), here, job(s, nil))
		if s.Undecided() && a.Decision != "deny" {
			t.Errorf("%s: %s", s, a.Decision)
		}
		if a.Decision == "allow" && string(a.Input["command"]) == `"echo hello > out.txt"` {
			t.Errorf("%s: the agent's own command is let through", s)
		}
	}
}

func TestOtherAnswers(t *testing.T) {
	if text, err := (Answer{}).Text(); err != nil || len(text) > 0 {
		t.Errorf("the answer that says nothing says %q (%v)", text, err)
	}
	if got := tell(t, NotTaken(&agentapi.Error{Code: "secret", Message: "argument 2 looks like a secret", Next: "use a reference"})).Specific; got.Decision != "deny" || !strings.Contains(got.Reason, "secret). use a reference") {
		t.Errorf("%+v", got)
	}
	if got := tell(t, Refused(Call{Tool: "REPL\x1b[2J"})).Specific; got.Decision != "deny" || strings.Contains(got.Reason, "\x1b") {
		t.Errorf("%+v", got)
	}
}

func TestStrengthOfVersions(t *testing.T) {
	for text, want := range map[string]Strength{
		"2.1.332 (Claude Code)": Blocks, "2.1.332": Blocks, "2.2.0": Blocks, "10.0.0": Blocks,
		"2.1.197 (Claude Code)": BlocksByShell, "2.1.331": BlocksByShell,
		"2.1.196": CannotBlock, "1.9.999": CannotBlock, "0.0.0": CannotBlock,
	} {
		if got, err := StrengthOf(text); err != nil || got != want {
			t.Errorf("%s: %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "claude 2.1.332", "2.1", "two", "2.1.99999999999999999999"} {
		if got, err := StrengthOf(text); err == nil || got != CannotBlock {
			t.Errorf("%q: %d, want an error", text, got)
		}
	}
}
