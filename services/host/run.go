package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/oklog/run"

	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
)

// Bus is a bus that runs in this process.
type Bus interface {
	// Use points a connection's configuration at the bus.
	Use(*bus.Config)
	// Watch reports the bus's health until the context ends.
	Watch(ctx context.Context, report func(ready bool, reason string)) error
	// Close shuts the bus down and waits for it.
	Close()
}

// StartBus starts a bus for a site; embed.Start is the one.
type StartBus func(ctx context.Context, l site.Layout, s SiteConfig, c BusConfig, log *slog.Logger) (Bus, error)

// Options say what a process runs.
type Options struct {
	Layout  site.Layout
	Command string // what the operator typed, such as "up"
	// Instance tells processes apart that run the same role from one folder.
	Instance string
	Roles    []Role
	Embed    StartBus // nil to join a bus
	Version  string
	Log      *slog.Logger
	// Hurry is closed to cancel what still runs while the roles drain; nil for
	// never.
	Hurry <-chan struct{}
	// Ready is called once, when every role is ready for the first time.
	Ready func()
}

// busName is the bus's line on the board.
const busName = "bus"

// garbagePercent lets garbage grow further than Go's default of 100 before it is
// collected. A role holds a few megabytes for good and makes much more for moments;
// under load a tenth of its processor time went into collecting.
const garbagePercent = 200

// Run runs the roles until ctx ends or one of them does. It returns nil after
// an orderly end.
func Run(ctx context.Context, o Options) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	p := &process{Options: o, bus: DefaultBus()}
	if err := p.configure(); err != nil {
		return err
	}
	unlock, err := lockRoles(o.Layout, o.Command, o.Instance, p.names())
	if err != nil {
		return err
	}
	defer unlock()
	p.board = newBoard(p.names(), func() {
		debug.FreeOSMemory() // what only the start needed
		if o.Ready != nil {
			o.Ready()
		}
	})
	stop, err := serveStatus(o.Layout, o.Command+o.Instance, p.board)
	if err != nil {
		return err
	}
	defer stop()
	defer keepServiceInformed(ctx, p.board, o.Log)()
	if o.Embed != nil {
		if p.embedded, err = o.Embed(ctx, o.Layout, p.site, p.bus, o.Log.With("role", busName)); err != nil {
			return err
		}
		defer p.embedded.Close()
	}
	return p.run(ctx)
}

// process is one running process.
type process struct {
	Options
	site     SiteConfig
	bus      BusConfig
	board    *board
	embedded Bus // nil when joined
}

func (p *process) names() []string {
	var names []string
	if p.Embed != nil {
		names = append(names, busName)
	}
	for _, r := range p.Roles {
		names = append(names, r.Name())
	}
	return names
}

func (p *process) configure() error {
	sections := []config.Section{{Name: "site", Into: &p.site}, {Name: "bus", Into: &p.bus}}
	for _, r := range p.Roles {
		sections = append(sections, r.Section())
	}
	return config.Load(p.Layout.Config(), sections...)
}

// run makes the peers and runs the group.
func (p *process) run(signalled context.Context) error {
	ctx := context.WithoutCancel(signalled)
	var group run.Group
	// Peers drain in the order in which they were added, each after the one
	// before has ended: what feeds the others first, the auditor last, so that it
	// seals what they said when they took leave.
	peer := func(name string, do func(context.Context) error) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		group.Add(func() error {
			defer close(ended)
			err := do(ctx)
			p.board.set(name, false, "stopped")
			if err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}, func(error) {
			cancel()
			<-ended
		})
	}
	stopped := make(chan struct{})
	group.Add(func() error {
		select {
		case <-signalled.Done():
		case <-stopped:
		}
		return nil
	}, func(error) { close(stopped) })
	if p.embedded != nil {
		peer(busName, func(ctx context.Context) error { return p.embedded.Watch(ctx, p.report(busName)) })
	}
	for _, r := range p.Roles {
		peer(r.Name(), func(ctx context.Context) error { return p.runRole(ctx, r) })
	}
	return group.Run()
}

func (p *process) report(name string) func(bool, string) {
	return func(ready bool, reason string) { p.board.set(name, ready, reason) }
}

// runRole connects a role and runs it.
func (p *process) runRole(ctx context.Context, r Role) error {
	report := p.report(r.Name())
	report(false, "waiting for the bus")
	env, err := p.env(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer env.Bus.Close()
	report(false, "starting")
	env.Report, env.Drain, env.Hurry = report, p.board.drained, p.Hurry
	if err := r.Run(ctx, env); err != nil || r.Name() != drainable || !p.board.draining() {
		return err
	}
	if len(p.names()) > 1 { // the others go on
		report(false, drainedReason)
		<-ctx.Done()
	}
	return nil
}

// env connects a role's actor and gives it what it works with.
func (p *process) env(ctx context.Context, r Role) (*Env, error) {
	log := p.Log.With("role", r.Name())
	c := Connection{Layout: p.Layout, Site: p.site, Actor: r.Actor(), Power: r.Power(), Log: log}
	if p.embedded != nil {
		c.Use = p.embedded.Use
	}
	conn, err := c.Dial(ctx)
	if err != nil {
		return nil, err
	}
	signer, err := keys.LoadSigner(p.Layout.SignKey(r.Actor()), nil)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Env{
		Layout: p.Layout, Site: p.site, Actor: r.Actor(), Instance: p.Instance, Version: p.Version, Log: log,
		Bus: conn, Append: conn.Appender(Signing{signer}), Standing: NewStanding(conn, p.site, p.Layout),
	}, nil
}
