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

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/texts"
	"github.com/banksman/banksman/services/internal/view"
)

func (a *app) alertCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "alert", Short: "Look at what the monitor has found", GroupID: "agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.alertListCommand())
	return cmd
}

func (a *app) alertListCommand() *cobra.Command {
	var q query.AlertsRequest
	cmd := &cobra.Command{
		Use: "ls", Short: "List open alerts, the worst first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask[query.AlertList](cmd.Context(), a, query.Alerts, q)
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { alertTable(w, list, time.Now()) })
		},
	}
	cmd.Flags().BoolVar(&q.All, "all", false, "cleared ones too, as far as the monitor remembers them")
	cmd.Flags().StringVar(&q.Project, "project", "", "only this project")
	return cmd
}

func alertTable(w io.Writer, list query.AlertList, now time.Time) {
	if len(list.Alerts) == 0 {
		fmt.Fprintln(w, "no alerts")
		return
	}
	var rows [][]string
	for _, v := range list.Alerts {
		state := v.State
		if v.AckBy != "" && v.ClearedAt.IsZero() {
			state += " by " + v.AckBy
		}
		rows = append(rows, []string{v.Severity, view.Printable(v.Alert), state, age(now.Sub(v.RaisedAt)), view.Printable(v.Summary)})
	}
	table(w, []string{"SEVERITY", "ALERT", "STATE", "AGE", "WHAT"}, rows)
}

// scene is everything that watch shows, each part as far as its role answers.
type scene struct {
	At     time.Time       `json:"at"`
	Status host.Status     `json:"status"`
	Alerts query.AlertList `json:"alerts"`
	Loops  query.LoopList  `json:"loops"`
	Jobs   view.List       `json:"jobs"`
	Away   []string        `json:"away,omitempty"` // parts that nobody answers for, and why
}

const (
	// watchEvery is how often watch looks although no event has come: roles
	// and ages change without one.
	watchEvery = 2 * time.Second
	// watchRest is the least time between two looks, so that a busy site is
	// not asked at every event.
	watchRest = 250 * time.Millisecond
	// watchJobs is how many jobs are shown.
	watchJobs = 20
	// clearScreen moves to the upper left corner and erases what is below.
	clearScreen = "\x1b[H\x1b[J"
)

func (a *app) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Show roles, alerts, projects and open jobs, and keep it current", GroupID: "decide", Args: cobra.NoArgs,
		Long: "Show roles, alerts, projects and jobs that are not over. On a terminal it is kept\ncurrent until you press Ctrl-C; otherwise, and with --json, it is printed once.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.watch(cmd.Context()) },
	}
}

func (a *app) watch(ctx context.Context) error {
	c, l, s, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r := loops.Reader{Bus: c, Standing: host.NewStanding(c, s, l)}
	if a.json || !terminal(a.out) {
		v := look(ctx, c, r, l)
		return a.print(v, func(w io.Writer) { showScene(w, v) })
	}
	moved := make(chan struct{}, 1)
	stop, err := c.Live(ctx, events.PrefixStored+".>", func(events.Stored) {
		select {
		case moved <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		v := look(ctx, c, r, l)
		if ctx.Err() != nil {
			return nil
		}
		var page strings.Builder
		showScene(&page, v)
		fmt.Fprint(a.out, clearScreen, strings.ReplaceAll(page.String(), "\n", "\x1b[K\n"))
		select {
		case <-time.After(watchRest):
		case <-ctx.Done():
			return nil
		}
		select {
		case <-moved:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// terminal says whether a person looks at what is written.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// look asks everybody.
func look(ctx context.Context, c *bus.Conn, r loops.Reader, l site.Layout) scene {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	v := scene{At: time.Now().UTC(), Alerts: query.AlertList{Alerts: []query.AlertView{}}, Jobs: view.List{Jobs: []view.Job{}}}
	away := func(part string, err error) {
		if errors.Is(err, bus.ErrNoResponder) {
			v.Away = append(v.Away, part+": nobody answers; is the role running?")
		} else if err != nil {
			v.Away = append(v.Away, part+": "+err.Error())
		}
	}
	var err error
	v.Status, err = host.ReadStatus(ctx, l)
	away("roles", err)
	away("alerts", c.Ask(ctx, query.Alerts, query.AlertsRequest{}, &v.Alerts))
	v.Loops, err = loopList(ctx, c, r, nil)
	away("projects", err)
	var open []lifecycle.Status
	for _, s := range lifecycle.Statuses[1:] {
		if !s.Final() {
			open = append(open, s)
		}
	}
	away("jobs", c.Ask(ctx, query.Jobs, query.List{Status: open, Limit: watchJobs}, &v.Jobs))
	away("texts", texts.Reader{Bus: c, Standing: r.Standing}.Fill(ctx, v.Jobs.Words()...))
	return v
}

func showScene(w io.Writer, v scene) {
	fmt.Fprintf(w, "banksman at %s\n\n", v.At.Local().Format(time.TimeOnly))
	var rows [][]string
	for _, r := range v.Status.Roles {
		state := "not ready"
		if r.Ready {
			state = "ready"
		}
		rows = append(rows, []string{r.Role, state, age(v.At.Sub(r.Since)), clip(view.Printable(r.Reason), 100)})
	}
	if len(rows) == 0 {
		fmt.Fprintln(w, "no role runs from this folder")
	} else {
		table(w, []string{"ROLE", "STATE", "SINCE", "REASON"}, rows)
	}
	fmt.Fprintln(w)
	alertTable(w, v.Alerts, v.At)
	fmt.Fprintln(w)
	if len(v.Loops.Loops) > 0 {
		loopTable(w, v.Loops)
		fmt.Fprintln(w)
	}
	jobTable(w, v.Jobs, v.At)
	for _, why := range v.Away {
		fmt.Fprintf(w, "\n%s\n", view.Printable(why))
	}
}
