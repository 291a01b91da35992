package bus_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/logserver"
)

// origin is the site under test.
const origin = "site-under-test"

// site is a bus with one actor per role.
type site struct {
	t      *testing.T
	opts   logserver.Options
	srv    *logserver.Server
	logins map[string]*keys.Login
	roles  map[string]events.Role
}

// testSigner makes signatures that nobody here checks but everybody compares.
type testSigner struct{ key ed25519.PrivateKey }

func newSigner(seed string) testSigner {
	sum := sha256.Sum256([]byte(seed))
	return testSigner{ed25519.NewKeyFromSeed(sum[:])}
}

func (s testSigner) Key() string {
	return "ed25519:" + base64.RawURLEncoding.EncodeToString(s.key.Public().(ed25519.PublicKey))
}
func (s testSigner) Sign(text []byte) []byte { return ed25519.Sign(s.key, text) }

// actorsOf lists the actors of a fresh site and two more.
func actorsOf(t *testing.T) (events.TrustPublished, map[string]*keys.Login, map[string]events.Role) {
	t.Helper()
	trust := events.TrustPublished{Version: 1, Origin: origin}
	logins, roles := map[string]*keys.Login{}, map[string]events.Role{}
	add := func(name string, pools []string, r ...events.Role) {
		login, err := keys.GenerateLogin()
		if err != nil {
			t.Fatal(err)
		}
		logins[name], roles[name] = login, r[0]
		trust.Actors = append(trust.Actors, events.Actor{Actor: name, Name: name, Roles: r, Login: login.Public(), Pools: pools})
	}
	add("proposer", nil, events.RoleProposer)
	add("gate", nil, events.RoleGate)
	add("p7k2", nil, events.RolePerson, events.RoleAdmin)
	add("worker", []string{"default"}, events.RoleWorker)
	add("worker2", nil, events.RoleWorker)
	add("supervisor", nil, events.RoleSupervisor)
	add("monitor", nil, events.RoleMonitor)
	add("auditor", nil, events.RoleAuditor)
	add("reader", nil, events.RoleReader)
	add("bus", nil, events.RoleBus)
	trust.Actors = append(trust.Actors, events.Actor{Actor: "root", Name: "root", Roles: []events.Role{events.RoleRoot}})
	return trust, logins, roles
}

func newSite(t *testing.T, change ...func(*logserver.Options)) *site {
	t.Helper()
	trust, logins, roles := actorsOf(t)
	s := &site{t: t, logins: logins, roles: roles, opts: logserver.Options{
		StoreDir: t.TempDir(), Port: -1, MaxBytes: 64 << 20, Pools: []string{"default", "gpu"}, Trust: trust,
	}}
	for _, f := range change {
		f(&s.opts)
	}
	s.start()
	t.Cleanup(func() { s.srv.Shutdown() })
	return s
}

func (s *site) start() {
	s.t.Helper()
	srv, err := logserver.Start(s.t.Context(), s.opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.srv = srv
}

func (s *site) config(actor string) bus.Config {
	cfg := bus.Config{Actor: actor, Role: s.roles[actor], Origin: origin, Login: s.logins[actor], Name: actor}
	if s.opts.Port < 0 {
		cfg.InProcess = s.srv.InProcess()
	} else {
		cfg.URL = s.srv.ClientURL()
	}
	return cfg
}

func (s *site) connect(actor string) *bus.Conn {
	s.t.Helper()
	c, err := bus.Connect(s.t.Context(), s.config(actor))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// TestMain wants every goroutine ended.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func proposal(reason string) events.JobProposed {
	return events.JobProposed{Argv: []string{"/bin/true"}, Reason: reason}
}
