package proposer

import (
	"context"
	"errors"
	"fmt"
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

// drain is how long open requests may take after the context has ended. A
// waiting request ends at once; only an append may still be under way.
const drain = 5 * time.Second

// Run answers requests until the context ends.
func (r *Role) Run(ctx context.Context, env *host.Env) error {
	listener, err := localsock.Listen(env.Layout.ProposerSocket())
	if err != nil {
		return fmt.Errorf("open the proposer's socket: %w", err)
	}
	d := &door{config: &r.config, env: env, ending: ctx}
	server := &http.Server{Handler: d.routes(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute}
	var wg sync.WaitGroup
	wg.Go(func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		if server.Shutdown(end) != nil {
			server.Close()
		}
	})
	env.Report(true, "")
	err = server.Serve(listener)
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the proposer's socket: %w", err)
}
