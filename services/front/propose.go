package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/view"
)

// proposalFlags are what may be said beside the command.
type proposalFlags struct {
	p      agentapi.Proposal
	env    []string
	labels []string
	limit  time.Duration
	expire time.Duration
}

func (f *proposalFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.p.Cwd, "cwd", "", "working directory (default: this one)")
	flags.StringArrayVar(&f.env, "env", nil, "NAME=VALUE to set for the command; repeat for more")
	flags.StringVar(&f.p.Pool, "pool", "", "pool of workers")
	flags.DurationVar(&f.limit, "timeout", 0, "run time after which the command is ended")
	flags.IntVar(&f.p.MaxAttempts, "max-attempts", 0, "how often it may be started in all")
	flags.BoolVar(&f.p.RetrySafe, "retry-safe", false, "running it twice does no harm")
	flags.StringVar(&f.p.Reason, "reason", "", "why, for the people who decide")
	flags.StringVar(&f.p.IdempotencyKey, "key", "", "idempotency key: the same key is the same job")
	flags.StringArrayVar(&f.labels, "label", nil, "NAME=VALUE to find it by; repeat for more")
	flags.DurationVar(&f.expire, "expires", 0, "time after which an undecided request ends")
}

// proposal completes what the flags say.
func (f *proposalFlags) proposal(argv []string) (agentapi.Proposal, error) {
	p := f.p
	p.Argv = argv
	p.TimeoutS, p.ExpiresS = wholeSeconds(f.limit), wholeSeconds(f.expire)
	var err error
	if p.Env, err = pairs("--env", f.env); err != nil {
		return p, err
	}
	if p.Labels, err = pairs("--label", f.labels); err != nil {
		return p, err
	}
	if p.Cwd == "" {
		if p.Cwd, err = os.Getwd(); err != nil {
			return p, fmt.Errorf("find the working directory: %w", err)
		}
	}
	return p, nil
}

// wholeSeconds rounds up, so that a limit is never cut to nothing.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

func pairs(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m := map[string]string{}
	for _, p := range list {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usage("", "%s %q: want NAME=VALUE", flag, p)
		}
		m[name] = value
	}
	return m, nil
}

// proposer opens the proposer's door: with BANKSMAN_TOKEN, else as the folder's
// local agent.
func (a *app) proposer() (*agentapi.Client, error) {
	c, _, err := a.door()
	return c, err
}

// door is the proposer's door with the token that opens it.
func (a *app) door() (*agentapi.Client, string, error) {
	l, err := a.layout()
	if err != nil {
		return nil, "", err
	}
	socket := os.Getenv(site.EnvSocket)
	if socket == "" || a.dir != "" {
		socket = l.ProposerSocket()
	}
	token := os.Getenv(site.EnvToken)
	if token == "" {
		text, err := keys.ReadSecret(l.Token("agent", "local"))
		if err != nil {
			return nil, "", &agentapi.Error{Code: "no_token", Message: fmt.Sprintf("read the local agent's token: %v", err),
				Next: "make a site with 'banksman init', name its folder with --dir, or set BANKSMAN_TOKEN"}
		}
		token = strings.TrimSpace(string(text))
	}
	return agentapi.NewClient(socket, token), token, nil
}

// needCommand asks for a command after --.
func needCommand(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("put it after --, as in: -- git --version", "there is no command")
	}
	return nil
}

