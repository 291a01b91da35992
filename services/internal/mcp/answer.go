package mcp

import (
	"context"
	"strings"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/view"
)

// row is a job in a list: enough to find it again.
type row struct {
	Job      string           `json:"job"`
	Status   lifecycle.Status `json:"status"`
	Command  string           `json:"command"`
	Cwd      string           `json:"cwd"`
	Created  time.Time        `json:"created"`
	Why      string           `json:"why,omitempty"`
	ExitCode *int             `json:"exit_code,omitempty"`
}

// shown is how many characters of a command an answer repeats; the agent knows
// it already.
const shown = 200

func rowOf(j view.Job) row {
	return row{Job: j.Job, Status: j.Status, Command: clip(view.Command(j.Argv), shown), Cwd: clip(j.Cwd, shown), Created: j.Created, Why: why(j), ExitCode: j.ExitCode}
}

// answer is a job as an agent sees it.
type answer struct {
	row
	Decided  bool    `json:"decided"` // no longer waiting for policy or a person
	Ended    bool    `json:"ended"`
	Existing bool    `json:"existing,omitempty"` // the key was used before, this is that job
	Rule     string  `json:"rule,omitempty"`
	DeniedBy string  `json:"denied_by,omitempty"`
	Instead  string  `json:"instead,omitempty"`
	Waiting  string  `json:"waiting_for,omitempty"`
	Result   *output `json:"result,omitempty"`
	Next     string  `json:"next,omitempty"` // what to do now
}

// output is how a job ended.
type output struct {
	Outcome   string  `json:"outcome"`
	Signal    string  `json:"signal,omitempty"`
	Error     string  `json:"error,omitempty"`
	DurationS float64 `json:"duration_s"`
	Stdout    stream  `json:"stdout"`
	Stderr    stream  `json:"stderr"`
}

// stream is the beginning of what was written.
type stream struct {
	Text string `json:"text"`
	Cut  bool   `json:"cut,omitempty"` // there was more
}

func answerOf(j view.Detail) answer {
	a := answer{row: rowOf(j.Job), Decided: !j.Status.Undecided(), Ended: j.Status.Final(), Existing: j.Existing, DeniedBy: j.DeniedBy, Waiting: j.Waiting}
	if j.Ruling != nil {
		a.Rule, a.Instead = j.Ruling.Rule, j.Ruling.Instead
	}
	if r := j.Result; r != nil {
		a.Result = &output{Outcome: r.Outcome, Signal: r.Signal, Error: r.Error, DurationS: r.DurationS}
	}
	a.Next = next(j)
	return a
}

// next is what an agent does about a job.
func next(j view.Detail) string {
	id := j.Job.Job
	switch {
	case j.Status.Undecided():
		return "pending: a person has to approve it with 'banksman approve " + id + "'. Call wait_for_decision with this job again; do not propose it a second time."
	case j.Status == lifecycle.Denied:
		return "it will not run. Read the reason; proposing the same again does not help."
	case j.Executor != "" && !j.Status.Final(), j.HandedOver > 0:
		return "it is for its proposer to execute, once, with 'banksman take'."
	case !j.Status.Final():
		return "it may run and a worker takes care of it. Call get_job with this job for the result."
	case j.Result == nil:
		return "it has ended without running. Propose it again if it is still wanted."
	}
	return ""
}

// why is the sentence that explains a job's state best.
func why(j view.Job) string {
	switch {
	case j.Tainted != "":
		return "an event that breaks a rule was stored: " + j.Tainted
	case j.Ending != "":
		return j.Ending
	case j.Ruling != nil:
		return j.Ruling.Reason
	}
	return ""
}

// maxText is how many bytes of each stream an answer holds.
const maxText = 32 << 10

// output reads the beginning of what the last attempt wrote.
func (s *Server) output(ctx context.Context, j view.Detail, out, errs *stream) error {
	out.Cut, errs.Cut = j.Result.StdoutInfo.CutBytes > 0, j.Result.StderrInfo.CutBytes > 0
	var texts [2]strings.Builder
	_, err := s.door.Output(ctx, j.Job.Job, len(j.Attempts), 0, func(c agentapi.Chunk) error {
		n, into := 0, out
		if c.Stream == "stderr" {
			n, into = 1, errs
		}
		room := maxText - texts[n].Len()
		into.Cut = into.Cut || len(c.Data) > room
		texts[n].Write(c.Data[:min(len(c.Data), room)])
		return nil
	})
	out.Text, errs.Text = strings.ToValidUTF8(texts[0].String(), "\uFFFD"), strings.ToValidUTF8(texts[1].String(), "\uFFFD")
	return err
}

// clip cuts a text to n characters.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
