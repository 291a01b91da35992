package front

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/internal/query"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Look at the log and verify it", GroupID: "prove", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.auditStatusCommand())
	return cmd
}

func (a *app) auditStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say how far the log is sealed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := ask[query.AuditStatus](cmd.Context(), a, query.Audit, struct{}{})
			if err != nil {
				return err
			}
			return a.print(s, func(w io.Writer) {
				fmt.Fprintf(w, "%d entries, sealed through event %d of %d at %s\nroot %s\ndispatch %s, %d violations, %d gaps\n",
					s.Size, s.ThroughSeq, s.LastSeq, s.SealedAt.Format(time.RFC3339), s.Root, s.Dispatch, s.Violations, s.Gaps)
			})
		},
	}
}
