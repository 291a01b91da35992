package front

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/person"
)

// passphraseFlag lets a script decide where a terminal is not there.
func passphraseFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "passphrase-file", "", "file whose first line opens the signing key (default: ask on the terminal)")
}

func (a *app) approveCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "approve JOB", Short: "Say yes to exactly what is shown, with your key", GroupID: "decide", Args: cobra.ExactArgs(1),
		Long: "Say yes to exactly what is shown: the digests of the proposal and of what a worker found\nare signed with your own key. Waits up to 10 s for a worker to report what would run, then\nexits 75.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args[0], file, func(ctx context.Context, d *person.Desk, id string) (lifecycle.Job, error) {
				return d.Approve(ctx, id)
			})
		},
	}
	passphraseFlag(cmd, &file)
	return cmd
}

func (a *app) denyCommand() *cobra.Command {
	var file, reason string
	cmd := &cobra.Command{
		Use: "deny JOB --reason TEXT", Short: "Say no, with a reason that reaches the agent", GroupID: "decide", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return usage("say why; it reaches the agent", "deny %s: --reason is required", args[0])
			}
			return a.decide(cmd.Context(), args[0], file, func(ctx context.Context, d *person.Desk, id string) (lifecycle.Job, error) {
				return d.Deny(ctx, id, reason)
			})
		},
	}
	passphraseFlag(cmd, &file)
	cmd.Flags().StringVar(&reason, "reason", "", "why not (required)")
	return cmd
}

// decide opens the person's desk for one decision.
func (a *app) decide(ctx context.Context, prefix, file string, do func(context.Context, *person.Desk, string) (lifecycle.Job, error)) error {
	l, s, c, err := a.person()
	if err != nil {
		return err
	}
	conn, err := a.connect(ctx, l, s, c.ActorName, events.RolePerson)
	if err != nil {
		return err
	}
	defer conn.Close()
	var found view.Detail
	if err := conn.Ask(ctx, query.Get, query.GetRequest{Job: prefix}, &found); err != nil {
		return err
	}
	desk := &person.Desk{
		Config: c, Layout: l, Bus: conn, Standing: host.NewStanding(conn, s, l), Ask: askPassphrase(file),
		Show: func(j lifecycle.Job) { a.showDecision(j) },
	}
	j, err := do(ctx, desk, found.Job.Job)
	if err != nil {
		return err
	}
	return a.print(view.DetailOf(j), func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", j.ID, decided(j)) })
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
		a.say("  would run %s, resolution %.16s", view.Printable(r.Program.Path), j.ResolutionDigest)
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
