package stage

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/logserver"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/trust"
)

// Origin is the name of every stage's site.
const Origin = "stage"

// Person and Second are two people of the site; the first is admin, too.
const (
	Person = "p7k2"
	Second = "p9z4"
)

// Patience bounds every wait; reaching it is a failure.
const Patience = 30 * time.Second

// Options change a stage.
type Options struct {
	Policy   string                   // in force from the start; empty for none
	MaxBytes int64                    // of the audited stream; 0 for 64 MiB
	Actors   map[string][]events.Role // nil for one of each role and two persons
	TCP      bool                     // connections go over TCP, and survive Down and Up
}

// Stage is a site on a real bus.
type Stage struct {
	T      testing.TB
	Layout site.Layout // with the keys of all actors, without passphrase
	Work   string      // a folder outside of it, where jobs may work
	Root   *keys.Signer
	Server *logserver.Server

	options logserver.Options
	signers map[string]*keys.Signer
	logins  map[string]*keys.Login
	file    events.TrustPublished

	mu     sync.Mutex // guards the rest
	conns  map[string]*bus.Conn
	voices map[string]*bus.Appender
	n      int // jobs so far
}

// New opens a stage.
func New(t testing.TB, o Options) *Stage {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	Must(t, err)
	s := &Stage{
		T: t, Layout: site.Layout{Dir: filepath.Join(base, "banksman")}, Work: filepath.Join(base, "work"),
		signers: map[string]*keys.Signer{}, logins: map[string]*keys.Login{}, conns: map[string]*bus.Conn{}, voices: map[string]*bus.Appender{},
	}
	Must(t, os.Chmod(base, 0o700))
	for _, dir := range []string{s.Layout.Dir, s.Work} {
		Must(t, os.Mkdir(dir, 0o700))
	}
	s.enrol(o.Actors)
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	s.options = logserver.Options{
		StoreDir: filepath.Join(base, "store"), Port: -1, MaxBytes: o.MaxBytes, OutputMaxBytes: 64 << 20, Pools: []string{"default"}, Trust: s.file,
	}
	if o.TCP {
		s.options.Port = freePort(t)
	}
	s.Up()
	t.Cleanup(s.close)
	s.conns["bus"] = s.Server.Admin()
	s.AppendTrust(s.Root, s.file, 0)
	if o.Policy != "" {
		s.Publish(o.Policy)
	}
	return s
}

// everybody is one actor of each role that has to do with jobs, and two persons.
func everybody() map[string][]events.Role {
	return map[string][]events.Role{
		"bus": {events.RoleBus}, "proposer": {events.RoleProposer}, "gate": {events.RoleGate}, "worker": {events.RoleWorker},
		"auditor": {events.RoleAuditor}, "reader": {events.RoleReader},
		Person: {events.RolePerson, events.RoleAdmin}, Second: {events.RolePerson},
	}
}

// enrol makes the keys and the first trust file.
func (s *Stage) enrol(actors map[string][]events.Role) {
	if actors == nil {
		actors = everybody()
	}
	s.file = events.TrustPublished{Version: 1, Origin: Origin}
	for _, name := range slices.Sorted(maps.Keys(actors)) {
		s.file.Actors = append(s.file.Actors, s.Enrol(name, actors[name]...))
	}
	root, err := keys.GenerateSigner()
	Must(s.T, err)
	s.Root = root
	Must(s.T, keys.WriteSigner(s.Layout.SignKey("root"), root, nil))
}

// Enrol makes the keys of an actor and its line for a trust file.
func (s *Stage) Enrol(name string, roles ...events.Role) events.Actor {
	s.T.Helper()
	sign, err := keys.GenerateSigner()
	Must(s.T, err)
	login, err := keys.GenerateLogin()
	Must(s.T, err)
	s.signers[name], s.logins[name] = sign, login
	Must(s.T, keys.WriteSigner(s.Layout.SignKey(name), sign, nil))
	Must(s.T, keys.WriteLogin(s.Layout.LoginKey(name), login))
	return events.Actor{Actor: name, Name: "name of " + name, Roles: roles, Login: login.Public(), Sign: string(sign.Public())}
}

