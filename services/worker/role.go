package worker

import (
	"context"
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/proc"
)

// Role is the worker.
type Role struct{ cfg Config }

var _ host.Role = (*Role)(nil)

// New makes the role with its defaults.
func New() *Role { return &Role{cfg: DefaultConfig()} }

// Name is the role's word on the command line.
func (*Role) Name() string { return "worker" }

// Power is the role that its actor must hold.
func (*Role) Power() events.Role { return events.RoleWorker }

// Section is its table of the configuration.
func (w *Role) Section() config.Section { return config.Section{Name: "worker", Into: &w.cfg} }

// Actor is the configured actor token.
func (w *Role) Actor() string { return w.cfg.Actor }

// Run takes jobs until ctx ends, drains, and returns after the last job's
// processes are gone.
func (w *Role) Run(ctx context.Context, env *host.Env) error {
	if w.cfg.Hide {
		if err := proc.Namespaces(); err != nil {
			return fmt.Errorf("start the worker: jobs cannot be kept from %s on this machine: %w; "+
				"allow user namespaces, or accept the risk with hide = false in [worker]", env.Layout.Dir, err)
		}
	}
	j, err := openJournal(env.Layout.WorkerState(w.cfg.Actor))
	if err != nil {
		return err
	}
	return newShift(w.cfg, env, j).run(ctx)
}
