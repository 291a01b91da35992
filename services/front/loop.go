package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

func (a *app) loopCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "loop", Short: "Look at agents in their loops, stop them and let them go on", GroupID: "agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.loopStatusCommand(),
		a.loopSayCommand("start PROJECT", "Lift a stop order, or let a halted loop begin anew", loops.Start),
		a.loopSayCommand("stop PROJECT", "Stop after the running round; it stays stopped until started", order(events.StopDrain)),
		a.loopSayCommand("kill PROJECT", "End the running round now; it stays stopped until started", order(events.StopKill)))
	return cmd
}

// order makes a stop order of a mode.
func order(mode string) func(loop.Project, string) ([]loops.Saying, error) {
	return func(p loop.Project, reason string) ([]loops.Saying, error) {
		s, err := loops.Order(p, mode, reason, "")
		return []loops.Saying{s}, err
	}
}

func (a *app) loopStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status [PROJECT]", Short: "Say where each project stands", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, l, s, err := a.reader(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			list, err := loopList(ctx, c, loops.Reader{Bus: c, Standing: host.NewStanding(c, s, l)}, args)
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { loopTable(w, list) })
		},
	}
}

// loopList asks the supervisor, which alone knows what a project waits for;
// where none answers it reads what the log says.
func loopList(ctx context.Context, c *bus.Conn, r loops.Reader, names []string) (query.LoopList, error) {
	list := query.LoopList{Loops: []query.LoopView{}}
	var q query.LoopsRequest
	if len(names) > 0 {
		q.Project = names[0]
	}
	err := c.Ask(ctx, query.Loops, q, &list)
	if !errors.Is(err, bus.ErrNoResponder) {
		return list, err
	}
	if len(names) == 0 {
		if names, err = r.Projects(ctx); err != nil {
			return list, err
		}
	}
	for _, n := range names {
		p, err := r.Project(ctx, n)
		if err != nil {
			return list, err
		}
		list.Loops = append(list.Loops, loops.View(p))
	}
	return list, nil
}

func loopTable(w io.Writer, list query.LoopList) {
	if len(list.Loops) == 0 {
		fmt.Fprintln(w, "no projects; name one in [projects.NAME] of the configuration")
		return
	}
	var rows [][]string
	for _, v := range list.Loops {
		last := ""
		if v.Round != nil {
			last = v.Round.Round + " " + v.Round.State + " " + v.Round.Outcome
		}
		rows = append(rows, []string{v.Project, v.State, fmt.Sprint(v.Rounds), last, clip(view.Printable(v.Reason), 90)})
	}
	table(w, []string{"PROJECT", "STATE", "ROUNDS", "LAST ROUND", "WHY"}, rows)
}

// loopSayCommand lets a person say something about a project, signed.
func (a *app) loopSayCommand(use, short string, say func(loop.Project, string) ([]loops.Saying, error)) *cobra.Command {
	var file, reason string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.sayOfLoop(cmd.Context(), args[0], file, func(p loop.Project) ([]loops.Saying, error) { return say(p, reason) })
		},
	}
	passphraseFlag(cmd, &file)
	cmd.Flags().StringVar(&reason, "reason", "asked on the command line", "why, for the record")
	return cmd
}

func (a *app) sayOfLoop(ctx context.Context, project, file string, say func(loop.Project) ([]loops.Saying, error)) error {
	l, s, c, err := a.person()
	if err != nil {
		return err
	}
	conn, err := a.connect(ctx, l, s, c.ActorName, events.RolePerson)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := loops.Reader{Bus: conn, Standing: host.NewStanding(conn, s, l)}
	p, err := r.Project(ctx, project)
	if err != nil {
		return err
	}
	list, err := say(p)
	if err != nil {
		return err
	}
	signer, err := keys.LoadSigner(l.SignKey(c.ActorName), askPassphrase(file))
	if err != nil {
		return err
	}
	appender := conn.Appender(host.Signing{Signer: signer})
	for _, one := range list {
		_, err := appender.Append(ctx, one.Subject(project, c.ActorName), one.Expect, one.Payload)
		var conflict *bus.Conflict
		if errors.As(err, &conflict) {
			return usage("look at 'banksman loop status "+project+"' and say it again", "say %s of project %s: it has moved in between", one.Kind, project)
		}
		if err != nil {
			return err
		}
	}
	if p, err = r.Project(ctx, project); err != nil {
		return err
	}
	v := loops.View(p)
	return a.print(v, func(w io.Writer) { fmt.Fprintf(w, "%s %s: %s\n", v.Project, v.State, view.Printable(v.Reason)) })
}

func (a *app) roundCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "round", Short: "Look at the rounds of a project", GroupID: "agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.roundListCommand(), a.roundShowCommand(), a.roundTailCommand())
	return cmd
}

