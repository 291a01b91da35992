package front

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/person"
)

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Read, try and publish the policy", GroupID: "decide", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.policyCheckCommand(), a.policyExplainCommand(), a.policyTestCommand(), a.policyDiffCommand(),
		a.policyImportCommand(), a.policyShowCommand(), a.policyPublishCommand())
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

// policyPath is the file that was named, else the site's own.
func (a *app) policyPath(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	l, err := a.layout()
	return l.Policy(), err
}

// namedPolicy reads the file that was named, else the site's own.
func (a *app) namedPolicy(named string) (string, *policy.Policy, error) {
	path, err := a.policyPath(named)
	if err != nil {
		return "", nil, err
	}
	p, err := a.policyFile(path)
	return path, p, err
}

func (a *app) policyCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE]", Short: "Check a policy file and its examples; exits 78 when it is bad", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, p, err := a.namedPolicy(strings.Join(args, ""))
			if err != nil {
				return err
			}
			warnings := []string{}
			for _, problem := range p.Warnings() {
				warnings = append(warnings, problem.Error())
			}
			return a.print(map[string]any{"ok": true, "digest": p.Digest(), "warnings": warnings}, func(w io.Writer) {
				fmt.Fprintf(w, "%s is good, digest %s\n", path, p.Digest())
				for _, text := range warnings {
					fmt.Fprintf(w, "warning: %s\n", text)
				}
			})
		},
	}
}

// explainFlags are what explain may assume about a command.
type explainFlags struct {
	file string
	at   string
	q    policy.Request
}

func (a *app) policyExplainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use: "explain [flags] -- COMMAND [ARGUMENT...]", Short: "Show what each rule of a policy file says of a command", Args: needCommand,
		Long: "Show what each rule of a policy file says of a command, of each command that it starts, and\nwhat comes out of it. Without --resolved only a denial is final, as before a worker has looked.",
		RunE: func(_ *cobra.Command, args []string) error {
			_, p, err := a.namedPolicy(f.file)
			if err != nil {
				return err
			}
			q, err := f.request(args)
			if err != nil {
				return err
			}
			return a.explainPolicy(p, q)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "file", "", "policy file (default: the site's)")
	flags.StringVar(&f.q.Cwd, "cwd", "", "working directory (default: this one)")
	flags.StringVar(&f.q.ResolvedPath, "resolved", "", "real path of the program, as a worker would report it")
	flags.StringVar(&f.q.Pool, "pool", "default", "pool of workers")
	flags.StringVar(&f.q.Proposer, "proposer", "agent:local", "who proposes, as agent:NAME or person:TOKEN")
	flags.StringVar(&f.at, "at", "", "moment such as 2026-06-01T09:00:00Z (default: now)")
	return cmd
}

// request completes what the flags say.
func (f *explainFlags) request(argv []string) (policy.Request, error) {
	q := f.q
	q.Argv, q.At = argv, time.Now()
	var err error
	if f.at != "" {
		if q.At, err = time.Parse(time.RFC3339, f.at); err != nil {
			return q, usage("", "--at %q: want a time such as 2026-06-01T09:00:00Z", f.at)
		}
	}
	if q.Cwd == "" {
		q.Cwd, err = os.Getwd()
	} else {
		q.Cwd, err = filepath.Abs(q.Cwd)
	}
	if err != nil {
		return q, fmt.Errorf("find the working directory: %w", err)
	}
	if q.ResolvedPath != "" {
		q.RealCwd = q.Cwd
		if real, err := filepath.EvalSymlinks(q.Cwd); err == nil {
			q.RealCwd = real
		}
	}
	return q, nil
}

