package front

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/host/embed"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/worker"
)

func (a *app) upCommand() *cobra.Command {
	var f initFlags
	var without []string
	var unsafe bool
	cmd := &cobra.Command{
		Use: "up", Short: "Run the bus and every role in this process", GroupID: "start", Args: cobra.NoArgs,
		Long: "Run the bus and every role in this process, until a signal drains it. On an empty folder\nit makes a site first, with the same flags as init; on a site it takes none of them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.layout()
			if err != nil {
				return err
			}
			if site.Exists(l) {
				if given := f.given(cmd); len(given) > 0 {
					return usage("leave it out; they are for making a site", "%s: %s holds a site already", strings.Join(given, ", "), l.Dir)
				}
			} else if _, err := a.makeSite(l, f); err != nil {
				return err
			}
			all := roles()
			if unsafe {
				shareUser(all)
			}
			chosen, err := leaveOut(all, without)
			if err != nil {
				return err
			}
			return a.host(cmd.Context(), l, "up", embed.Start, chosen)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&unsafe, "unsafe-shared-user", false, "run jobs although they could reach banksman's own files, where user namespaces do not work")
	cmd.Flags().StringSliceVar(&without, "without", nil, "roles to leave out, such as worker")
	return cmd
}

// shareUser gives up the wall between jobs and banksman's files.
func shareUser(all []host.Role) {
	for _, r := range all {
		if s, ok := r.(interface{ ShareUser() }); ok {
			s.ShareUser()
		}
	}
}

// leaveOut leaves roles out by name.
func leaveOut(all []host.Role, names []string) ([]host.Role, error) {
	var known []string
	for _, r := range all {
		known = append(known, r.Name())
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, usage("choose from "+strings.Join(known, ", "), "--without %q: there is no such role", n)
		}
	}
	return slices.DeleteFunc(all, func(r host.Role) bool { return slices.Contains(names, r.Name()) }), nil
}

// host runs roles in this process and says where things are once they are
// ready.
func (a *app) host(ctx context.Context, l site.Layout, command string, start host.StartBus, roles []host.Role) error {
	log, err := a.log()
	if err != nil {
		return err
	}
	if !site.Exists(l) {
		return fmt.Errorf("run %s from %s: %w", command, l.Dir, host.ErrNoSite)
	}
	ready := make(chan struct{})
	announced := make(chan struct{})
	watch, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		<-announced
	}()
	go func() {
		defer close(announced)
		select {
		case <-ready:
			a.announce(l, command)
		case <-watch.Done():
		}
	}()
	return host.Run(ctx, host.Options{
		Layout: l, Command: command, Roles: roles, Embed: start, Version: host.Version(), Log: log, Hurry: a.hurry,
		Ready: func() { close(ready) },
	})
}

// announce prints where things are and what to try.
func (a *app) announce(l site.Layout, command string) {
	if command != "up" {
		a.say("%s is ready", command)
		return
	}
	fmt.Fprintf(a.out, `banksman is up in %[1]s
  policy    %[2]s
  log       %[3]s
  agents    %[4]s
  nats      XDG_CONFIG_HOME=%[5]s nats --context reader sub 'bml.>'

Try, in another terminal:
  banksman run%[6]s -- git --version
  banksman inbox%[6]s
  banksman audit verify%[6]s
`, l.Dir, l.Policy(), l.AuditLog(), l.ProposerSocket(), l.NATS(), a.dirFlag())
}

// roleCommands run one role each.
func (a *app) roleCommands() []*cobra.Command {
	var list []*cobra.Command
	add := func(name, short string, start host.StartBus, roles []host.Role) {
		list = append(list, &cobra.Command{
			Use: name, Short: short, GroupID: "roles", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				l, err := a.layout()
				if err != nil {
					return err
				}
				return a.host(cmd.Context(), l, name, start, roles)
			},
		})
	}
	add("bus", "Host the embedded bus", embed.Start, nil)
	for _, r := range roles() {
		add(r.Name(), "Run the "+r.Name(), nil, []host.Role{r})
		if _, ok := r.(*worker.Role); ok {
			list[len(list)-1].AddCommand(a.workerVerbs()...)
		}
	}
	return list
}

func (a *app) statusCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "status", Short: "Say which roles run here and whether they are ready", GroupID: "start", Args: cobra.NoArgs,
		Long: "Say which roles run from this folder and whether they are ready. Exits 0 when all are,\nelse 75. With --wait it keeps asking, also while nothing runs yet.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.layout()
			if err != nil {
				return err
			}
			s, err := waitReady(cmd.Context(), l, wait)
			if err != nil {
				return err
			}
			err = a.print(s, func(w io.Writer) { statusTable(w, l, s) })
			if err == nil && !s.Ready {
				err = &exit{code: ExitPending}
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for readiness")
	return cmd
}

// statusEvery is how often a waiting status asks again; a process that is not
// there yet cannot call back.
const statusEvery = 50 * time.Millisecond

func waitReady(ctx context.Context, l site.Layout, wait time.Duration) (host.Status, error) {
	limit, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		s, err := host.ReadStatus(ctx, l)
		if err != nil || s.Ready || limit.Err() != nil {
			return s, err
		}
		select {
		case <-limit.Done():
		case <-tick.C:
		}
	}
}

func statusTable(w io.Writer, l site.Layout, s host.Status) {
	if len(s.Roles) == 0 {
		fmt.Fprintf(w, "nothing runs from %s; start it with 'banksman up'\n", l.Dir)
		return
	}
	var rows [][]string
	for _, r := range s.Roles {
		state := "not ready"
		if r.Ready {
			state = "ready"
		}
		rows = append(rows, []string{r.Role, state, age(time.Since(r.Since)), r.Reason})
	}
	table(w, []string{"ROLE", "STATE", "SINCE", "REASON"}, rows)
}

func (a *app) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use: "health", Short: "Exit 0 when everything that runs here is ready, for container health checks", GroupID: "start", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.layout()
			if err != nil {
				return err
			}
			s, err := host.ReadStatus(cmd.Context(), l)
			if err != nil {
				return err
			}
			for _, r := range s.Roles {
				if !r.Ready {
					a.say("%s is not ready: %s", r.Role, r.Reason)
				}
			}
			if !s.Ready {
				return &exit{code: ExitError}
			}
			return nil
		},
	}
}
