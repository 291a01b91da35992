package front

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/person"
)

// rootFlags find and open the root key.
type rootFlags struct {
	key        string
	passphrase string
}

func (f *rootFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.key, "root-key", "", "the root key's file (default: root.sign among the site's keys)")
	cmd.Flags().StringVar(&f.passphrase, "passphrase-file", "", "file whose first line opens the root key (default: ask on the terminal)")
}

func (f *rootFlags) load(l site.Layout) (*keys.Signer, error) {
	path := f.key
	if path == "" {
		path = l.SignKey(string(events.RoleRoot))
	}
	return keys.LoadSigner(path, askPassphrase(f.passphrase))
}

func (a *app) actorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "actor", Short: "Say who may do what", GroupID: "start", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.actorListCommand(), a.actorAddCommand(), a.actorRevokeCommand(), a.actorRotateCommand(),
		a.actorRetireCommand(), a.actorExportCommand())
	return cmd
}

func (a *app) actorListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the actors of the trust file in force", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, l, s, err := a.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			st := host.NewStanding(c, s, l)
			if err := st.Refresh(cmd.Context()); err != nil {
				return err
			}
			file := st.Book().Current()
			return a.print(file, func(w io.Writer) {
				var rows [][]string
				for _, x := range file.Actors {
					name := x.Name
					if x.OldSign != "" || x.OldLogin != "" {
						name += " (rotating)"
					}
					rows = append(rows, []string{x.Actor, name, joinRoles(x.Roles), strings.Join(x.Pools, ","), x.Login})
				}
				fmt.Fprintf(w, "trust file %d of %s\n", file.Version, file.Origin)
				table(w, []string{"ACTOR", "NAME", "ROLES", "POOLS", "LOG-IN KEY"}, rows)
			})
		},
	}
}

func joinRoles(roles []events.Role) string {
	var names []string
	for _, r := range roles {
		names = append(names, string(r))
	}
	return strings.Join(names, ",")
}

func (a *app) actorAddCommand() *cobra.Command {
	var root rootFlags
	var line events.Actor
	var roles []string
	var own string
	cmd := &cobra.Command{
		Use: "add ACTOR --role ROLE", Short: "Make an actor's keys and put it into the trust file", Args: cobra.ExactArgs(1),
		Long: "Make an actor's keys and put it into the trust file, at once and without dropping anybody.\nNeeds the root key. A person's signing key is guarded by --own-passphrase-file.",
		RunE: func(cmd *cobra.Command, args []string) error {
			line.Actor = args[0]
			if line.Name == "" {
				line.Name = args[0]
			}
			for _, r := range roles {
				if !slices.Contains(events.Roles, events.Role(r)) || r == string(events.RoleRoot) {
					return usage("choose from proposer, gate, person, admin, worker, supervisor, monitor, auditor, reader", "--role %q: there is no such role to give", r)
				}
				line.Roles = append(line.Roles, events.Role(r))
			}
			if len(line.Roles) == 0 {
				return usage("", "actor add %s: --role is required", args[0])
			}
			return a.amend(cmd.Context(), root, func(l site.Layout) (func(*events.TrustPublished) error, error) {
				if err := makeKeys(l, &line, own); err != nil {
					return nil, err
				}
				return func(t *events.TrustPublished) error { return person.AddActor(t, line) }, nil
			})
		},
	}
	root.add(cmd)
	cmd.Flags().StringSliceVar(&roles, "role", nil, "power to give; repeat for more")
	cmd.Flags().StringSliceVar(&line.Pools, "pool", nil, "bound a worker to these pools (default: all)")
	cmd.Flags().StringVar(&line.Name, "name", "", "name for people")
	cmd.Flags().StringVar(&own, "own-passphrase-file", "", "file whose first line guards a person's new signing key")
	return cmd
}

// makeKeys makes an actor's two keys among the site's.
func makeKeys(l site.Layout, line *events.Actor, own string) error {
	var passphrase []byte
	var err error
	if own != "" {
		if passphrase, err = keys.ReadPassphraseFile(own); err != nil {
			return err
		}
	}
	login, err := keys.GenerateLogin()
	if err != nil {
		return err
	}
	signer, err := keys.GenerateSigner()
	if err != nil {
		return err
	}
	line.Login, line.Sign = login.Public(), string(signer.Public())
	if err := keys.WriteLogin(l.LoginKey(line.Actor), login); err != nil {
		return err
	}
	return keys.WriteSigner(l.SignKey(line.Actor), signer, passphrase)
}

func (a *app) actorRevokeCommand() *cobra.Command {
	var root rootFlags
	cmd := &cobra.Command{
		Use: "revoke ACTOR", Short: "Take an actor out of the trust file; what it signed before stays valid", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.amend(cmd.Context(), root, func(site.Layout) (func(*events.TrustPublished) error, error) {
				return func(t *events.TrustPublished) error { return person.RevokeActor(t, args[0]) }, nil
			})
		},
	}
	root.add(cmd)
	return cmd
}

// amend publishes a changed trust file.
func (a *app) amend(ctx context.Context, root rootFlags, prepare func(site.Layout) (func(*events.TrustPublished) error, error)) error {
	l, s, c, err := a.person()
	if err != nil {
		return err
	}
	signer, err := root.load(l)
	if err != nil {
		return err
	}
	conn, err := a.connect(ctx, l, s, c.ActorName, events.RolePerson)
	if err != nil {
		return err
	}
	defer conn.Close()
	change, err := prepare(l)
	if err != nil {
		return err
	}
	desk := &person.Desk{Config: c, Layout: l, Bus: conn, Standing: host.NewStanding(conn, s, l)}
	file, err := desk.Amend(ctx, signer, change)
	if err != nil {
		return err
	}
	return a.print(file, func(w io.Writer) { fmt.Fprintf(w, "trust file %d is in force\n", file.Version) })
}

// person reads who decides from this folder.
func (a *app) person() (site.Layout, host.SiteConfig, person.Config, error) {
	c := person.DefaultConfig()
	l, s, err := a.site()
	if err != nil {
		return l, s, c, err
	}
	return l, s, c, config.Load(l.Config(), config.Section{Name: "person", Into: &c})
}

func (a *app) actorExportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "export FOLDER", Short: "Write the log-in keys and permissions for a stand-alone nats-server", Args: cobra.ExactArgs(1),
		Long: "Write one file per account with the actors of the trust file in force, for the includes of\ndeploy/nats/banksman.conf. The files hold public keys only; existing ones are replaced.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, l, s, err := a.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			st := host.NewStanding(c, s, l)
			if err := st.Refresh(cmd.Context()); err != nil {
				return err
			}
			b := host.DefaultBus()
			if err := config.Load(l.Config(), config.Section{Name: "bus", Into: &b}); err != nil {
				return err
			}
			users, err := grants.Users(*st.Book().Current(), b.Pools)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make the folder: %w", err)
			}
			for _, account := range grants.Accounts {
				path := filepath.Join(args[0], grants.FileName(account))
				if err := renameio.WriteFile(path, []byte(grants.UsersFile(users[account])), 0o644); err != nil {
					return fmt.Errorf("write %s: %w", path, err)
				}
			}
			a.say("wrote %d accounts of trust file %d to %s", len(grants.Accounts), st.Book().Current().Version, args[0])
			return nil
		},
	}
}
