package host

import (
	"context"
	"log/slog"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
)

// Role is one of the powers that a process can run.
type Role interface {
	// Name is the role's word on the command line and on the board.
	Name() string
	// Power is the role that the trust file must give to its actor.
	Power() events.Role
	// Section is its table of the configuration, defaults filled in.
	Section() config.Section
	// Actor is the actor token that the configuration names.
	Actor() string
	// Run works until the context ends, drains, and returns after everything
	// that it started has ended.
	Run(ctx context.Context, env *Env) error
}

// StartsItselfAgain is a role that starts its own binary again to watch over
// what it runs. StartedAgain is called before anything else: in such a process
// it does the watching and never returns, in any other it does nothing.
type StartsItselfAgain interface{ StartedAgain() }

// Env is what a role works with.
type Env struct {
	Layout   site.Layout
	Site     SiteConfig
	Actor    string
	Instance string // tells replicas from one folder apart; empty for the first
	Version  string
	Log      *slog.Logger
	Bus      *bus.Conn
	Append   *bus.Appender
	Standing *standing.Standing
	// Report sets the role's line on the board. A role is not ready until it
	// has said so; reason says why not, or warns.
	Report func(ready bool, reason string)
	// Drain is closed when somebody asks a worker to finish what it has and take
	// nothing new, without an end to its patience.
	Drain <-chan struct{}
	// Hurry is closed when, after the context has ended, what is still running is
	// to be cancelled at once.
	Hurry <-chan struct{}
}
