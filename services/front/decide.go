package front

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/person"
)

// passphraseFlag lets a script decide where a terminal is not there.
func passphraseFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "passphrase-file", "", "file whose first line opens the signing key (default: ask on the terminal)")
}

func (a *app) denyCommand() *cobra.Command {
	var file, reason string
	var once, lift bool
	cmd := &cobra.Command{
		Use: "deny JOB --reason TEXT", Short: "Say no, with a reason that reaches the agent", GroupID: "decide", Args: cobra.ExactArgs(1),
		Long: "Say no, with a reason that reaches the agent. The no sticks: the same arguments in the same\nfolder from the same proposer are denied at once, with the same reason, until somebody lifts\nthat with deny --clear JOB. With --once only this job is denied.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if lift {
				return a.decide(cmd.Context(), args[0], file, func(ctx context.Context, d *person.Desk, id string) (lifecycle.Job, error) {
					return d.Clear(ctx, id, reason)
				})
			}
			if reason == "" {
				return usage("say why; it reaches the agent", "deny %s: --reason is required", args[0])
			}
			return a.decide(cmd.Context(), args[0], file, func(ctx context.Context, d *person.Desk, id string) (lifecycle.Job, error) {
				j, err := d.Deny(ctx, id, reason)
				if err != nil || once {
					return j, err
				}
				if err := d.Bar(ctx, j); err != nil {
					return j, fmt.Errorf("job %s is denied, but the same command may be asked for again: %w", id, err)
				}
				return j, nil
			})
		},
	}
	passphraseFlag(cmd, &file)
	cmd.Flags().BoolVar(&once, "once", false, "deny this job only; the same command may be asked for again")
	cmd.Flags().BoolVar(&lift, "clear", false, "lift a denial that sticks, instead of denying")
	cmd.Flags().StringVar(&reason, "reason", "", "why not (required)")
	return cmd
}

// decide opens the person's desk for one decision.
func (a *app) decide(ctx context.Context, prefix, file string, do func(context.Context, *person.Desk, string) (lifecycle.Job, error)) error {
	return a.atDesk(ctx, file, func(d *person.Desk, c *bus.Conn) error {
		found, err := a.find(ctx, c, prefix)
		if err != nil {
			return err
		}
		j, err := do(ctx, d, found.Job.Job)
		if err != nil {
			return err
		}
		v := view.DetailOf(j)
		if err := a.fill(ctx, c, v.Words()...); err != nil {
			return err
		}
		return a.print(v, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", j.ID, decided(j)) })
	})
}

// askPassphrase reads a passphrase from a file, or asks on the terminal.
func askPassphrase(file string) func(string) ([]byte, error) {
	return func(prompt string) ([]byte, error) {
		if file != "" {
			return keys.ReadPassphraseFile(file)
		}
		return keys.AskPassphrase("", prompt)
	}
}

// showDecision prints what is about to be signed.
func (a *app) showDecision(j lifecycle.Job) {
	a.say("about to sign a decision on: %s", view.Command(j.Proposal.Argv))
	a.say("  in %s, proposed by %s, proposal %.16s", view.Printable(j.Proposal.Cwd), view.Printable(j.Proposal.Proposer.String()), j.ProposalDigest)
	if r := j.Resolution; r != nil {
		a.say("  would run %s, digest %.16s", view.Printable(r.Program.Path), j.ResolutionDigest)
		if r.UnsafeSharedUser {
			a.say("  WARNING: it would share the worker's user and could reach banksman's keys (--unsafe-shared-user)")
		}
	}
}

func decided(j lifecycle.Job) string {
	if j.Status == lifecycle.Pending {
		return fmt.Sprintf("has %d of %d approvals", len(j.Approvals), j.Quorum)
	}
	text := string(j.Status)
	if t := j.ApprovalExpires(); !t.IsZero() {
		text += ", good until " + t.UTC().Format(time.RFC3339)
	}
	return text
}
