package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// Login proves an actor's identity to the bus. It must refuse to sign what
// does not look like a nonce, because the server chooses the text.
type Login interface {
	Public() string
	SignNonce(nonce []byte) ([]byte, error)
}

// Config says where the bus is and who connects.
type Config struct {
	// URL of the bus, such as tls://127.0.0.1:4222. Ignored with InProcess.
	URL string
	// CAFile holds the site CA in PEM; with it, or with a tls:// URL, the TLS
	// handshake comes before anything else.
	CAFile string
	// InProcess reaches a server inside this process without a socket.
	InProcess nats.InProcessConnProvider
	// Actor is the token under which everything is published.
	Actor string
	// Role decides where the JetStream API is seen; only the bus itself sees
	// it in place.
	Role events.Role
	// Origin is the site's unique name, part of every signature.
	Origin string
	// Login is the actor's log-in key; nil only where the server asks for none.
	Login Login
	// Log gets what no caller can be told; nil for nobody.
	Log *slog.Logger
	// Once gives up on the first failure instead of trying until ctx ends; for
	// verbs, which a person waits for.
	Once bool
	// Name is shown by the server's list of connections.
	Name string
}

// Conn is one actor's connection. All methods are safe for concurrent use.
type Conn struct {
	cfg Config
	nc  *nats.Conn
	log *slog.Logger
	api string

	mu        sync.Mutex
	changed   chan struct{}                // closed and replaced when the connection comes or goes
	flights   map[*flight]struct{}         // exchanges waiting for an answer
	listeners map[int]func(connected bool) // of Notify
	listener  int
	closed    bool
}

// believedRefusals in a row are a refused key. A server that puts another trust
// file in force turns away who logs in at that moment, and does not know yet who
// was added a moment ago.
const believedRefusals = 10

// Connect dials the bus and returns once logged in. It tries until ctx ends,
// except that a key that stays refused is an error soon ([*LoginRefused]). From then
// on the connection comes back by itself for ever.
func Connect(ctx context.Context, cfg Config) (*Conn, error) {
	if err := events.CheckName("actor", cfg.Actor); err != nil {
		return nil, fmt.Errorf("connect to the bus: %w", err)
	}
	c := &Conn{
		cfg: cfg, log: cfg.Log, api: grants.APIPrefix + ".",
		changed: make(chan struct{}), flights: map[*flight]struct{}{}, listeners: map[int]func(bool){},
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if cfg.Role == events.RoleBus {
		c.api = "$JS.API."
	}
	opts := c.options()
	for refusals := 0; ; {
		nc, err := nats.Connect(cfg.URL, opts...)
		if err == nil {
			c.mu.Lock()
			c.nc = nc
			c.mu.Unlock()
			return c, nil
		}
		if refused := c.loginError(err); refused != nil {
			if refusals++; refusals == believedRefusals || pause(ctx, retryPause) != nil {
				return nil, refused
			}
			continue
		}
		if !worthRetrying(err) {
			return nil, fmt.Errorf("connect to the bus at %s: %w", c.where(), err)
		}
		if cfg.Once && turnedAway(err) {
			if refusals++; refusals < believedRefusals && pause(ctx, retryPause) == nil {
				continue
			}
		}
		if cfg.Once || pause(ctx, 100*time.Millisecond) != nil {
			return nil, outage("connect to the bus at "+c.where(), err)
		}
	}
}

func (c *Conn) where() string {
	if c.cfg.InProcess != nil {
		return "this process"
	}
	return c.cfg.URL
}

func (c *Conn) loginError(err error) error {
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) {
		e := &LoginRefused{Actor: c.cfg.Actor, Cause: err}
		if c.cfg.Login != nil {
			e.Key = c.cfg.Login.Public()
		}
		return e
	}
	return nil
}

// turnedAway says that a server was there and hung up: it may have been about to put
// another trust file in force.
func turnedAway(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), "connection closed by remote")
}

// worthRetrying tells a bus that is not up yet from a mistake in the options.
func worthRetrying(err error) bool {
	var unknown *tls.CertificateVerificationError
	return !errors.As(err, &unknown) && !errors.Is(err, nats.ErrNkeysNotSupported) &&
		!strings.Contains(err.Error(), "root certificate") && !strings.Contains(err.Error(), "loading or parsing rootCA")
}

