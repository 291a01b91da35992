package proposer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/localsock"
)

// Role is the proposer.
type Role struct{ config Config }

// New makes the role with its defaults.
func New() *Role { return &Role{config: DefaultConfig()} }

// Name is "proposer".
func (r *Role) Name() string { return "proposer" }

// Power is the proposer's.
func (r *Role) Power() events.Role { return events.RoleProposer }

// Section is [proposer].
func (r *Role) Section() config.Section {
	return config.Section{Name: "proposer", Into: &r.config}
}

// Actor is the token that the proposer signs as.
func (r *Role) Actor() string { return r.config.ActorName }

// drain is how long an append that is under way may take after the context has
// ended.
const drain = 5 * time.Second

// Run answers requests until the context ends. Waiting requests end then; the
// others get the time of drain.
func (r *Role) Run(ctx context.Context, env *host.Env) error {
	d, err := newDoor(ctx, &r.config, env)
	if err != nil {
		return err
	}
	deaf, err := d.ears.listen(ctx, env.Bus)
	if err != nil {
		return err
	}
	defer deaf()
	listener, err := localsock.Listen(env.Layout.ProposerSocket())
	if err != nil {
		return fmt.Errorf("open the proposer's socket: %w", err)
	}
	if g := r.config.SocketGroup; g != "" {
		if err := localsock.Share(env.Layout.ProposerSocket(), g); err != nil {
			listener.Close()
			return fmt.Errorf("open the proposer's socket, socket_group in [proposer]: %w", err)
		}
	}
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler: d.routes(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return base }, ErrorLog: slog.NewLogLogger(env.Log.Handler(), slog.LevelWarn),
	}
	var telling sync.WaitGroup
	telling.Go(func() { d.ledger.run(base) })
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	env.Report(true, "")
	select {
	case err = <-served:
	case <-ctx.Done():
		end, cancel := context.WithTimeout(base, drain)
		defer cancel()
		if server.Shutdown(end) != nil {
			cut()
			server.Close()
		}
		err = <-served
	}
	cut()
	d.requests.Wait()
	telling.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the proposer's socket: %w", err)
}
