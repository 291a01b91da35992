package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/asks"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/view"
)

// dialWithin bounds how long a verb tries to reach the bus.
const dialWithin = 3 * time.Second

// connect logs an actor in to the bus.
func (a *app) connect(ctx context.Context, l site.Layout, s host.SiteConfig, actor string, power events.Role) (*bus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	return host.Connection{Layout: l, Site: s, Actor: actor, Power: power, Log: slog.New(slog.DiscardHandler), Once: true}.Dial(ctx)
}

// site reads the folder that the flags or the environment name.
func (a *app) site() (site.Layout, host.SiteConfig, error) {
	l, err := a.layout()
	if err != nil {
		return l, host.SiteConfig{}, err
	}
	s, err := host.LoadSite(l)
	return l, s, err
}

// reader connects as the folder's reader.
func (a *app) reader(ctx context.Context) (*bus.Conn, site.Layout, host.SiteConfig, error) {
	l, s, err := a.site()
	if err != nil {
		return nil, l, s, err
	}
	c, err := a.connect(ctx, l, s, "reader", events.RoleReader)
	return c, l, s, err
}

// ask puts one question as the reader.
func ask[T any](ctx context.Context, a *app, subject string, request any) (T, error) {
	var answer T
	c, _, _, err := a.reader(ctx)
	if err != nil {
		return answer, err
	}
	defer c.Close()
	err = c.Ask(ctx, subject, request, &answer)
	return answer, err
}

func (a *app) lsCommand() *cobra.Command {
	var q query.List
	var status []string
	var refused, foreign bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List jobs, newest first", GroupID: "decide", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if refused {
				return a.listRefused(cmd.Context(), q.Limit)
			}
			if foreign {
				return a.listImported(q.Limit)
			}
			for _, s := range status {
				q.Status = append(q.Status, lifecycle.Status(s))
			}
			if err := knownStatuses(q.Status); err != nil {
				return err
			}
			return a.list(cmd.Context(), q)
		},
	}
	cmd.Flags().StringSliceVar(&status, "status", nil, "only these statuses")
	cmd.Flags().StringVar(&q.Pool, "pool", "", "only this pool")
	cmd.Flags().StringVar(&q.From, "proposer", "", "only this proposer's, as in agent:local")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "at most so many")
	cmd.Flags().BoolVar(&foreign, "imported", false, "jobs of another program that were imported as history")
	cmd.Flags().BoolVar(&refused, "refused", false, "proposals that were refused before they became jobs: who, why and how many")
	return cmd
}

func knownStatuses(list []lifecycle.Status) error {
	known := map[lifecycle.Status]bool{}
	var names []string
	for _, s := range lifecycle.Statuses[1:] {
		known[s] = true
		names = append(names, string(s))
	}
	for _, s := range list {
		if !known[s] {
			return usage("choose from "+strings.Join(names, ", "), "--status %q: there is no such status", s)
		}
	}
	return nil
}

func (a *app) inboxCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inbox", Short: "List what waits for a person", GroupID: "decide", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.list(cmd.Context(), query.List{Status: []lifecycle.Status{lifecycle.Pending}, Limit: 1000})
		},
	}
}

func (a *app) list(ctx context.Context, q query.List) error {
	c, _, _, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var list view.List
	if err := c.Ask(ctx, query.Jobs, q, &list); err != nil {
		return err
	}
	if err := a.fill(ctx, c, list.Words()...); err != nil {
		return err
	}
	if list.Jobs == nil {
		list.Jobs = []view.Job{}
	}
	return a.print(list, func(w io.Writer) { jobTable(w, list, time.Now()) })
}

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show JOB", Short: "Show all about one job; a unique prefix of its id will do", GroupID: "decide", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, l, s, err := a.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			j, err := detail(cmd.Context(), c, args[0])
			if unknown := (&bus.RemoteError{}); errors.As(err, &unknown) && unknown.Code == "unknown_job" {
				if shown, err := a.showImported(args[0]); shown || err != nil {
					return err
				}
			}
			if err != nil {
				return err
			}
			said, _, err := asks.Reader{Bus: c, Standing: host.NewStanding(c, s, l)}.Comments(cmd.Context(), j.Job.Job)
			if err != nil {
				return err
			}
			shown := shownJob{Detail: j, Comments: said}
			if err := a.fill(cmd.Context(), c, shown.words()...); err != nil {
				return err
			}
			return a.print(shown, func(w io.Writer) { showJob(w, shown) })
		},
	}
}

// detail reads a job and the output of its last attempt.
func detail(ctx context.Context, c *bus.Conn, id string) (view.Detail, error) {
	var j view.Detail
	if err := c.Ask(ctx, query.Get, query.GetRequest{Job: id}, &j); err != nil {
		return j, err
	}
	if j.Result == nil {
		return j, nil
	}
	var out, errs strings.Builder
	chunks := 0
	err := c.ReadOutput(ctx, j.Pool, j.Job.Job, len(j.Attempts), 0, func(_ int, stream string, _ int64, data []byte) error {
		chunks++
		if stream == "stderr" {
			errs.Write(data)
		} else {
			out.Write(data)
		}
		return nil
	})
	j.Result.Stdout, j.Result.Stderr = strings.ToValidUTF8(out.String(), "\uFFFD"), strings.ToValidUTF8(errs.String(), "\uFFFD")
	j.Result.NotKept = notKept(j.Attempts[len(j.Attempts)-1].Chunks, chunks)
	return j, err
}

// shownJob is a job with what people said about it.
type shownJob struct {
	view.Detail
	Comments []asks.Comment `json:"comments,omitempty"`
}

// words are the places of people's words in it.
func (j *shownJob) words() []*string {
	places := j.Detail.Words()
	for i := range j.Comments {
		places = append(places, &j.Comments[i].Text)
	}
	return places
}

