package front

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/policy"
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

// policyFile reads and checks a policy file.
func (a *app) policyFile(path string) (*policy.Policy, error) {
	l, err := a.layout()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	return policy.Parse(path, text, host.PolicyEnv(l))
}

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Read the policy", GroupID: "decide", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var file string
	check := &cobra.Command{
		Use: "check [FILE]", Short: "Check a policy file and its examples; exits 78 when it is bad", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := a.policyPath(args)
			if err != nil {
				return err
			}
			p, err := a.policyFile(path)
			if err != nil {
				return err
			}
			return a.print(map[string]any{"ok": true, "digest": p.Digest()}, func(w io.Writer) {
				fmt.Fprintf(w, "%s is good, digest %s\n", path, p.Digest())
				for _, problem := range p.Warnings() {
					fmt.Fprintf(w, "warning: %v\n", problem)
				}
			})
		},
	}
	explain := &cobra.Command{
		Use: "explain [--file FILE] -- COMMAND [ARGUMENT...]", Short: "Show what each rule of a policy file says of a command", Args: needCommand,
		RunE: func(_ *cobra.Command, args []string) error {
			var list []string
			if file != "" {
				list = []string{file}
			}
			path, err := a.policyPath(list)
			if err != nil {
				return err
			}
			p, err := a.policyFile(path)
			if err != nil {
				return err
			}
			return a.explainPolicy(p, args)
		},
	}
	explain.Flags().StringVar(&file, "file", "", "policy file (default: the site's)")
	cmd.AddCommand(check, explain)
	return cmd
}

func (a *app) policyPath(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	l, err := a.layout()
	return l.Policy(), err
}

func (a *app) explainPolicy(p *policy.Policy, argv []string) error {
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	steps := p.Explain(policy.Request{Argv: argv, Cwd: cwd})
	return a.print(map[string]any{"steps": steps}, func(w io.Writer) {
		var rows [][]string
		for _, s := range steps {
			mark := ""
			if s.Decides {
				mark = "decides"
			}
			rows = append(rows, []string{fmt.Sprint(s.Line), s.Rule, s.Decision.String(), mark, s.Why})
		}
		table(w, []string{"LINE", "RULE", "SAYS", "", "WHY"}, rows)
	})
}
