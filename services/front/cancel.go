package front

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/person"
)

// atDesk opens the person's desk for one command. The person's key is opened
// when something is signed.
func (a *app) atDesk(ctx context.Context, file string, do func(*person.Desk, *bus.Conn) error) error {
	l, s, c, err := a.person()
	if err != nil {
		return err
	}
	conn, err := a.connect(ctx, l, s, c.ActorName, events.RolePerson)
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(&person.Desk{
		Config: c, Layout: l, Bus: conn, Standing: host.NewStanding(conn, s, l), Ask: askPassphrase(file),
		Show: func(j lifecycle.Job) { a.showDecision(j) },
	}, conn)
}

// find is the job that a prefix of an id names.
func (a *app) find(ctx context.Context, c *bus.Conn, prefix string) (view.Detail, error) {
	found, err := lookUp(ctx, c, prefix)
	if err == nil {
		err = a.fill(ctx, c, found.Words()...)
	}
	return found, err
}

func (a *app) cancelCommand() *cobra.Command {
	var file, reason string
	cmd := &cobra.Command{
		Use: "cancel JOB", Short: "Call a job off, also while it runs", GroupID: "ask", Args: cobra.ExactArgs(1),
		Long: "Call a job off. One that does not run ends at once; one that runs is asked to end, and killed\nafter its worker's grace. Whoever proposed it needs the token alone; for the jobs of others\nthe request is signed with your key. Cancelling again changes nothing. Exits 75 when the job\nhas not ended within 15 s.",
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := a.cancel(cmd.Context(), args[0], file, reason)
			if err != nil {
				return err
			}
			if err := a.print(j, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", j.Job.Job, j.Status) }); err != nil {
				return err
			}
			if !j.Status.Final() {
				a.say("job %s has not ended yet; see: banksman show%s %s", j.Job.Job, a.dirFlag(), j.Job.Job)
				return &exit{code: ExitPending}
			}
			return nil
		},
	}
	passphraseFlag(cmd, &file)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

// cancel asks with the token where it proposed the job, else as the person.
func (a *app) cancel(ctx context.Context, id, file, reason string) (view.Detail, error) {
	if full, err := a.fullID(ctx, id); err == nil {
		id = full
	}
	c, err := a.proposer()
	if err == nil {
		var j view.Detail
		j, err = c.Cancel(ctx, id, reason)
		if err == nil {
			return j, nil
		}
	}
	var refused *agentapi.Error
	if !errors.As(err, &refused) || refused.Code != "unknown_job" && refused.Code != "proposer_away" && refused.Code != "no_token" {
		return view.Detail{}, err
	}
	if reason == "" {
		reason = "called off on the command line"
	}
	var v view.Detail
	err = a.atDesk(ctx, file, func(d *person.Desk, conn *bus.Conn) error {
		found, err := a.find(ctx, conn, id)
		if err != nil {
			return err
		}
		j, err := d.Cancel(ctx, found.Job.Job, reason)
		if err != nil {
			return err
		}
		v = view.DetailOf(j)
		return a.fill(ctx, conn, v.Words()...)
	})
	return v, err
}

// fullID completes a prefix, for who may read the site.
func (a *app) fullID(ctx context.Context, prefix string) (string, error) {
	j, err := ask[view.Detail](ctx, a, query.Get, query.GetRequest{Job: prefix})
	return j.Job.Job, err
}

func (a *app) revokeCommand() *cobra.Command {
	var file, reason string
	cmd := &cobra.Command{
		Use: "revoke JOB --reason TEXT", Short: "Take the approval of a job back that has not started", GroupID: "decide", Args: cobra.ExactArgs(1),
		Long: "Take the approval of a job back before it, or its next attempt, starts. One that runs is\nended with cancel. Revoking again changes nothing.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return usage("say why; it goes on record", "revoke %s: --reason is required", args[0])
			}
			return a.decide(cmd.Context(), args[0], file, func(ctx context.Context, d *person.Desk, id string) (lifecycle.Job, error) {
				j, err := d.Revoke(ctx, id, reason)
				if err == nil && j.Status != lifecycle.Revoked {
					err = &exit{code: ExitPending, err: &agentapi.Error{Code: "not_revoked", Message: fmt.Sprintf("revoke job %s: it is %s", id, j.Status), Next: "look at it with 'banksman show " + id + "'"}}
				}
				return j, err
			})
		},
	}
	passphraseFlag(cmd, &file)
	cmd.Flags().StringVar(&reason, "reason", "", "why (required)")
	return cmd
}

func (a *app) commentCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "comment JOB TEXT", Short: "Write something about a job for the others who decide", GroupID: "decide", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.atDesk(ctx, file, func(d *person.Desk, c *bus.Conn) error {
				found, err := a.find(ctx, c, args[0])
				if err != nil {
					return err
				}
				if err := d.Comment(ctx, found.Job.Job, args[1]); err != nil {
					return err
				}
				return a.print(map[string]string{"job": found.Job.Job, "text": args[1]}, func(w io.Writer) { fmt.Fprintf(w, "%s commented\n", found.Job.Job) })
			})
		},
	}
	passphraseFlag(cmd, &file)
	return cmd
}
