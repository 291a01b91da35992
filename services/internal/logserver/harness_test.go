package logserver_test

import (
	"path/filepath"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/logserver"
)

// origin is the site under test.
const origin = "site-under-test"

// site is a trust file with the keys to it.
type site struct {
	trust  events.TrustPublished
	logins map[string]*keys.Login
}

func newSite(t *testing.T, roles ...events.Role) *site {
	t.Helper()
	s := &site{trust: events.TrustPublished{Version: 1, Origin: origin}, logins: map[string]*keys.Login{}}
	for _, r := range roles {
		s.add(t, string(r), r)
	}
	return s
}

func (s *site) add(t *testing.T, name string, roles ...events.Role) {
	t.Helper()
	login, err := keys.GenerateLogin()
	if err != nil {
		t.Fatal(err)
	}
	s.logins[name] = login
	s.trust.Actors = append(s.trust.Actors, events.Actor{Actor: name, Name: name, Roles: roles, Login: login.Public()})
	s.trust.Version++
}

func (s *site) remove(name string) {
	var kept []events.Actor
	for _, a := range s.trust.Actors {
		if a.Actor != name {
			kept = append(kept, a)
		}
	}
	s.trust.Actors = kept
	s.trust.Version++
}

func (s *site) options(t *testing.T) logserver.Options {
	return logserver.Options{
		StoreDir: filepath.Join(t.TempDir(), "store"), ConfFile: filepath.Join(t.TempDir(), "bus.conf"),
		Port: -1, MaxBytes: 64 << 20, Pools: []string{"default"}, Trust: s.trust,
	}
}

func start(t *testing.T, o logserver.Options) *logserver.Server {
	t.Helper()
	srv, err := logserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	return srv
}

func (s *site) config(srv *logserver.Server, actor string) bus.Config {
	a, _ := s.trust.Find(actor)
	cfg := bus.Config{Actor: actor, Origin: origin, Login: s.logins[actor], Name: actor, InProcess: srv.InProcess()}
	if len(a.Roles) > 0 {
		cfg.Role = a.Roles[0]
	}
	return cfg
}

func connect(t *testing.T, cfg bus.Config) *bus.Conn {
	t.Helper()
	c, err := bus.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
