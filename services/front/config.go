package front

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Read the configuration", GroupID: "start", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{
		Use: "check", Short: "Check the configuration and the policy file; exits 78 when they are bad", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := a.layout()
			if err != nil {
				return err
			}
			list, _, _, _ := sections()
			if err := config.Load(l.Config(), list...); err != nil {
				return err
			}
			if _, err := a.policyFile(l.Policy()); err != nil {
				return err
			}
			return a.print(map[string]bool{"ok": true}, func(w io.Writer) { fmt.Fprintf(w, "%s and %s are good\n", l.Config(), l.Policy()) })
		},
	})
	cmd.AddCommand(&cobra.Command{
		Use: "reference", Short: "Print every key with its meaning and default", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, _, _, _ := sections()
			_, err := a.out.Write(config.Render(list...))
			return err
		},
	})
	return cmd
}