func (a *app) proposeCommand() *cobra.Command {
	var f proposalFlags
	cmd := &cobra.Command{
		Use: "propose [flags] -- COMMAND [ARGUMENT...]", Short: "Ask for a command and return at once", GroupID: "ask", Args: needCommand,
		Long: "Ask for a command to be run and return once the request is recorded. Exits 77 when policy\ndenies it at once.",
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := a.propose(cmd.Context(), &f, args)
			if err != nil {
				return err
			}
			if err := a.print(j, func(w io.Writer) { fmt.Fprintln(w, j.Job.Job) }); err != nil {
				return err
			}
			if j.Status == lifecycle.Denied {
				a.explain(j)
				return &exit{code: ExitDenied}
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.p.Executor, "executor", "", "worker (default), or caller: decided as any other, then executed by whoever takes it with 'banksman take'")
	return cmd
}

func (a *app) propose(ctx context.Context, f *proposalFlags, argv []string) (view.Detail, error) {
	p, err := f.proposal(argv)
	if err != nil {
		return view.Detail{}, err
	}
	c, err := a.proposer()
	if err != nil {
		return view.Detail{}, err
	}
	return c.Propose(ctx, p)
}

// explain says on standard error why a job was denied or ended.
func (a *app) explain(j view.Detail) {
	r := j.Ruling
	if r == nil {
		a.say("%s: %s", j.Status, why(j.Job))
		return
	}
	by := "policy"
	if j.DeniedBy != "" && r.Code == "person" {
		by = j.DeniedBy
	} else if r.Rule != "" {
		by = "rule " + r.Rule
	}
	a.say("%s by %s: %s", j.Status, by, view.Printable(r.Reason))
	if r.Instead != "" {
		a.say("instead: %s", view.Printable(r.Instead))
	}
}

func (a *app) assessCommand() *cobra.Command {
	var f proposalFlags
	cmd := &cobra.Command{
		Use: "assess [flags] -- COMMAND [ARGUMENT...]", Short: "Say what policy would decide, and store nothing", GroupID: "ask", Args: needCommand,
		Long: "Say what policy would decide about a command, and store nothing. Exits 0 for allow, 75 for\nask, 77 for deny. An allow is provisional: the gate judges again what a worker finds.",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.proposal(args)
			if err != nil {
				return err
			}
			c, err := a.proposer()
			if err != nil {
				return err
			}
			got, err := c.Assess(cmd.Context(), p)
			if err != nil {
				return err
			}
			return a.assessment(got)
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) assessment(got query.Assessment) error {
	err := a.print(got, func(w io.Writer) {
		rule := got.Rule
		if rule == "" {
			rule = "no rule"
		}
		fmt.Fprintf(w, "%s (%s): %s\n", got.Verdict, rule, view.Printable(got.Reason))
		if got.Instead != "" {
			fmt.Fprintf(w, "instead: %s\n", view.Printable(got.Instead))
		}
	})
	codes := map[string]int{"allow": ExitOK, "ask": ExitPending, "deny": ExitDenied}
	if code := codes[got.Verdict]; err == nil && code != ExitOK {
		err = &exit{code: code}
	}
	return err
}

func (a *app) runCommand() *cobra.Command {
	var f proposalFlags
	var wait time.Duration
	var attach string
	var raw, dry bool
	cmd := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARGUMENT...]", Short: "Ask for a command, wait, show its output, exit with its status", GroupID: "ask",
		Args: func(cmd *cobra.Command, args []string) error {
			if attach == "" {
				return needCommand(cmd, args)
			}
			return cobra.NoArgs(cmd, args)
		},
		Long: "Ask for a command, wait for the decision, stream its output, and exit with its status.\nbanksman's own lines go to standard error and begin with \"banksman:\". Exits 77 when denied,\n75 when still pending after --wait, 124 when the command ran out of time, 125 when banksman\nitself failed. With --attach it follows a job of yours that exists already, from its beginning,\nand starts nothing. With --dry-run it shows what a worker of the\npool would execute, within which limits and walls, and what policy says; nothing is started or\nstored, and it exits as assess does, or 1 when the command could not be run.",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.running = true
			c, err := a.proposer()
			if err != nil {
				return err
			}
			if dry {
				p, err := f.proposal(args)
				if err != nil {
					return err
				}
				d, err := c.DryRun(cmd.Context(), p)
				if err != nil {
					return err
				}
				a.running = false // nothing ran whose status could be meant
				return a.dryRun(d)
			}
			var j view.Detail
			if attach == "" {
				j, err = a.propose(cmd.Context(), &f, args)
			} else {
				j, err = c.Job(cmd.Context(), attach, 0, 0)
			}
			if err == nil && j.Executor != "" {
				err = &exit{code: ExitBanksman, err: &agentapi.Error{Code: "for_the_caller", Message: fmt.Sprintf("run --attach %s: whoever proposed it executes it, so there is nothing to follow", attach), Next: "take it with 'banksman take " + attach + "'"}}
			}
			if err != nil {
				return err
			}
			r := &runner{app: a, client: c, job: j, out: a.sheets(raw)}
			r.out.objects = nil // its output is the command's own
			return errors.Join(r.run(cmd.Context(), cmd.Flags().Changed("wait"), wait), r.out.end())
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "longest wait for the decision (default: no bound)")
	cmd.Flags().StringVar(&attach, "attach", "", "follow this job of yours instead of asking for a command")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would run and what policy says; start and store nothing")
	cmd.MarkFlagsMutuallyExclusive("attach", "dry-run")
	rawFlag(cmd, &raw)
	return cmd
}

// runner follows one job to its end.
type runner struct {
	app    *app
	client *agentapi.Client
	job    view.Detail
	out    *sheets
	said   string // the last state that was told
}

