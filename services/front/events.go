package front

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/texts"
	"github.com/banksman/banksman/services/internal/view"
)

// eventLine is one event as events --json prints it, one object a line.
type eventLine struct {
	Seq     uint64         `json:"seq"`
	Time    time.Time      `json:"time"`
	Kind    events.Kind    `json:"kind"`
	Subject string         `json:"subject"`
	ID      string         `json:"id"`
	Actor   string         `json:"actor"`
	Payload jsontext.Value `json:"payload,omitempty"`
	Problem string         `json:"problem,omitempty"` // why it is not to be believed
}

func (a *app) eventsCommand() *cobra.Command {
	var from uint64
	var job string
	var follow bool
	cmd := &cobra.Command{
		Use: "events", Short: "Print what the stream holds, each event checked", GroupID: "decide", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.events(cmd.Context(), from, job, follow) },
	}
	cmd.Flags().Uint64Var(&from, "from", 1, "first sequence")
	cmd.Flags().StringVar(&job, "job", "", "only this job; a unique prefix will do")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as new events arrive")
	return cmd
}

func (a *app) events(ctx context.Context, from uint64, job string, follow bool) error {
	c, l, s, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	filter := events.PrefixStored + ".>"
	if job != "" {
		var found view.Detail
		if err := c.Ask(ctx, query.Get, query.GetRequest{Job: job}, &found); err != nil {
			return err
		}
		filter = events.Filter("job", found.Job.Job)
	}
	standing := host.NewStanding(c, s, l)
	show := func(st events.Stored) error {
		if st.Subject == trustSubject || standing.Book().Current() == nil {
			if err := standing.Refresh(ctx); err != nil {
				return err
			}
		}
		return a.printEvent(ctx, texts.Reader{Bus: c, Standing: standing}, st)
	}
	if follow {
		err := c.Follow(ctx, from, filter, show)
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for {
		page, err := c.Read(ctx, from, filter, 256)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, st := range page {
			if err := show(st); err != nil {
				return err
			}
			from = st.Seq + 1
		}
	}
}

// trustSubject is where trust files are stored.
var trustSubject = events.For("trust.published", events.SiteScope, events.TrustID, string(events.RoleRoot)).String()

// printEvent writes one event: for people a line, for programs an object.
func (a *app) printEvent(ctx context.Context, r texts.Reader, st events.Stored) error {
	e, err := r.Standing.Book().Open(st)
	line := eventLine{Seq: st.Seq, Time: st.Time.UTC(), Kind: e.Kind, Subject: st.Subject, ID: e.ID.String(), Actor: e.Subject.Actor}
	if jsontext.Value(st.Data).IsValid() {
		line.Payload = st.Data
	}
	if err != nil {
		line.Problem = err.Error()
	}
	if a.json {
		text, err := json.Marshal(line)
		if err != nil {
			return fmt.Errorf("encode event %d: %w", st.Seq, err)
		}
		fmt.Fprintf(a.out, "%s\n", text)
		return nil
	}
	note := sentence(e)
	if len(events.TextsOf(e.Payload)) > 0 {
		if err := r.Fill(ctx, &note); err != nil {
			return err
		}
	}
	if line.Problem != "" {
		note = "NOT BELIEVED: " + line.Problem
	}
	fmt.Fprintf(a.out, "%6d  %s  %-22s %-10s %s  %s\n", line.Seq, line.Time.Format("15:04:05.000"), line.Kind, view.Printable(line.Actor), short(e.Subject.ID), view.Printable(note))
	return nil
}

// sentence is what a line adds to the kind.
func sentence(e events.Event) string {
	switch p := e.Payload.(type) {
	case *events.JobProposed:
		return p.Proposer.String() + " asks for: " + view.Command(p.Argv)
	case *events.JobResolved:
		return fmt.Sprintf("would run %s (%.12s)", p.Program.Path, p.Program.SHA256)
	case *events.JobAssessed:
		return p.Ruling.Reason
	case *events.JobApproved:
		return "by " + p.Basis + strings.TrimRight(" "+p.Ruling.Rule, " ")
	case *events.JobDenied:
		return "by " + p.Basis + ": " + p.Ruling.Reason
	case *events.JobStarted:
		return fmt.Sprintf("attempt %d, log sealed through %d", p.Attempt, p.Sealed)
	case *events.JobFinished:
		return fmt.Sprintf("%s, exit %d after %d ms", p.Outcome, p.ExitCode, p.DurationMS)
	case *events.JobDeclined:
		return p.Reason
	case *events.JobDeadLettered:
		return p.Reason
	case *events.JobLapsed:
		return fmt.Sprintf("silent for %d s (%s)", p.SilentS, p.Why)
	case *events.AskCommented:
		return p.Text
	case *events.AskCancelRequested:
		return p.Reason
	case *events.AskRevokeRequested:
		return p.Reason
	case *events.TextErased:
		return fmt.Sprintf("text %.12s: %s", e.Subject.ID, p.Reason)
	case *events.JobExpired:
		return p.What
	case *events.JobCancelled:
		return "by " + p.By + ": " + p.Reason
	case *events.AuditSealed:
		return fmt.Sprintf("%d entries through event %d, root %.12s", p.Size, p.ThroughSeq, p.Root)
	case *events.AuditViolationFound:
		return fmt.Sprintf("event %d: %s: %s", p.Seq, p.Code, p.Detail)
	case *events.AuditGapFound:
		return fmt.Sprintf("events %d to %d are missing", p.From, p.To)
	case *events.PolicyPublished:
		return fmt.Sprintf("policy %.12s", p.Digest)
	case *events.TrustPublished:
		return fmt.Sprintf("trust file %d with %d actors", p.Version, len(p.Actors))
	case *events.WorkerStarted:
		return fmt.Sprintf("pool %s with %d slots", e.Subject.Scope, p.Slots)
	case *events.WorkerStopped:
		return p.Reason
	}
	return loopSentence(e)
}

// loopSentence is the same for what happens around agents in their loops.
func loopSentence(e events.Event) string {
	switch p := e.Payload.(type) {
	case *events.LoopClaimed:
		return "project " + e.Subject.Scope + " is held here now"
	case *events.LoopHalted:
		return p.Reason
	case *events.LoopStartRequested:
		return p.Reason
	case *events.RoundStarted:
		return fmt.Sprintf("at most %d s", p.TimeLimitS)
	case *events.RoundEnded:
		return strings.TrimSpace(fmt.Sprintf("%s, exit %d after %d ms %s", p.Outcome, p.ExitCode, p.DurationMS, p.Failure))
	case *events.WorkSalvaged:
		return fmt.Sprintf("%d files kept in %s", p.Files, p.Ref)
	case *events.StopOrdered:
		return p.Mode + ": " + p.Reason
	case *events.StopEscalated:
		return p.Reason
	case *events.StopLifted:
		return p.Reason
	case *events.AlertRaised:
		return p.Severity + ": " + p.Summary
	case *events.AlertUpdated:
		return p.Severity + ": " + p.Summary
	case *events.AlertAcknowledged:
		return p.Reason
	case *events.AlertCleared:
		return p.Reason
	case *events.HostObserved:
		return p.Host + " is " + p.Level
	}
	return ""
}
