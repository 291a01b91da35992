package logserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/keys"
)

// Server is a running bus.
type Server struct {
	opts  Options
	srv   *server.Server
	extra string    // the administrator of this process, in the configuration
	admin *bus.Conn // its connection
	desk  func()

	mu      sync.Mutex            // serialises Reload
	inForce events.TrustPublished // guarded by mu
	close   sync.Once
}

// Start starts the server, makes what is missing, checks what exists, and only
// then listens. The context bounds the start only.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	if err := checkVersion(server.VERSION); err != nil {
		return nil, err
	}
	login, err := keys.GenerateLogin()
	if err != nil {
		return nil, fmt.Errorf("start the bus: %w", err)
	}
	s := &Server{opts: o, extra: grants.Administrator(login.Public()), inForce: o.Trust}
	parsed, err := s.configure(o.Trust)
	if err != nil {
		return nil, err
	}
	if s.srv, err = server.NewServer(parsed); err != nil {
		return nil, fmt.Errorf("start the bus: %w", err)
	}
	s.srv.SetLogger(&serverLog{o.Log}, false, false)
	s.srv.Start()
	err = s.open(ctx, login)
	if err == nil && o.Prepare != nil {
		err = o.Prepare(ctx, s)
	}
	if err == nil {
		err = s.listen()
	}
	if err != nil {
		s.Shutdown()
		return nil, err
	}
	return s, nil
}

// listen lets other processes connect.
func (s *Server) listen() error {
	if s.opts.Port < 0 {
		return nil
	}
	s.srv.AcceptLoop(make(chan struct{}))
	if s.srv.Addr() == nil {
		return fmt.Errorf("start the bus: nobody can connect to %s; its log says why, look for another process there",
			net.JoinHostPort(s.opts.Host, strconv.Itoa(s.opts.Port)))
	}
	return nil
}

// open waits until the server works and prepares what it hosts.
func (s *Server) open(ctx context.Context, login *keys.Login) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := checkDurable(s.srv.JetStreamConfig()); err != nil {
		return err
	}
	var err error
	s.admin, err = bus.Connect(ctx, bus.Config{
		InProcess: s.InProcess(), Actor: "bus", Role: events.RoleBus, Origin: s.opts.Trust.Origin,
		Login: login, Log: s.opts.Log, Name: "banksman bus",
	})
	if err != nil {
		return err
	}
	if err := s.putBackAll(ctx); err != nil {
		return err
	}
	if err := s.tolerate(s.admin.Provision(ctx, s.layout())); err != nil {
		return err
	}
	s.desk, err = s.admin.ServeDesk(context.WithoutCancel(ctx), s.opts.Pools)
	return err
}

// layout is what the bus hosts.
func (s *Server) layout() bus.Layout {
	return bus.Layout{Pools: s.opts.Pools, MaxBytes: s.opts.MaxBytes, OutputMaxBytes: s.opts.OutputMaxBytes, OutputMaxAge: s.opts.OutputMaxAge}
}

// tolerate lets a stream with a hole be served, if it holds its first events: the
// auditor then says what is lost, and no job starts until an admin has acknowledged it.
// Without its first trust file nobody could believe anybody.
func (s *Server) tolerate(err error) error {
	var broken *bus.BrokenStream
	if !errors.As(err, &broken) || broken.State.Messages == 0 || broken.State.First != 1 {
		return err
	}
	s.opts.Log.Error("the stream has lost events; no job starts until an admin has acknowledged that with 'banksman audit ack'", "error", err)
	return nil
}

// ready waits for the store.
func (s *Server) ready(ctx context.Context) error {
	for !s.srv.ReadyForConnections(100 * time.Millisecond) {
		if ctx.Err() != nil || !s.srv.Running() {
			return fmt.Errorf("start the bus: the server did not become ready; its log says why: %w", errors.Join(context.Cause(ctx)))
		}
	}
	if !s.srv.JetStreamEnabled() {
		return fmt.Errorf("start the bus: the store in %s did not open; the server's log says why", s.opts.StoreDir)
	}
	return nil
}

// configure renders, writes and parses the configuration.
func (s *Server) configure(t events.TrustPublished) (*server.Options, error) {
	text, err := s.opts.text(t, s.extra)
	if err != nil {
		return nil, err
	}
	if s.opts.ConfFile != "" {
		if err := renameio.WriteFile(s.opts.ConfFile, []byte(text), 0o600, renameio.IgnoreUmask()); err != nil {
			return nil, fmt.Errorf("write the configuration of the bus to %s: %w", s.opts.ConfFile, err)
		}
	}
	if err := os.MkdirAll(s.opts.StoreDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the store of the bus: %w", err)
	}
	o := &server.Options{NoSigs: true, DontListen: true} // listen does
	if err := o.ProcessConfigString(text); err != nil {
		return nil, fmt.Errorf("read the configuration of the bus: %w", err)
	}
	return o, nil
}

// Reload puts another trust file in force. Who is no longer in it is dropped;
// the others keep their connections. The one in force changes nothing.
func (s *Server) Reload(t events.TrustPublished) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Origin != s.opts.Trust.Origin {
		return fmt.Errorf("reload the bus: the trust file is of origin %q, this bus of %q", t.Origin, s.opts.Trust.Origin)
	}
	if reflect.DeepEqual(t, s.inForce) {
		return nil
	}
	o, err := s.configure(t)
	if err != nil {
		return err
	}
	if err := s.srv.ReloadOptions(o); err != nil {
		return fmt.Errorf("reload the bus: %w", err)
	}
	s.inForce = t
	return nil
}

// InProcess connects clients of the same process without a socket.
func (s *Server) InProcess() nats.InProcessConnProvider { return s.srv }

// ClientURL is where clients of other processes connect, empty when the server
// does not listen.
func (s *Server) ClientURL() string {
	if s.opts.Port < 0 {
		return ""
	}
	url := s.srv.ClientURL()
	if s.opts.CertFile != "" {
		url = "tls://" + strings.TrimPrefix(strings.TrimPrefix(url, "nats://"), "tls://")
	}
	return url
}

// Admin is the bus's own connection.
func (s *Server) Admin() *bus.Conn { return s.admin }

// Healthy returns what is wrong with the server or its streams, or nil. After
// a write error the server stays unhealthy until it is started anew.
func (s *Server) Healthy() error {
	h := s.srv.Healthz(&server.HealthzOptions{})
	if h.Error != "" || h.Status != "ok" {
		return fmt.Errorf("the bus is %s: %s; look at the disk, then restart the bus", h.Status, h.Error)
	}
	return nil
}

// Shutdown ends the server and returns when everything is written.
func (s *Server) Shutdown() {
	s.close.Do(func() {
		if s.desk != nil {
			s.desk()
		}
		if s.admin != nil {
			s.admin.Close()
		}
		s.srv.Shutdown()
		s.srv.WaitForShutdown()
	})
}