func (a *app) explainPolicy(p *policy.Policy, q policy.Request) error {
	steps, d := p.Explain(q), p.Static(q)
	return a.print(map[string]any{"steps": steps, "decision": d}, func(w io.Writer) {
		var rows [][]string
		for _, s := range steps {
			mark := ""
			switch {
			case s.Decides:
				mark = "decides"
			case s.Matched:
				mark = "fits"
			}
			why := view.Printable(s.Why)
			if len(s.Starts) > 0 {
				mark, why = "starts", view.Command(s.Starts)+": "+why
			}
			rows = append(rows, []string{line(s.Line), s.Rule, s.Decision.String(), mark, why})
		}
		table(w, []string{"LINE", "RULE", "SAYS", "", "WHY"}, rows)
		fmt.Fprintf(w, "\n%s (%s): %s\n", d.Verdict, d.Code, view.Printable(d.Reason))
		if d.Quorum > 0 {
			fmt.Fprintf(w, "persons: %d%s\n", d.Quorum, among(d.Approvers))
		}
		if d.Confirm {
			fmt.Fprintln(w, "confirm: each yes has to name the digest of what would run")
		}
		if d.Instead != "" {
			fmt.Fprintf(w, "instead: %s\n", view.Printable(d.Instead))
		}
	})
}

func line(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func among(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " of " + strings.Join(names, ", ")
}

func (a *app) policyTestCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "test FILE", Short: "Try a file of expectations on a policy file; exits 1 when one fails", Args: cobra.ExactArgs(1),
		Long: "Try a file of expectations on a policy file. It is TOML: version = 1 and a series of [[case]]\ntables, each with argv, a list, and decision, the word that has to come out. A case may also\nhave rule and code, which have to decide, and cwd, real_cwd, resolved, env, pool, proposer,\nat, timeout_s and max_attempts, which are assumed of the command.",
		RunE: func(_ *cobra.Command, args []string) error {
			_, p, err := a.namedPolicy(file)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read the test file: %w", err)
			}
			cases, err := policy.ParseCases(args[0], text)
			if err != nil {
				return err
			}
			return a.tryPolicy(p, args[0], cases)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "policy file (default: the site's)")
	return cmd
}

// failedCase is one expectation that did not hold.
type failedCase struct {
	Line int      `json:"line"`
	Argv []string `json:"argv"`
	Why  string   `json:"why"`
}

func (a *app) tryPolicy(p *policy.Policy, name string, cases []policy.Case) error {
	failed := []failedCase{}
	for _, o := range p.Try(cases) {
		if why := o.Failed(); why != "" {
			failed = append(failed, failedCase{Line: o.Case.Line, Argv: o.Case.Request.Argv, Why: why})
		}
	}
	err := a.print(map[string]any{"cases": len(cases), "failed": failed}, func(w io.Writer) {
		for _, f := range failed {
			fmt.Fprintf(w, "%s:%d: %s: %s\n", name, f.Line, view.Command(f.Argv), view.Printable(f.Why))
		}
		fmt.Fprintf(w, "%d of %d hold\n", len(cases)-len(failed), len(cases))
	})
	if err == nil && len(failed) > 0 {
		return &exit{code: ExitError}
	}
	return err
}

func (a *app) policyDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use: "diff OLD NEW", Short: "Show which rules two policy files have in another way", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			older, err := a.policyFile(args[0])
			if err != nil {
				return err
			}
			newer, err := a.policyFile(args[1])
			if err != nil {
				return err
			}
			changes := policy.Diff(older, newer)
			return a.print(map[string]any{"old": older.Digest(), "new": newer.Digest(), "changes": orEmpty(changes)}, func(w io.Writer) { printChanges(w, changes) })
		},
	}
}

func orEmpty(changes []policy.Change) []policy.Change {
	if changes == nil {
		return []policy.Change{}
	}
	return changes
}

func printChanges(w io.Writer, changes []policy.Change) {
	if len(changes) == 0 {
		fmt.Fprintln(w, "no rule differs")
	}
	for _, c := range changes {
		fmt.Fprintln(w, view.Printable(c.String()))
	}
}