// Down stops the bus; what it has stored stays.
func (s *Stage) Down() { s.Server.Shutdown() }

// Up starts the bus, again where it was there before.
func (s *Stage) Up() {
	s.T.Helper()
	var err error
	s.Server, err = logserver.Start(context.Background(), s.options)
	Must(s.T, err)
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (s *Stage) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
	s.Server.Shutdown()
}

// Conn is an actor's connection, made when first asked for.
func (s *Stage) Conn(actor string) *bus.Conn {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[actor] == nil {
		s.conns[actor] = s.Dial(actor)
	}
	return s.conns[actor]
}

// Dial makes one more connection of an actor, which the caller closes.
func (s *Stage) Dial(actor string) *bus.Conn {
	s.T.Helper()
	line, ok := s.file.Find(actor)
	if !ok {
		s.T.Fatalf("nobody enrolled %s", actor)
	}
	cfg := bus.Config{Actor: actor, Role: line.Roles[0], Origin: Origin, Login: s.logins[actor], Name: actor, Log: s.Log()}
	if s.options.Port > 0 {
		cfg.URL = s.Server.ClientURL()
	} else {
		cfg.InProcess = s.Server.InProcess()
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	c, err := bus.Connect(ctx, cfg)
	Must(s.T, err)
	return c
}

// signing lets an actor's key sign events.
type signing struct{ *keys.Signer }

func (s signing) Key() string { return string(s.Public()) }

// Voice is an actor's one appender.
func (s *Stage) Voice(actor string) *bus.Appender {
	s.T.Helper()
	c := s.Conn(actor)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.voices[actor] == nil {
		s.voices[actor] = c.Appender(s.Signing(actor))
	}
	return s.voices[actor]
}

// Lend lets somebody else speak in an actor's place until restore is called.
func (s *Stage) Lend(actor string, voice *bus.Appender) (restore func()) {
	s.T.Helper()
	own := s.Voice(actor)
	set := func(v *bus.Appender) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.voices[actor] = v
	}
	set(voice)
	return func() { set(own) }
}

// Signer is an actor's key.
func (s *Stage) Signer(actor string) *keys.Signer { return s.signers[actor] }

// Login is an actor's log-in key.
func (s *Stage) Login(actor string) *keys.Login { return s.logins[actor] }

// Signing is an actor's key as an appender takes it.
func (s *Stage) Signing(actor string) bus.Signer { return Signing(s.signers[actor]) }

// Signing is any key as an appender takes it.
func Signing(key *keys.Signer) bus.Signer { return signing{key} }

// Env is what policies of this site may refer to.
func (s *Stage) Env() policy.Env { return policy.Env{DataDir: s.Layout.Dir, Homes: []string{"/root"}} }

// Standing is a new reader of what is in force, over an actor's connection.
func (s *Stage) Standing(actor string) *standing.Standing { return s.Over(s.Conn(actor)) }

// Over is Standing over a connection that somebody has dialled.
func (s *Stage) Over(c *bus.Conn) *standing.Standing {
	return standing.New(c, trust.New(Origin, s.Root.Public()), s.Env())
}

// Context ends with the stage's patience.
func (s *Stage) Context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	s.T.Cleanup(cancel)
	return ctx
}

// Log shows what is logged when the test fails.
func (s *Stage) Log() *slog.Logger { return slog.New(slog.NewTextHandler(Writer(s.T), nil)) }

// Writer shows what is written when the test fails.
func Writer(t testing.TB) io.Writer { return writer{t} }

type writer struct{ t testing.TB }

// Write drops what comes after the end of the test, when logging would panic.
func (w writer) Write(p []byte) (int, error) {
	if tc, ok := w.t.(interface{ Context() context.Context }); !ok || tc.Context().Err() == nil {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// Must fails the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