func (a *app) roundListCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "ls PROJECT", Short: "List rounds, newest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, l, s, err := a.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			r := loops.Reader{Bus: c, Standing: host.NewStanding(c, s, l)}
			list, err := r.Rounds(cmd.Context(), query.RoundsRequest{Project: args[0], Limit: limit})
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { roundTable(w, list, time.Now()) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "at most so many")
	return cmd
}

func roundTable(w io.Writer, list query.RoundList, now time.Time) {
	if len(list.Rounds) == 0 {
		fmt.Fprintln(w, "no rounds")
		return
	}
	var rows [][]string
	for _, r := range list.Rounds {
		kept := ""
		if r.Salvage != nil && r.Salvage.Ref != "" {
			kept = fmt.Sprintf("%d files in %s", r.Salvage.Files, r.Salvage.Ref)
		} else if r.Salvage != nil && r.Salvage.Error != "" {
			kept = "not kept: " + r.Salvage.Error
		}
		rows = append(rows, []string{r.Round, r.State, r.Outcome, fmt.Sprint(r.ExitCode), age(now.Sub(r.StartedAt)),
			fmt.Sprintf("%.1fs", float64(r.DurationMS)/1000), r.Failure, view.Printable(kept)})
	}
	table(w, []string{"ROUND", "STATE", "OUTCOME", "EXIT", "AGE", "TOOK", "FAILURE", "SALVAGED"}, rows)
}

func (a *app) roundShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ROUND", Short: "Show all about one round", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, v, err := a.round(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			return a.print(v, func(w io.Writer) { showRound(w, v) })
		},
	}
}

// round reads one round as the reader.
func (a *app) round(ctx context.Context, id string) (*bus.Conn, query.RoundView, error) {
	c, l, s, err := a.reader(ctx)
	if err != nil {
		return nil, query.RoundView{}, err
	}
	r, err := loops.Reader{Bus: c, Standing: host.NewStanding(c, s, l)}.Round(ctx, id)
	if err != nil {
		c.Close()
		return nil, query.RoundView{}, fmt.Errorf("round %s: %w", id, err)
	}
	return c, loops.ViewRound(r), nil
}

func showRound(w io.Writer, v query.RoundView) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-11s "+format+"\n", append([]any{name}, args...)...)
	}
	line("round", "%s, the %d. of %s", v.Round, v.Number, v.Project)
	line("state", "%s %s", v.State, v.Outcome)
	line("program", "%s", view.Printable(v.Program))
	line("started", "%s by %s", v.StartedAt.Format(time.RFC3339), v.Supervisor)
	if !v.EndedAt.IsZero() {
		line("ended", "%s after %.1f s, exit %d %s", v.EndedAt.Format(time.RFC3339), float64(v.DurationMS)/1000, v.ExitCode, v.Signal)
	}
	for _, t := range [][2]string{{"because", v.Reason}, {"failure", v.Failure}, {"error", v.Error}} {
		if t[1] != "" {
			line(t[0], "%s", view.Printable(t[1]))
		}
	}
	line("output", "%d bytes", v.OutputBytes)
	if v.Salvage != nil && v.Salvage.Ref != "" {
		line("salvaged", "%d files, %d bytes: git show %s", v.Salvage.Files, v.Salvage.Bytes, v.Salvage.Ref)
	} else if v.Salvage != nil && v.Salvage.Error != "" {
		line("salvage", "failed: %s", view.Printable(v.Salvage.Error))
	}
}

func (a *app) roundTailCommand() *cobra.Command {
	var follow, raw bool
	cmd := &cobra.Command{
		Use: "tail ROUND", Short: "Print the output of a round", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, v, err := a.round(ctx, args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			l, s, err := a.site()
			if err != nil {
				return err
			}
			r := loops.Reader{Bus: c, Standing: host.NewStanding(c, s, l)}
			out := a.sheets(raw)
			return errors.Join(a.tailRound(ctx, c, r, v, follow, out.put), out.end())
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the round has ended")
	rawFlag(cmd, &raw)
	return cmd
}

// tailEvery is how often a followed round's output is looked for.
const tailEvery = 200 * time.Millisecond

func (a *app) tailRound(ctx context.Context, c *bus.Conn, r loops.Reader, v query.RoundView, follow bool, put func(agentapi.Chunk) error) error {
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for next, seen := 0, 0; ; {
		// The state is read first: when it has ended, everything was stored before.
		now, err := r.Round(ctx, v.Round)
		if err != nil {
			return err
		}
		err = c.ReadOutput(ctx, v.Project, v.Round, 1, next, func(n int, stream string, atMS int64, data []byte) error {
			next, seen = n+1, seen+1
			return put(agentapi.Chunk{N: n, Stream: stream, AtMS: atMS, Data: data})
		})
		shown := loops.ViewRound(now)
		if err != nil || !follow || shown.State == "ended" {
			if err == nil {
				a.missing("round "+v.Round, shown.Chunks, seen)
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
