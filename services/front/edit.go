package front

import (
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/view"
)

// again is the proposal of a job, to be made anew.
func again(j view.Detail, as string) agentapi.Proposal {
	return agentapi.Proposal{
		Argv: j.Argv, Cwd: j.Cwd, Env: maps.Clone(j.Env), Pool: j.Pool, TimeoutS: j.TimeoutS, MaxAttempts: j.MaxAttempts,
		RetrySafe: j.RetrySafe, Reason: j.Reason, Labels: maps.Clone(j.Labels), Follows: events.Follows{Job: j.Job.Job, As: as},
	}
}

func (a *app) retryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "retry JOB", Short: "Ask for an ended job's command again", GroupID: "ask", Args: cobra.ExactArgs(1),
		Long: "Ask for the same command again: a new, undecided job that names the old one. Whoever's token\nasks is its proposer. Asking twice for the same job's retry finds the same new job.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			old, err := a.old(ctx, args[0])
			if err != nil {
				return err
			}
			if !old.Status.Final() {
				return &exit{code: ExitError, err: &agentapi.Error{Code: "not_ended", Message: fmt.Sprintf("retry job %s: it is %s", old.Job.Job, old.Status), Next: "cancel it first, or wait for its end"}}
			}
			p := again(old, "retry")
			p.IdempotencyKey = "retry " + old.Job.Job
			return a.proposeAgain(ctx, p, nil)
		},
	}
	return cmd
}

func (a *app) editCommand() *cobra.Command {
	var file, reason string
	cmd := &cobra.Command{
		Use: "edit JOB -- COMMAND [ARGUMENT...]", Short: "Ask for another command in place of an undecided one", GroupID: "ask", Args: cobra.MinimumNArgs(2),
		Long: "Ask for another command in place of an undecided job's. The new job is decided from the start:\nno approval of the old one carries over. The old one is cancelled once the new one is recorded.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			old, err := a.old(ctx, args[0])
			if err != nil {
				return err
			}
			if !old.Status.Undecided() {
				return &exit{code: ExitError, err: &agentapi.Error{Code: "already_decided", Message: fmt.Sprintf("edit job %s: it is %s", old.Job.Job, old.Status), Next: "propose the other command by itself"}}
			}
			p := again(old, "edit")
			p.Argv = args[1:]
			if reason != "" {
				p.Reason = reason
			}
			return a.proposeAgain(ctx, p, func(j view.Detail) error {
				if j.Status == lifecycle.Denied {
					return nil // the old one stands
				}
				_, err := a.cancel(ctx, old.Job.Job, file, "edited; job "+j.Job.Job+" takes its place")
				if err != nil {
					return fmt.Errorf("cancel job %s, whose place job %s takes: %w", old.Job.Job, j.Job.Job, err)
				}
				return nil
			})
		},
	}
	passphraseFlag(cmd, &file)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the people who decide (default: the old job's)")
	return cmd
}

// old reads the job that another one is to follow.
func (a *app) old(ctx context.Context, prefix string) (view.Detail, error) {
	c, _, _, err := a.reader(ctx)
	if err != nil {
		return view.Detail{}, err
	}
	defer c.Close()
	return a.find(ctx, c, prefix)
}

// proposeAgain makes a proposal that follows a job, and tells of it.
func (a *app) proposeAgain(ctx context.Context, p agentapi.Proposal, then func(view.Detail) error) error {
	c, err := a.proposer()
	if err != nil {
		return err
	}
	j, err := c.Propose(ctx, p)
	if err != nil {
		return err
	}
	if then != nil {
		if err := then(j); err != nil {
			return err
		}
	}
	if j.Existing {
		a.say("job %s was asked for before in place of job %s", j.Job.Job, p.Follows.Job)
	}
	if err := a.print(j, func(w io.Writer) { fmt.Fprintln(w, j.Job.Job) }); err != nil {
		return err
	}
	if j.Status == lifecycle.Denied {
		a.explain(j)
		return &exit{code: ExitDenied}
	}
	return nil
}