func (a *app) policyImportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "import FILE", Short: "Turn a version 1 policy file of agent-safe into a policy, on standard output", Args: cobra.ExactArgs(1),
		Long: "Turn a version 1 policy file of agent-safe (agent-safe-policy.json) into a policy of the same\nmeaning. The policy goes to standard output; what it could not express is listed on standard\nerror. Exits 78 when the policy still has to be mended.",
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read the policy file: %w", err)
			}
			folder, err := filepath.Abs(filepath.Dir(args[0]))
			if err != nil {
				return fmt.Errorf("find the folder of %s: %w", args[0], err)
			}
			got, err := policy.ImportAgentSafe(text, folder)
			if err != nil {
				return fmt.Errorf("import %s: %w", args[0], err)
			}
			return a.printImported(args[0], got)
		},
	}
}

func (a *app) printImported(name string, got policy.Imported) error {
	l, err := a.layout()
	if err != nil {
		return err
	}
	err = a.print(map[string]any{"policy": string(got.Text), "lost": append([]string{}, got.Lost...)}, func(w io.Writer) {
		w.Write(got.Text)
		for _, text := range got.Lost {
			a.say("not the same: %s", view.Printable(text))
		}
	})
	if err != nil {
		return err
	}
	_, err = policy.Parse(name, got.Text, host.PolicyEnv(l))
	return err
}

func (a *app) policyShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print the policy in force", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, l, s, err := a.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			p, err := host.NewStanding(c, s, l).Policy(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(map[string]string{"digest": p.Digest(), "policy": string(p.Text())}, func(w io.Writer) { w.Write(p.Text()) })
		},
	}
}

// publishFlags are how a policy is published.
type publishFlags struct {
	digest     string
	passphrase string
	dry        bool
}

func (a *app) policyPublishCommand() *cobra.Command {
	var f publishFlags
	cmd := &cobra.Command{
		Use: "publish FILE", Short: "Put a policy into force, signed with your key", Args: cobra.ExactArgs(1),
		Long: "Put a policy into force, signed with your own key, which has to be an administrator's. Its\ndigest and its changes against the policy in force are shown first. Jobs that were approved\nunder the old policy start only where the new one still permits them.",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.policyFile(args[0])
			if err != nil {
				return err
			}
			if !strings.HasPrefix(p.Digest(), f.digest) {
				return usage("read the file again before you sign it", "publish %s: its digest is %s and does not begin with %s", args[0], p.Digest(), f.digest)
			}
			return a.publish(cmd.Context(), p, &f)
		},
	}
	passphraseFlag(cmd, &f.passphrase)
	cmd.Flags().StringVar(&f.digest, "digest", "", "refuse a file whose digest does not begin so")
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "show digest and changes, and sign nothing")
	return cmd
}

// published is what publish says.
type published struct {
	Digest   string          `json:"digest"`
	Replaces string          `json:"replaces"`
	Changes  []policy.Change `json:"changes"`
	Seq      uint64          `json:"seq,omitzero"`
}

func (a *app) publish(ctx context.Context, p *policy.Policy, f *publishFlags) error {
	l, s, c, err := a.person()
	if err != nil {
		return err
	}
	conn, err := a.connect(ctx, l, s, c.ActorName, events.RolePerson)
	if err != nil {
		return err
	}
	defer conn.Close()
	desk := &person.Desk{Config: c, Layout: l, Bus: conn, Standing: host.NewStanding(conn, s, l), Ask: askPassphrase(f.passphrase)}
	now, err := desk.Standing.Policy(ctx)
	if err != nil {
		a.say("the policy in force cannot be read: %v", err)
	}
	told := published{Digest: p.Digest(), Replaces: now.Digest(), Changes: orEmpty(policy.Diff(now, p))}
	a.say("policy %s", told.Digest)
	a.say("replaces %s", told.Replaces)
	if !a.json {
		printChanges(a.err, told.Changes)
	}
	for _, problem := range p.Warnings() {
		a.say("warning: %v", problem)
	}
	switch {
	case told.Digest == told.Replaces:
		a.say("it is in force already")
	case !f.dry:
		if told.Seq, err = desk.Publish(ctx, p, told.Replaces); err != nil {
			return err
		}
	}
	return a.print(told, func(w io.Writer) {
		if told.Seq > 0 {
			fmt.Fprintf(w, "policy %.16s is in force, event %d\n", told.Digest, told.Seq)
		}
	})
}
