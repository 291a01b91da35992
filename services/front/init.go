package front

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/approver"
	"github.com/banksman/banksman/services/auditor"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/monitor"
	"github.com/banksman/banksman/services/person"
	"github.com/banksman/banksman/services/proposer"
	"github.com/banksman/banksman/services/supervisor"
	"github.com/banksman/banksman/services/worker"
)

// initFlags are how init, and up on an empty folder, make a site.
type initFlags struct {
	passphraseFile string
	noPassphrase   bool
	policyFile     string
	address        address
}

func (f *initFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.passphraseFile, "passphrase-file", "", "file whose first line guards the root and personal keys")
	cmd.Flags().BoolVar(&f.noPassphrase, "no-passphrase", false, "leave the root and personal keys unencrypted")
	cmd.Flags().StringVar(&f.policyFile, "policy", "", "policy to start with (default: the starter policy)")
	f.address.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("passphrase-file", "no-passphrase")
}

// given names the flags that were used.
func (f *initFlags) given(cmd *cobra.Command) []string {
	var names []string
	for _, n := range []string{"passphrase-file", "no-passphrase", "policy", "listen", "bus-host"} {
		if cmd.Flags().Changed(n) {
			names = append(names, "--"+n)
		}
	}
	return names
}

func (a *app) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use: "init", Short: "Make a site: its keys, configuration and starter policy", GroupID: "start", Args: cobra.NoArgs,
		Long: "Make a site in a folder that is empty or not there yet. Without --passphrase-file or\n--no-passphrase it asks twice on the terminal for the passphrase of the root and\npersonal keys. Nothing is ever overwritten.",
		RunE: func(*cobra.Command, []string) error {
			l, err := a.layout()
			if err != nil {
				return err
			}
			plan, err := a.makeSite(l, f)
			if err != nil {
				return err
			}
			return a.print(map[string]string{"dir": l.Dir, "origin": plan.Origin, "person": plan.Person, "root_key": string(plan.RootKey())}, func(w io.Writer) {
				fmt.Fprintf(w, "Made site %s in %s\n\n  configuration  %s\n  policy         %s\n  you            %s (%s), person and admin\n\n", plan.Origin, l.Dir, l.Config(), l.Policy(), plan.Person, plan.Name)
				fmt.Fprintf(w, "The root key signs who may do what. Nothing needs it to run; take it off this machine:\n\n  mv %s SOMEWHERE-SAFE\n\nStart with: banksman up%s\n", l.SignKey("root"), a.dirFlag())
			})
		},
	}
	f.add(cmd)
	return cmd
}

// dirFlag repeats --dir in commands that are suggested.
func (a *app) dirFlag() string {
	if a.dir == "" {
		return ""
	}
	return " --dir " + a.dir
}

// makeSite makes a site; nothing is asked or written when the folder is taken.
func (a *app) makeSite(l site.Layout, f initFlags) (*site.Plan, error) {
	if err := site.Free(l); err != nil {
		return nil, err
	}
	text, err := f.policy(l)
	if err != nil {
		return nil, err
	}
	listen, url, err := f.address.choose()
	if err != nil {
		return nil, err
	}
	passphrase, err := f.passphrase(a.in, a.err)
	if err != nil {
		return nil, err
	}
	plan, err := site.NewPlan(personName())
	if err != nil {
		return nil, err
	}
	c := site.Contents{Policy: text, Passphrase: passphrase, BusURL: url, BusHosts: f.address.hosts, Now: time.Now()}
	c.Config = siteConfig(plan, listen, url, f.address.hosts)
	return plan, plan.Create(l, c)
}

func (f *initFlags) policy(l site.Layout) ([]byte, error) {
	if f.policyFile == "" {
		return policy.Starter(), nil
	}
	text, err := os.ReadFile(f.policyFile)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	_, err = policy.Parse(f.policyFile, text, host.PolicyEnv(l))
	return text, err
}

func (f *initFlags) passphrase(in *os.File, out io.Writer) ([]byte, error) {
	if f.noPassphrase {
		return nil, nil
	}
	if f.passphraseFile != "" {
		return keys.ReadPassphraseFile(f.passphraseFile)
	}
	return keys.AskNewPassphrase(in, out)
}

func personName() string {
	u, err := user.Current()
	if err != nil {
		return "operator"
	}
	if name, _, _ := strings.Cut(u.Name, ","); name != "" {
		return name
	}
	return u.Username
}

// freePort finds a loopback address that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port for the bus: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// sections are every table of the configuration with its defaults.
func sections() ([]config.Section, *host.SiteConfig, *host.BusConfig, *person.Config) {
	s, b, p := &host.SiteConfig{}, host.DefaultBus(), person.DefaultConfig()
	list := []config.Section{{Name: "site", Into: s}, {Name: "bus", Into: &b}}
	for _, r := range roles() {
		list = append(list, r.Section())
	}
	return append(list, config.Section{Name: "person", Into: &p}), s, &b, &p
}

// siteConfig is the configuration of a new site, every default written out.
func siteConfig(plan *site.Plan, listen, url string, hosts []string) []byte {
	list, s, b, p := sections()
	s.Origin, s.RootKey, s.BusURL = plan.Origin, string(plan.RootKey()), url
	b.Listen, b.Hosts = listen, append(b.Hosts, hosts...)
	p.ActorName = plan.Person
	head := "# Configuration of a banksman site. Every key has its default or what init chose.\n# 'banksman config check' reads it again; unknown keys are refused.\n\n"
	return append([]byte(head), config.Render(list...)...)
}

// roles are all that up runs beside the bus, in the order of the board.
func roles() []host.Role {
	return []host.Role{proposer.New(), approver.New(), worker.New(), supervisor.New(), monitor.New(), auditor.New()}
}
