package worker

import (
	"context"
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/site"
)

// Role is the worker.
type Role struct {
	cfg    Config
	shares bool // the operator accepts that jobs reach banksman's files
	single bool
	ran    string
}

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

// ShareUser accepts, for this process, that jobs share the worker's user and
// could reach banksman's files. Every resolution says so, and so does the board.
func (w *Role) ShareUser() { w.shares = true }

// Run takes jobs until ctx ends, drains, and returns after the last job's
// processes are gone.
func (w *Role) Run(ctx context.Context, env *host.Env) error {
	w.cfg.Hide = w.cfg.Hide && !w.shares
	if w.cfg.Hide {
		if err := proc.Namespaces(env.Layout.Dir); err != nil {
			return fmt.Errorf("start the worker: jobs cannot be kept from %s on this machine: %w; "+
				"allow user namespaces, or accept the risk with --unsafe-shared-user or hide = false in [worker]", env.Layout.Dir, err)
		}
	}
	if w.cfg.reaches() {
		if _, err := proc.Landlock(); err != nil {
			return fmt.Errorf("start the worker: jobs cannot be kept to reach_read and reach_write on this machine: %w; "+
				"run it on a newer kernel, or leave both keys of [worker] empty", err)
		}
	}
	j, err := openJournal(attemptsOf(env.Layout, w.cfg.Actor, env.Instance))
	if err != nil {
		return err
	}
	s := newShift(w.cfg, env, j)
	s.single = w.single
	defer func() { w.ran = s.ran }()
	return s.run(ctx)
}

// attemptsOf is the folder of a replica's attempts. Replicas from one folder
// keep theirs apart: a worker takes what it finds at its start for what its own
// earlier life has left, and ends it.
func attemptsOf(l site.Layout, actor, instance string) string {
	if instance != "" {
		actor += "." + instance // no actor has a dot in its name
	}
	return l.WorkerState(actor)
}