func (r *runner) run(ctx context.Context, bounded bool, wait time.Duration) error {
	limit := ctx
	if bounded {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	if err := r.follow(limit, func(j view.Detail) bool { return j.Status.Undecided() }); err != nil {
		return r.interrupted(ctx, limit, err)
	}
	next := 0
	for attempt := 1; ; attempt++ {
		waits := func(j view.Detail) bool { return len(j.Attempts) < attempt && !j.Status.Final() }
		if err := r.follow(ctx, waits); err != nil {
			return r.interrupted(ctx, ctx, err)
		}
		if len(r.job.Attempts) < attempt {
			return r.end()
		}
		if _, err := r.client.Output(ctx, r.job.Job.Job, attempt, next, r.out.put); err != nil {
			return r.interrupted(ctx, ctx, err)
		}
		running := func(j view.Detail) bool { return len(j.Attempts) == attempt && j.Status == lifecycle.Running }
		if err := r.follow(ctx, running); err != nil {
			return r.interrupted(ctx, ctx, err)
		}
	}
}

// poll is how long one question to the proposer may wait.
const poll = 30 * time.Second

// follow waits while a condition holds, and tells what the job waits for.
func (r *runner) follow(ctx context.Context, while func(view.Detail) bool) error {
	for while(r.job) {
		r.tell()
		if err := ctx.Err(); err != nil {
			return err
		}
		deadline, ok := ctx.Deadline()
		left := poll
		if ok {
			left = min(left, max(time.Until(deadline), time.Millisecond))
		}
		j, err := r.client.Job(context.WithoutCancel(ctx), r.job.Job.Job, r.job.LastSeq, min(left, r.patience()))
		if err != nil {
			return err
		}
		r.job = j
	}
	return nil
}

// patience is shorter while the job waits for something that is no event.
func (r *runner) patience() time.Duration {
	if r.job.Status == lifecycle.Approved {
		return time.Second
	}
	return poll
}

// tell says each new state once.
func (r *runner) tell() {
	j := r.job
	line := ""
	switch {
	case j.Status == lifecycle.Pending:
		line = fmt.Sprintf("job %s waits for a person: %s; approve with: banksman approve%s %s", j.Job.Job, why(j.Job), r.app.dirFlag(), j.Job.Job)
	case j.Status == lifecycle.Approved && strings.HasPrefix(j.Waiting, "seal since") && time.Since(j.Updated) > time.Second:
		line = fmt.Sprintf("job %s is approved, waiting for %s", j.Job.Job, j.Waiting)
	case j.Status == lifecycle.Approved && j.Waiting != "" && time.Since(j.Updated) > 2*time.Second:
		line = fmt.Sprintf("job %s is approved, waiting for %s", j.Job.Job, j.Waiting)
	case j.Status == lifecycle.RetryWait:
		line = fmt.Sprintf("job %s waits for another attempt", j.Job.Job)
	}
	if line != "" && line != r.said {
		r.said = line
		r.app.say("%s", line)
	}
}

// interrupted says how to go on when waiting was ended.
func (r *runner) interrupted(ctx, limit context.Context, err error) error {
	id := r.job.Job.Job
	if ctx.Err() != nil {
		r.app.say("interrupted; job %s goes on. See: banksman show%s %s", id, r.app.dirFlag(), id)
		return &exit{code: 130}
	}
	if limit.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		r.app.say("job %s is still %s. Approve with: banksman approve%s %s; then see: banksman show%s %s", id, r.job.Status, r.app.dirFlag(), id, r.app.dirFlag(), id)
		return &exit{code: ExitPending}
	}
	return err
}

// end maps the job's end to the exit code.
func (r *runner) end() error {
	j := r.job
	switch {
	case j.Status == lifecycle.Denied:
		r.app.explain(j)
		return &exit{code: ExitDenied}
	case j.Status == lifecycle.Expired:
		r.app.say("job %s expired: %s", j.Job.Job, j.Ending)
		return &exit{code: ExitPending}
	case j.Result == nil || j.Result.Error != "":
		reason := j.Ending
		if j.Result != nil {
			reason = j.Result.Error
		}
		r.app.say("job %s ended as %s: %s", j.Job.Job, j.Status, view.Printable(reason))
		return &exit{code: ExitBanksman}
	case j.Status == lifecycle.TimedOut:
		r.app.say("job %s ran out of time after %.1f s", j.Job.Job, j.Result.DurationS)
		return &exit{code: ExitTimeout}
	case j.Result.Signal != "":
		r.app.say("job %s was ended by %s", j.Job.Job, j.Result.Signal)
		return &exit{code: 128 + signalNumber(j.Result.Signal)}
	case j.Result.ExitCode != 0:
		return &exit{code: j.Result.ExitCode}
	}
	return nil
}
