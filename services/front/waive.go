package front

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/person"
)

func (a *app) waiveCommand() *cobra.Command {
	var file, reason string
	var valid time.Duration
	cmd := &cobra.Command{
		Use: "waive DIGEST --reason TEXT", Short: "Let a proposal pass once that was refused as a secret and is none", GroupID: "decide", Args: cobra.ExactArgs(1),
		Long: "Say that what looked like a secret in a refused proposal is none. Exactly the proposal of this\ndigest then passes, for who made it, and makes one job; policy and people still decide about it.\nThe refusal and 'banksman ls --refused' show the digest. What was refused is stored nowhere, so\nask whoever proposed it what it is before you say so.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return usage("say why it is no secret; it goes on record", "waive %s: --reason is required", args[0])
			}
			return a.atDesk(cmd.Context(), file, func(d *person.Desk, _ *bus.Conn) error {
				found, err := d.Waive(cmd.Context(), args[0], reason, wholeSeconds(valid))
				if err != nil {
					return err
				}
				return a.print(found, func(w io.Writer) {
					fmt.Fprintf(w, "%s may be proposed once by %s within %s: %s\n", found.Content, view.Printable(found.Proposer.String()), valid, view.Printable(found.Where))
				})
			})
		},
	}
	passphraseFlag(cmd, &file)
	cmd.Flags().StringVar(&reason, "reason", "", "why it is no secret (required)")
	cmd.Flags().DurationVar(&valid, "for", time.Hour, "how long it counts, at most 24h")
	return cmd
}