// syncQueue is how many messages wait for a reader of one exchange; more than
// any answer has. The client's default would set aside half a megabyte for each.
const syncQueue = 2048

func (c *Conn) options() []nats.Option {
	o := []nats.Option{
		nats.Name(c.cfg.Name),
		nats.CustomInboxPrefix(grants.InboxPrefix + "." + c.cfg.Actor),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.IgnoreAuthErrorAbort(), // a key that is refused now may be known after the next reload
		nats.IgnoreDiscoveredServers(),
		nats.ReconnectBufSize(-1), // nothing is sent later behind the caller's back
		nats.PingInterval(20 * time.Second),
		nats.Timeout(5 * time.Second),
		nats.SyncQueueLen(syncQueue),
		nats.ErrorHandler(c.onError),
		nats.DisconnectErrHandler(c.onDisconnect),
		nats.ReconnectHandler(c.onReconnect),
		nats.ClosedHandler(func(*nats.Conn) { c.announce(false) }),
	}
	if c.cfg.InProcess != nil {
		o = append(o, nats.InProcessServer(buffered{c.cfg.InProcess}))
	} else if c.cfg.CAFile != "" || strings.HasPrefix(c.cfg.URL, "tls://") {
		o = append(o, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13}), nats.TLSHandshakeFirst())
		if c.cfg.CAFile != "" {
			o = append(o, nats.RootCAs(c.cfg.CAFile))
		}
	}
	if c.cfg.Login != nil {
		o = append(o, nats.Nkey(c.cfg.Login.Public(), c.cfg.Login.SignNonce))
	}
	return o
}

// reconnectDelay grows from 50 ms to 2 s.
func reconnectDelay(attempts int) time.Duration {
	return min(50*time.Millisecond<<min(attempts, 10), 2*time.Second)
}

// Close ends the connection. Whatever still waits for an answer gets
// [ErrClosed].
func (c *Conn) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.nc.Close()
	c.cut(ErrClosed)
	c.announce(false)
}

// Actor is the token under which this connection publishes.
func (c *Conn) Actor() string { return c.cfg.Actor }

// Origin is the site's unique name.
func (c *Conn) Origin() string { return c.cfg.Origin }

// Connected says whether the bus can be reached at this moment.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// Line numbers the connections to the bus. Two things that were sent while it
// stayed the same went over one line, so that an answer to the later one shows
// that the earlier one arrived.
func (c *Conn) Line() uint64 { return c.nc.Stats().Reconnects }

// Notify calls f whenever the connection comes (true) or goes (false), until
// stop is called. f must return soon and must not call stop.
func (c *Conn) Notify(f func(connected bool)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener++
	id := c.listener
	c.listeners[id] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, id)
	}
}

func (c *Conn) onDisconnect(_ *nats.Conn, err error) {
	c.log.Warn("connection to the bus lost", "actor", c.cfg.Actor, "error", err)
	c.cut(errCut)
	c.announce(false)
}

func (c *Conn) onReconnect(*nats.Conn) {
	c.log.Info("connection to the bus is back", "actor", c.cfg.Actor)
	c.announce(true)
}

func (c *Conn) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		c.deny(err.Error())
		return
	}
	attrs := []any{"actor", c.cfg.Actor, "error", err}
	if sub != nil {
		attrs = append(attrs, "subject", sub.Subject)
	}
	c.log.Warn("the bus reported an error", attrs...)
}

func (c *Conn) announce(connected bool) {
	c.mu.Lock()
	close(c.changed)
	c.changed = make(chan struct{})
	listeners := make([]func(bool), 0, len(c.listeners))
	for _, f := range c.listeners {
		listeners = append(listeners, f)
	}
	c.mu.Unlock()
	for _, f := range listeners {
		f(connected)
	}
}

// watch returns a channel that is closed when the connection next comes or
// goes, and whether it has been closed for good.
func (c *Conn) watch() (changed <-chan struct{}, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed, c.closed
}

// waitUp returns nil once the bus can be reached.
func (c *Conn) waitUp(ctx context.Context) error {
	for {
		changed, closed := c.watch()
		switch {
		case closed:
			return ErrClosed
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case c.nc.IsConnected():
			return nil
		}
		// The client reports a reconnect after it happened; look again soon.
		timer := time.NewTimer(time.Second)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// pause waits, or returns why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
