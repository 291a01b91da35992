package front

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/worker"
)

// workerVerbs are what can be done with workers beside running one.
func (a *app) workerVerbs() []*cobra.Command {
	return []*cobra.Command{a.workerListCommand(), a.workerDrainCommand(), a.workerOnceCommand()}
}

func (a *app) workerListCommand() *cobra.Command {
	var listen time.Duration
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the workers of the site and what they run", Args: cobra.NoArgs,
		Long: "List the workers of the site: those that have started and not taken leave, whether they are\nheard, and which jobs they say they run. A worker sends three heartbeats to a lease.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, l, s, err := a.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			list, err := worker.Sessions(cmd.Context(), c, host.NewStanding(c, s, l), listen, all)
			if err != nil {
				return err
			}
			if list == nil {
				list = []worker.Session{}
			}
			return a.print(map[string]any{"workers": list}, func(w io.Writer) { workerTable(w, list, time.Now()) })
		},
	}
	cmd.Flags().DurationVar(&listen, "listen", 6*time.Second, "how long to listen for heartbeats")
	cmd.Flags().BoolVar(&all, "all", false, "also list workers that have taken leave")
	return cmd
}

func workerTable(w io.Writer, list []worker.Session, now time.Time) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no worker runs; start one with 'banksman worker'")
		return
	}
	var rows [][]string
	for _, s := range list {
		state := "not heard"
		switch {
		case !s.Stopped.IsZero():
			state = "stopped: " + view.Printable(s.Reason)
		case s.Heard:
			state = "heard"
		}
		if s.Unsafe {
			state += ", shared user"
		}
		rows = append(rows, []string{
			s.Actor, s.Pool, s.Session, age(now.Sub(s.Started)), strconv.Itoa(len(s.Running)) + "/" + strconv.Itoa(s.Slots), state, view.Printable(strings.Join(s.Running, " ")),
		})
	}
	table(w, []string{"WORKER", "POOL", "SESSION", "AGE", "BUSY", "STATE", "JOBS"}, rows)
}

func (a *app) workerDrainCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "drain", Short: "Let the workers of this folder finish what they have and take nothing new", Args: cobra.NoArgs,
		Long: "Let every worker that runs from this folder finish what it has and take nothing new. A process\nof its own then ends; beside other roles the worker stays drained until the process is started\nagain. With --wait it returns once they have finished, or exits 75.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.layout()
			if err != nil {
				return err
			}
			asked, err := host.Drain(cmd.Context(), l)
			if err != nil {
				return err
			}
			if len(asked) == 0 {
				return &exit{code: ExitError, err: fmt.Errorf("drain the workers of %s: none runs here", l.Dir)}
			}
			finished, err := awaitDrained(cmd.Context(), l, wait)
			if err != nil {
				return err
			}
			err = a.print(map[string]any{"asked": asked, "finished": finished}, func(w io.Writer) {
				fmt.Fprintf(w, "asked to drain: %s\n", strings.Join(asked, ", "))
			})
			if err == nil && wait > 0 && !finished {
				err = &exit{code: ExitPending, err: fmt.Errorf("drain the workers of %s: jobs still run after %s; see 'banksman worker ls'", l.Dir, wait)}
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait until they have finished")
	return cmd
}

// awaitDrained waits until no worker of the folder has a job in hand.
func awaitDrained(ctx context.Context, l site.Layout, wait time.Duration) (bool, error) {
	limit, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		s, err := host.ReadStatus(ctx, l)
		if err != nil || host.Drained(s) {
			return err == nil, err
		}
		select {
		case <-limit.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

func (a *app) workerOnceCommand() *cobra.Command {
	var unsafe bool
	cmd := &cobra.Command{
		Use: "once", Short: "Run one job that waits for a start, and exit", Args: cobra.NoArgs,
		Long: "Run one job of the pool that is approved, due and waiting, and exit 0 when it has ended,\nwhatever became of it. Exits 75 when there is none. It may run beside other workers.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.layout()
			if err != nil {
				return err
			}
			log, err := a.log()
			if err != nil {
				return err
			}
			if !site.Exists(l) {
				return fmt.Errorf("run one job from %s: %w", l.Dir, host.ErrNoSite)
			}
			r := worker.New()
			r.TakeOne()
			if unsafe {
				r.ShareUser()
			}
			err = host.Run(cmd.Context(), host.Options{
				Layout: l, Command: r.Name(), Instance: onceInstance, Roles: []host.Role{r}, Version: host.Version(), Log: log, Hurry: a.hurry,
			})
			if err != nil {
				return err
			}
			job := r.Ran()
			err = a.print(map[string]string{"job": job}, func(w io.Writer) {
				if job == "" {
					fmt.Fprintln(w, "no job waits for a start")
					return
				}
				fmt.Fprintln(w, job)
			})
			if err == nil && job == "" {
				err = &exit{code: ExitPending}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&unsafe, "unsafe-shared-user", false, "run the job although it could reach banksman's own files, where user namespaces do not work")
	return cmd
}

// onceInstance tells the worker that runs one job apart from others of the folder.
const onceInstance = "once"
