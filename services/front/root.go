package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/site"
)

// app is what every verb shares.
type app struct {
	in       *os.File
	out, err io.Writer
	dir      string
	json     bool
	logLevel string
	running  bool            // under run, whose own failures exit 125
	hurry    <-chan struct{} // closed by a second signal
}

// Main is the banksman command; it returns the exit code.
func Main() int {
	proc.StewardMain()
	ctx, hurry, stop := host.Signals(context.Background())
	defer stop()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, hurry: hurry}
	return a.execute(ctx, os.Args[1:])
}

// execute runs one command line.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	report(a.err, a.json, err)
	code := codeOf(err)
	if a.running && code == ExitError {
		code = ExitBanksman
	}
	return code
}

// root builds the tree of verbs.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "banksman",
		Short:         "Decides which commands autonomous agents may run, runs them, and proves it",
		Long:          "banksman lets agents propose commands, policy and people decide, workers run exactly\nwhat was decided, and an auditor turn all of it into a log that an outsider can verify.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&a.dir, "dir", "", "the site's folder (default $BANKSMAN_DIR, else banksman in the XDG data home)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print objects for programs")
	root.PersistentFlags().StringVar(&a.logLevel, "log-level", "warn", "least level of log lines on standard error: debug, info, warn or error")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return misused(cmd, err)
	})
	root.AddGroup(&cobra.Group{ID: "start", Title: "Start and look after a site:"}, &cobra.Group{ID: "ask", Title: "Ask for commands:"},
		&cobra.Group{ID: "decide", Title: "Look and decide:"}, &cobra.Group{ID: "agents", Title: "Watch agents in their loops:"}, &cobra.Group{ID: "prove", Title: "Prove:"}, &cobra.Group{ID: "roles", Title: "Run one role in the foreground:"})
	root.AddCommand(a.initCommand(), a.upCommand(), a.statusCommand(), a.healthCommand(), a.doctorCommand(), a.importCommand(), a.configCommand(), a.actorCommand())
	root.AddCommand(a.proposeCommand(), a.runCommand(), a.assessCommand(), a.cancelCommand(), a.takeCommand(), a.reportCommand(), a.retryCommand(), a.editCommand())
	root.AddCommand(a.lsCommand(), a.showCommand(), a.inboxCommand(), a.approveCommand(), a.denyCommand(), a.revokeCommand(), a.commentCommand(), a.waiveCommand(), a.grantCommand(), a.eventsCommand(), a.policyCommand())
	root.AddCommand(a.loopCommand(), a.roundCommand(), a.alertCommand(), a.watchCommand(), a.mcpCommand(), a.hookCommand())
	root.AddCommand(a.tailCommand(), a.replayCommand())
	root.AddCommand(a.auditCommand(), a.backupCommand(), a.restoreCommand(), a.textCommand(), a.versionCommand())
	root.AddCommand(a.roleCommands()...)
	a.checkArguments(root)
	return root
}

// checkArguments turns a wrong number of arguments into a usage error, in the
// whole tree.
func (a *app) checkArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil {
				return nil
			}
			var e *exit
			switch {
			case errors.As(err, &e):
				return err
			case strings.HasPrefix(err.Error(), "unknown command"):
				return unknownVerb(cmd, args[0], err)
			}
			return misused(cmd, fmt.Errorf("give it as '%s', not with %d argument(s)", strings.TrimSpace(cmd.Parent().CommandPath()+" "+cmd.Use), len(args)))
		}
	}
	for _, c := range cmd.Commands() {
		a.checkArguments(c)
	}
}

// unknownVerb names the verbs that the word may have been meant for.
func unknownVerb(cmd *cobra.Command, word string, err error) error {
	cmd.SuggestionsMinimumDistance = 2 // letters
	near := cmd.SuggestionsFor(word)
	if len(near) == 0 {
		return misused(cmd, err)
	}
	return usage("did you mean '"+cmd.CommandPath()+" "+strings.Join(near, "' or '"+cmd.CommandPath()+" ")+"'?", "%s", err)
}

// misused is a verb that was called with the wrong words.
func misused(cmd *cobra.Command, err error) error {
	text := err.Error()
	if cmd.HasParent() {
		text = strings.TrimPrefix(cmd.CommandPath(), "banksman ") + ": " + text
	}
	return usage("see '"+cmd.CommandPath()+" --help'", "%s", text)
}

// layout is the folder that the flags or the environment name.
func (a *app) layout() (site.Layout, error) {
	dir := a.dir
	if dir == "" {
		dir = os.Getenv(site.EnvDir)
	}
	return site.At(dir, os.Getenv)
}

// log is the logger of a process; lines go to standard error.
func (a *app) log() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return nil, usage("", "--log-level %q: want debug, info, warn or error", a.logLevel)
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})), nil
}

// say prints a line for the person at the terminal.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.err, "banksman: "+format+"\n", args...)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", GroupID: "start", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.print(map[string]string{"version": host.Version()}, func(w io.Writer) { fmt.Fprintln(w, "banksman", host.Version()) })
		},
	}
}
