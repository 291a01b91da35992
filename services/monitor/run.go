package monitor

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/query"
)

// Role is the monitor.
type Role struct{ cfg Config }

var _ host.Role = (*Role)(nil)

// New makes the role with its defaults.
func New() *Role { return &Role{cfg: DefaultConfig()} }

// Name is the role's word on the command line.
func (*Role) Name() string { return "monitor" }

// Power is the role that its actor must hold.
func (*Role) Power() events.Role { return events.RoleMonitor }

// Section is its table of the configuration.
func (r *Role) Section() config.Section { return config.Section{Name: "monitor", Into: &r.cfg} }

// Actor is the configured actor token.
func (r *Role) Actor() string { return r.cfg.Actor }

// Run watches until ctx ends.
func (r *Role) Run(ctx context.Context, env *host.Env) error {
	tick := time.NewTicker(seconds(r.cfg.CheckS))
	defer tick.Stop()
	return newWatch(r.cfg, env, clock{now: time.Now, tick: tick.C}).run(ctx)
}

// clock is how time comes in.
type clock struct {
	now  func() time.Time
	tick <-chan time.Time
}

// statePath is where a replica's memory lies.
func statePath(env *host.Env) string {
	name := env.Actor
	if env.Instance != "" {
		name += "." + env.Instance // no actor has a dot in its name
	}
	return filepath.Join(env.Layout.State(), "monitor", name+".json")
}

// run reads the stream and decides, until ctx ends.
func (w *watch) run(ctx context.Context) error {
	if err := w.env.Standing.Refresh(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	if err := w.recall(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	defer w.env.Bus.Notify(w.onConnection)()
	stop, err := w.env.Bus.Serve(ctx, serviceName, "1.0.0", "Answers which alerts are open", map[string]bus.Endpoint{query.Alerts: w.list})
	var denied *bus.Denied
	switch {
	case errors.As(err, &denied):
		w.env.Log.Warn("questions about alerts are not answered", "error", err)
	case err != nil:
		return unlessEnded(ctx, err)
	default:
		defer stop()
	}
	return unlessEnded(ctx, w.follow(ctx))
}

// follow reads the stream beside the loop, and waits for both.
func (w *watch) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := make(chan events.Stored, 64)
	var reader sync.WaitGroup
	var lost error // why the stream is not read any more
	from := w.memory.Seq + 1
	reader.Go(func() {
		defer cancel()
		lost = w.env.Bus.Follow(ctx, from, events.PrefixStored+".>", func(st events.Stored) error {
			select {
			case stream <- st:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	err := w.loop(ctx, stream)
	cancel()
	reader.Wait()
	w.keep()
	return cmp.Or(err, lost)
}

// loop alone changes what the monitor remembers.
func (w *watch) loop(ctx context.Context, stream <-chan events.Stored) error {
	for {
		select {
		case st := <-stream:
			w.take(ctx, st)
			if len(stream) > 0 {
				continue
			}
		case <-w.clock.tick:
			w.due = true
		case <-ctx.Done():
			return nil
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
	}
}

// unlessEnded drops an error that only says that the run is over.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
