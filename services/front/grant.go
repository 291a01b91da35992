package front

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/grant"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/permits"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/person"
)

// grantView is a grant for people and programs. Members are only ever added.
type grantView struct {
	Grant   string            `json:"grant"`
	State   string            `json:"state"` // live, spent, expired or revoked
	Scope   events.GrantScope `json:"scope"`
	By      string            `json:"by"`
	Reason  string            `json:"reason"`
	Given   time.Time         `json:"given"`
	Expires time.Time         `json:"expires"`
	Uses    int               `json:"uses"`
	Used    []grantUse        `json:"used"`
	Revoked string            `json:"revoked,omitempty"` // by whom and why
}

type grantUse struct {
	Job string    `json:"job"`
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
}

func viewGrant(g grant.Grant, now time.Time) grantView {
	v := grantView{Grant: g.ID, State: string(g.Status), By: g.GivenBy, Given: g.GivenAt.UTC(), Expires: g.Expires().UTC(), Used: []grantUse{}}
	if g.Given != nil {
		v.Scope, v.Reason, v.Uses = g.Given.Scope, g.Given.Reason, g.Given.Uses
	}
	if g.Status == grant.Live && !now.Before(g.Expires()) {
		v.State = "expired"
	}
	for _, u := range g.Uses {
		v.Used = append(v.Used, grantUse{Job: u.Job, Seq: u.Seq, At: u.At.UTC()})
	}
	if g.Status == grant.Revoked {
		v.Revoked = g.RevokedBy + ": " + g.Reason
	}
	return v
}

// covers says in words what a scope covers.
func covers(s events.GrantScope) string {
	text := view.Command(append([]string{s.Program}, s.Args...))
	if !s.Exact {
		text += " ..."
	}
	text += " in " + strings.Join(s.Roots, ", ")
	for _, part := range []struct{ name, value string }{{"pool", s.Pool}, {"for", s.Proposer}, {"project", s.Project}} {
		if part.value != "" {
			text += ", " + part.name + " " + part.value
		}
	}
	return view.Printable(text)
}

func (a *app) grantCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "grant", Short: "Say yes in advance to a bounded kind of command", GroupID: "decide", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.grantAddCommand(), a.grantListCommand(), a.grantRevokeCommand())
	return cmd
}

func (a *app) grantAddCommand() *cobra.Command {
	g := events.GrantGiven{Uses: 1}
	var file string
	var valid time.Duration
	cmd := &cobra.Command{
		Use: "add --for DURATION --root DIR --reason TEXT -- PROGRAM [ARGUMENT...]", Short: "Give a grant, signed with your key", Args: needCommand,
		Long: "Give a grant: jobs of this program whose first arguments are these run without asking again,\nwhere policy asks for one person, in the folders named, until the time or the uses are up. It\nnever covers what policy denies, what needs more than one person, an option that --flag does\nnot list, a program that jobs can rewrite, or what you propose yourself.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if valid <= 0 || g.Reason == "" || len(g.Scope.Roots) == 0 {
				return usage("see 'banksman grant add --help'", "grant add: --for, --root and --reason are required")
			}
			g.Scope.Program, g.Scope.Args, g.ValidS = args[0], args[1:], wholeSeconds(valid)
			return a.atDesk(cmd.Context(), file, func(d *person.Desk, c *bus.Conn) error {
				a.say("about to give a grant of %d use(s) for %s: %s", g.Uses, valid, covers(g.Scope))
				given, err := d.Give(cmd.Context(), g)
				if err != nil {
					return err
				}
				v := viewGrant(given, time.Now())
				if err := a.fill(cmd.Context(), c, &v.Reason); err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) { fmt.Fprintln(w, v.Grant) })
			})
		},
	}
	passphraseFlag(cmd, &file)
	flags := cmd.Flags()
	flags.DurationVar(&valid, "for", 0, "how long it counts (required)")
	flags.IntVar(&g.Uses, "uses", 1, "how many jobs it may approve")
	flags.StringArrayVar(&g.Scope.Roots, "root", nil, "folder that the working folder must lie in; repeat for more (required)")
	flags.StringArrayVar(&g.Scope.Flags, "flag", nil, "pattern of an option that may follow; repeat for more")
	flags.BoolVar(&g.Scope.Exact, "exact", false, "take no argument beyond those given")
	flags.StringVar(&g.Scope.Pool, "pool", "", "only jobs of this pool")
	flags.StringVar(&g.Scope.Proposer, "proposer", "", "only jobs of this proposer, such as agent:claude or a round, agent:shop-12")
	flags.StringVar(&g.Scope.Project, "project", "", "only jobs of this project's rounds")
	flags.StringVar(&g.Reason, "reason", "", "why, for the record (required)")
	return cmd
}

func (a *app) grantListCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List grants that count, and what used them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := a.listGrants(cmd.Context(), all)
			if err != nil {
				return err
			}
			return a.print(map[string][]grantView{"grants": list}, func(w io.Writer) { grantTable(w, list) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those too that are spent, expired or revoked")
	return cmd
}

func (a *app) listGrants(ctx context.Context, all bool) ([]grantView, error) {
	c, l, s, err := a.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	keeper := &permits.Keeper{Reader: permits.Reader{Bus: c, Standing: host.NewStanding(c, s, l)}}
	known, err := keeper.All(ctx)
	if err != nil {
		return nil, err
	}
	list := []grantView{}
	for _, g := range known {
		v := viewGrant(g, time.Now())
		if g.Status != grant.None && (all || v.State == string(grant.Live)) {
			list = append(list, v)
		}
	}
	var places []*string
	for i := range list {
		places = append(places, &list[i].Reason, &list[i].Revoked)
	}
	return list, a.fill(ctx, c, places...)
}

func grantTable(w io.Writer, list []grantView) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no grants")
		return
	}
	var rows [][]string
	for _, v := range list {
		rows = append(rows, []string{v.Grant, v.State, fmt.Sprintf("%d/%d", len(v.Used), v.Uses), v.Expires.Format(time.RFC3339), v.By, clip(covers(v.Scope), 70), clip(view.Printable(v.Reason), 50)})
	}
	table(w, []string{"GRANT", "STATE", "USED", "UNTIL", "BY", "COVERS", "WHY"}, rows)
}

func (a *app) grantRevokeCommand() *cobra.Command {
	var file, reason string
	cmd := &cobra.Command{
		Use: "revoke GRANT --reason TEXT", Short: "Take a grant back at once", Args: cobra.ExactArgs(1),
		Long: "Take a grant back. It approves nothing any more, and a job that it has approved and that has\nnot started does not start.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return usage("say why; it goes on record", "grant revoke %s: --reason is required", args[0])
			}
			return a.atDesk(cmd.Context(), file, func(d *person.Desk, c *bus.Conn) error {
				g, err := d.TakeBack(cmd.Context(), args[0], reason)
				if err != nil {
					return err
				}
				v := viewGrant(g, time.Now())
				if err := a.fill(cmd.Context(), c, &v.Reason, &v.Revoked); err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", v.Grant, v.State) })
			})
		},
	}
	passphraseFlag(cmd, &file)
	cmd.Flags().StringVar(&reason, "reason", "", "why (required)")
	return cmd
}
