package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/trust"
)

// Connection is one actor's way to the bus.
type Connection struct {
	Layout site.Layout
	Site   SiteConfig
	Actor  string
	Power  events.Role
	Log    *slog.Logger
	Once   bool              // give up on the first failure
	Use    func(*bus.Config) // points it at a bus in this process; nil to dial
}

// Dial connects and logs in; it tries until ctx ends.
func (c Connection) Dial(ctx context.Context) (*bus.Conn, error) {
	login, err := keys.LoadLogin(c.Layout.LoginKey(c.Actor))
	if err != nil {
		return nil, err
	}
	cfg := bus.Config{
		URL: c.Site.BusURL, CAFile: c.Layout.CA(), Actor: c.Actor, Role: c.Power, Origin: c.Site.Origin,
		Login: login, Log: c.Log, Name: "banksman " + c.Actor, Once: c.Once,
	}
	if c.Use != nil {
		c.Use(&cfg)
	}
	return bus.Connect(ctx, cfg)
}

// Signing lets an actor's key sign events.
type Signing struct{ *keys.Signer }

// Key is the public key as events name it.
func (s Signing) Key() string { return string(s.Public()) }

// NewStanding reads what is in force over a connection.
func NewStanding(conn *bus.Conn, s SiteConfig, l site.Layout) *standing.Standing {
	return standing.New(conn, trust.New(s.Origin, keys.PublicKey(s.RootKey)), PolicyEnv(l))
}

// PolicyEnv is what policies of this folder may refer to.
func PolicyEnv(l site.Layout) policy.Env {
	env := policy.Env{DataDir: l.Dir, Homes: []string{"/root"}}
	if home, err := os.UserHomeDir(); err == nil {
		env.Homes = append(env.Homes, filepath.Clean(home))
	}
	return env
}

// LoadSite reads the site's table of a folder.
func LoadSite(l site.Layout) (SiteConfig, error) {
	var s SiteConfig
	if !site.Exists(l) {
		return s, fmt.Errorf("%s holds no site: %w", l.Dir, ErrNoSite)
	}
	return s, loadSection(l, "site", &s)
}
