package monitor

import (
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
)

// Outcomes and failures of a round, see events.RoundEnded.
const (
	outcomeSucceeded   = "succeeded"
	outcomeFailed      = "failed"
	outcomeTimedOut    = "timed_out"
	outcomeStopped     = "stopped"
	outcomeInterrupted = "interrupted"
	failureAuth        = "auth"
)

// said says whether a round has told anything about its agent. One that
// banksman itself ended has not.
func said(r *events.RoundEnded) bool {
	return r.Outcome != outcomeStopped && r.Outcome != outcomeInterrupted
}

// timeouts watches the share of rounds that ran into their limit.
type timeouts struct {
	Rounds map[string][]bool // of a project, newest last: it timed out

	window, percent int
}

func (*timeouts) Name() string { return nameTimeouts }

func (*timeouts) Calm() string {
	return "fewer of the newest rounds timed out, or a person has started the project again"
}

func (d *timeouts) Observe(e events.Event) {
	project := e.Subject.Scope
	if anew(e) || d.window == 0 {
		delete(d.Rounds, project)
		return
	}
	if r, ok := e.Payload.(*events.RoundEnded); ok && said(r) {
		list := append(d.Rounds[project], r.Outcome == outcomeTimedOut)
		d.Rounds[project] = list[max(0, len(list)-d.window):]
	}
}

func (d *timeouts) Findings(time.Time) []Finding {
	var out []Finding
	for project, list := range d.Rounds {
		n := 0
		for _, late := range list[max(0, len(list)-d.window):] {
			if late {
				n++
			}
		}
		if n > 0 && n*100 >= d.window*d.percent {
			out = append(out, Finding{About: project, Project: project, Severity: events.SeverityWarning, Grade: int64(n),
				Summary: fmt.Sprintf("%d of the newest %d rounds of %s ran into their time limit", n, len(list), project)})
		}
	}
	return out
}

// authFailures watches for an agent whose provider refuses its log-in: every
// further round is for nothing, and may lock the account.
type authFailures struct {
	Streak map[string]int // rounds in a row

	limit int
}

func (*authFailures) Name() string { return nameAuth }

func (*authFailures) Calm() string {
	return "a round ended without that failure, or a person has started the project again"
}

func (d *authFailures) Observe(e events.Event) {
	project := e.Subject.Scope
	r, ok := e.Payload.(*events.RoundEnded)
	switch {
	case anew(e), d.limit == 0:
		delete(d.Streak, project)
	case ok && r.Failure == failureAuth:
		d.Streak[project]++
	case ok && said(r):
		delete(d.Streak, project)
	}
}

func (d *authFailures) Findings(time.Time) []Finding {
	return longStreaks(d.Streak, d.limit, func(project string, n int) string {
		return fmt.Sprintf("the provider has refused the agent's log-in in %d rounds of %s in a row; log the agent in again, then 'banksman loop start %s'", n, project, project)
	})
}

// crashLoop watches for an agent that fails as soon as it starts.
type crashLoop struct {
	Streak map[string]int

	limit int
	short time.Duration
}

func (*crashLoop) Name() string { return nameCrash }

func (*crashLoop) Calm() string {
	return "a round did not fail quickly, or a person has started the project again"
}

// Observe counts failures that nobody has classified; a classified one, such
// as a refused log-in, is another detector's.
func (d *crashLoop) Observe(e events.Event) {
	project := e.Subject.Scope
	r, ok := e.Payload.(*events.RoundEnded)
	switch {
	case anew(e), d.limit == 0:
		delete(d.Streak, project)
	case !ok || !said(r) || r.Failure != "":
	case r.Outcome == outcomeFailed && r.DurationMS < d.short.Milliseconds():
		d.Streak[project]++
	default:
		delete(d.Streak, project)
	}
}

func (d *crashLoop) Findings(time.Time) []Finding {
	return longStreaks(d.Streak, d.limit, func(project string, n int) string {
		return fmt.Sprintf("%d rounds of %s in a row failed within %s; look at them with 'banksman round ls %s'", n, project, d.short, project)
	})
}

// longStreaks are the streaks that have reached a limit.
func longStreaks(streaks map[string]int, limit int, text func(project string, n int) string) []Finding {
	var out []Finding
	for project, n := range streaks {
		if limit > 0 && n >= limit {
			out = append(out, Finding{About: project, Project: project, Severity: events.SeverityCritical, Grade: doublings(n), Summary: text(project, n)})
		}
	}
	return out
}
