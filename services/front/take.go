package front

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/view"
)

func (a *app) takeCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "take JOB", Short: "Take an approved command over, to execute it yourself, once", GroupID: "ask", Args: cobra.ExactArgs(1),
		Long: "Take over a job of yours that was proposed with --executor caller. Exits 0 once it is approved,\nthe log has sealed that and what would run is still what was approved: from there on you may\nexecute it, once. Exits 77 when it was denied and 75 when it is still pending after --wait.\nNobody but you knows what became of it; 'banksman report' says so.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.proposer()
			if err != nil {
				return err
			}
			j, err := c.Job(cmd.Context(), args[0], 0, 0)
			if err == nil {
				j, err = awaitDecision(cmd.Context(), c, j, wait)
			}
			switch {
			case err != nil:
				return err
			case j.Status == lifecycle.Denied:
				a.explain(j)
				return &exit{code: ExitDenied}
			case j.Status.Undecided():
				a.say("job %s waits for a person; see: banksman show%s %s", j.Job.Job, a.dirFlag(), j.Job.Job)
				return &exit{code: ExitPending}
			}
			return a.told(cmd.Context(), func(ctx context.Context) (view.Detail, error) { return c.Take(ctx, args[0]) })
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for the decision")
	return cmd
}

func (a *app) reportCommand() *cobra.Command {
	var code int
	cmd := &cobra.Command{
		Use: "report JOB --exit-code N", Short: "Say how a command ended that you took over", GroupID: "ask", Args: cobra.ExactArgs(1),
		Long: "Say with which status a command ended that you took over. It is recorded as your word, which\nnobody has checked.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("exit-code") {
				return usage("name the status that you saw", "report %s: --exit-code is required", args[0])
			}
			c, err := a.proposer()
			if err != nil {
				return err
			}
			return a.told(cmd.Context(), func(ctx context.Context) (view.Detail, error) {
				return c.Report(ctx, args[0], agentapi.Report{ExitCode: code})
			})
		},
	}
	cmd.Flags().IntVar(&code, "exit-code", 0, "status that it ended with (required)")
	return cmd
}

// told does something about a job and prints how it stands then.
func (a *app) told(ctx context.Context, do func(context.Context) (view.Detail, error)) error {
	j, err := do(ctx)
	if err != nil {
		return err
	}
	return a.print(j, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", j.Job.Job, j.Status) })
}
