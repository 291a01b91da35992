package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/proc"
)

// Supervisor is the role.
type Supervisor struct {
	cfg      Config
	projects projects
	shares   bool // the operator accepts that agents reach banksman's files
}

var _ host.Role = (*Supervisor)(nil)

// New makes the role with its defaults.
func New() *Supervisor {
	s := &Supervisor{cfg: DefaultConfig()}
	s.projects.Default = DefaultProject
	return s
}

// Name is the role's word on the command line.
func (*Supervisor) Name() string { return "supervisor" }

// Power is the role that its actor must hold.
func (*Supervisor) Power() events.Role { return events.RoleSupervisor }

// Section is its table of the configuration, with every project's.
func (s *Supervisor) Section() config.Section {
	return config.Section{Name: "supervisor", Into: &s.cfg, With: []config.Section{{Name: "projects", Into: &s.projects}}}
}

// Actor is the configured actor token.
func (s *Supervisor) Actor() string { return s.cfg.Actor }

// ShareUser accepts, for this process, that agents share the supervisor's user
// and could reach banksman's files. Every round says so.
func (s *Supervisor) ShareUser() { s.shares = true }

// StartedAgain turns this process into the steward of a round's tree, when that
// is what it was started for.
func (s *Supervisor) StartedAgain() { proc.StewardMain() }

// Run runs the enabled projects until ctx ends, drains, and returns after the
// last round's processes are gone.
func (s *Supervisor) Run(ctx context.Context, env *host.Env) error {
	s.cfg.Hide = s.cfg.Hide && !s.shares
	if s.cfg.Hide {
		if err := proc.Namespaces(env.Layout.Dir); err != nil {
			return fmt.Errorf("start the supervisor: agents cannot be kept from %s on this machine: %w; "+
				"allow user namespaces, or accept the risk with --unsafe-shared-user or hide = false in [supervisor]", env.Layout.Dir, err)
		}
	}
	enabled := map[string]Project{}
	for name, p := range s.projects.Tables {
		if !p.Enabled {
			continue
		}
		real, err := workDir(p.WorkDir, env.Layout.Private()...)
		if err != nil {
			return fmt.Errorf("project %s: %w", name, err)
		}
		p.WorkDir = real
		enabled[name] = *p
	}
	machine, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("start the supervisor: find this machine's name: %w", err)
	}
	return newShift(s.cfg, enabled, machine, env).run(ctx)
}

// stateDir is where a project's round files and logs lie.
func stateDir(env *host.Env, actor, project string) string {
	return filepath.Join(env.Layout.State(), "supervisor", actor, project)
}