// showJob writes a job for people, one fact a line.
func showJob(w io.Writer, j shownJob) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-11s "+format+"\n", append([]any{name}, args...)...)
	}
	line("job", "%s", j.Job.Job)
	line("status", "%s", statusText(j.Job))
	line("command", "%s", view.Command(j.Argv))
	line("in", "%s", view.Printable(j.Cwd))
	line("proposed by", "%s at %s, pool %s", view.Printable(j.Proposer), j.Created.Format(time.RFC3339), j.Pool)
	if j.Follows != (events.Follows{}) {
		line("follows", "job %s, as its %s", j.Follows.Job, j.Follows.As)
	}
	if j.Waived > 0 {
		line("waived", "a person says in event %d that what looks like a secret in it is none", j.Waived)
	}
	if j.Reason != "" {
		line("because", "%s", view.Printable(j.Reason))
	}
	if j.Ruling != nil {
		broad := ""
		if j.Ruling.Broad {
			broad = ", broad: its arguments can carry any code"
		}
		line("ruling", "%s (%s%s)", view.Printable(j.Ruling.Reason), strings.Trim(j.Ruling.Rule+", "+j.Ruling.Code, ", "), broad)
	}
	if j.Executor != "" {
		line("executor", "%s: who proposed it executes it, and no worker", j.Executor)
	}
	if r := j.Report; r != nil {
		line("reported", "exit %d, by the caller; nobody has checked it", r.ExitCode)
	}
	if a := j.Assessment; a != nil && a.Confirm != "" && j.Status == lifecycle.Pending {
		line("confirm", "each yes has to name the digest with --digest")
	}
	if j.Resolution != nil {
		line("digest", "%s", j.Resolution.Digest)
		line("would run", "%s sha256 %.16s… in %s", view.Printable(j.Resolution.Program.Path), j.Resolution.Program.SHA256, view.Printable(j.Resolution.Cwd))
		for _, f := range j.Resolution.Files {
			line("with", "%s sha256 %.16s…", view.Printable(f.Path), f.SHA256)
		}
	}
	for _, d := range j.Declines {
		line("declined", "by %s: %s", d.Worker, view.Printable(d.Reason))
	}
	for _, p := range j.Approvals {
		basis := p.Basis
		if p.Grant != "" {
			basis += " " + p.Grant
		}
		line("approved", "by %s (%s) at %s, good until %s%s", p.Actor, basis, p.At.Format(time.RFC3339), p.Expires.Format(time.RFC3339), unsafeNote(p.UnsafeSharedUser))
	}
	for _, t := range j.Attempts {
		walls := ""
		if len(t.Walls) > 0 {
			walls = ", walls: " + strings.Join(t.Walls, ", ")
		}
		line("attempt", "%d on %s at %s%s %s", t.Attempt, t.Worker, t.Started.Format(time.RFC3339), walls, fate(t))
	}
	for _, c := range j.Comments {
		line("comment", "by %s at %s: %s", c.By, c.At.Format(time.RFC3339), view.Printable(c.Text))
	}
	if j.Waiting != "" {
		line("waiting for", "%s", j.Waiting)
	}
	if j.Ending != "" {
		line("ended", "%s", view.Printable(j.Ending))
	}
	if r := j.Receipt; r != nil {
		line("receipt", "exit %d %s after %.3f s, ended by %s, %d process(es) left", r.ExitCode, r.Signal, float64(r.DurationMS)/1000, strings.Join(r.Means, " and "), r.Survivors)
	}
	showResult(w, j.Result)
}

// fate is how an attempt ended.
func fate(t view.Attempt) string {
	switch {
	case t.Late:
		return "lapsed, then " + t.Outcome
	case t.Lapsed:
		return "lapsed"
	}
	return t.Outcome
}

// named lists process ids.
func named(pids []int) string {
	if len(pids) == 0 {
		return ""
	}
	return ": " + strings.Trim(fmt.Sprint(pids), "[]")
}

func unsafeNote(unsafe bool) string {
	if unsafe {
		return ", where agents share the person's user"
	}
	return ""
}

func showResult(w io.Writer, r *view.Result) {
	if r == nil {
		return
	}
	fmt.Fprintf(w, "%-11s exit %d %s after %.3f s (user %.3f, system %.3f), %d KiB resident\n", "result", r.ExitCode, r.Signal, r.DurationS, r.UserS, r.SystemS, r.MaxRSSBytes/1024)
	if r.Error != "" {
		fmt.Fprintf(w, "%-11s %s\n", "error", view.Printable(r.Error))
	}
	if len(r.Means) > 0 {
		fmt.Fprintf(w, "%-11s by %s: %d process(es) left behind, %d killed, %d not ended%s\n", "tidied up", strings.Join(r.Means, " and "), r.LeftBehind, r.Killed, r.Survivors, named(r.SurvivorPID))
	}
	if r.NotKept > 0 {
		fmt.Fprintf(w, "%-11s %d chunks are no longer kept; their digest is in the log\n", "output", r.NotKept)
	}
	for _, s := range []struct {
		name, text string
		cut        int64
	}{{"stdout", r.Stdout, r.StdoutInfo.CutBytes}, {"stderr", r.Stderr, r.StderrInfo.CutBytes}} {
		if s.text == "" {
			continue
		}
		fmt.Fprintf(w, "%s:\n", s.name)
		for l := range strings.Lines(s.text) {
			fmt.Fprintf(w, "  %s\n", view.Printable(strings.TrimSuffix(l, "\n")))
		}
		if s.cut > 0 {
			fmt.Fprintf(w, "  (%d bytes were left out between head and tail)\n", s.cut)
		}
	}
}
