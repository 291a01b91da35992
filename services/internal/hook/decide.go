package hook

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"maps"
	"strings"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/view"
)

// Answer is what the program is told. The zero value says nothing.
type Answer struct {
	Decision string                    // allow or deny
	Reason   string                    // reaches the agent
	Input    map[string]jsontext.Value // in place of the tool's input
}

// Text is the answer as the program reads it from standard output.
func (a Answer) Text() ([]byte, error) {
	if a.Decision == "" {
		return nil, nil
	}
	type specific struct {
		Event    string                    `json:"hookEventName"`
		Decision string                    `json:"permissionDecision"`
		Reason   string                    `json:"permissionDecisionReason"`
		Input    map[string]jsontext.Value `json:"updatedInput,omitempty"`
	}
	text, err := json.Marshal(struct {
		Specific specific `json:"hookSpecificOutput"`
	}{specific{"PreToolUse", a.Decision, a.Reason, a.Input}}, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode the answer of the hook: %w", err)
	}
	return text, nil
}

func deny(format string, args ...any) Answer {
	return Answer{Decision: "deny", Reason: "banksman: " + fmt.Sprintf(format, args...)}
}

// Allowed lets a call through as it is.
func Allowed(why string) Answer { return Answer{Decision: "allow", Reason: "banksman: " + why} }

// Refused answers a tool that runs code where no worker can.
func Refused(c Call) Answer {
	return deny("the tool %s runs code that cannot be decided on. Use %s instead; its commands are.", view.Printable(c.Tool), shellTool)
}

// NotTaken answers a call whose proposal was refused for its form.
func NotTaken(e *agentapi.Error) Answer {
	if e.Next == "" {
		return deny("%s (%s)", e.Message, e.Code)
	}
	return deny("%s (%s). %s", e.Message, e.Code, e.Next)
}

// Decide turns the state of a call's job into the answer. Pending says that the
// call has to be repeated once a person has decided.
func Decide(c Call, f Follower, j view.Detail) (a Answer, pending bool) {
	id := j.Job.Job
	switch {
	case j.Status == lifecycle.Denied:
		return denied(j), false
	case j.Status.Undecided():
		follow := ", or follow the job with: " + f.Command(id)
		if j.Executor != "" {
			follow = ""
		}
		return deny("pending: job %s waits for a person. Approve with: %s approve %s. Then run exactly the same command again%s. Do not try another way around.",
			id, f.verb(), id, follow), true
	case j.Status == lifecycle.HandedOver:
		return deny("job %s was handed over before, and once is all that was approved; use the tool again to ask again", id), false
	case j.Status.Final() && len(j.Attempts) == 0:
		return deny("job %s ended as %s and did not run: %s", id, j.Status, view.Printable(j.Ending)), false
	}
	command, err := json.Marshal(f.Command(id))
	if err != nil {
		return deny("the command that follows job %s cannot be encoded: %v", id, err), false
	}
	input := maps.Clone(c.input)
	if input == nil {
		input = map[string]jsontext.Value{}
	}
	input["command"] = command
	return Answer{Decision: "allow", Reason: "banksman: approved as job " + id + "; a worker runs it", Input: input}, false
}

// denied repeats who denied a job and why.
func denied(j view.Detail) Answer {
	r := j.Ruling
	if r == nil {
		return deny("denied: %s", view.Printable(j.Ending))
	}
	by := "policy"
	switch {
	case r.Code == "person" && j.DeniedBy != "":
		by = j.DeniedBy
	case r.Rule != "":
		by = "rule " + r.Rule
	}
	text := fmt.Sprintf("denied by %s: %s", by, view.Printable(r.Reason))
	if r.Instead != "" {
		text += ". Instead: " + strings.TrimSuffix(view.Printable(r.Instead), ".")
	}
	return deny("%s", text)
}
