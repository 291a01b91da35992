// Package embed runs the bus inside this process: it is the one place that
// links the message server into a binary.
//
// # What it guarantees
//
//   - Only who the trust file in force lists may log in. The file of the first
//     start is the one that init signed; later ones are taken from the stream,
//     after their root signature was checked, without dropping anybody else.
//   - The site's two signed first events are the first two of the stream: they are
//     appended before anybody can connect, and a stream that begins otherwise is
//     refused. Whoever connects meets the newest trust file, also after a restart.
//
// # Who owns what
//
// The server owns the store below state/bus. Nothing else opens it.
//
// # Epochs
//
// When the auditor has opened an epoch and its log holds everything from before, the
// server is stopped for a moment, the stream is made anew from what is carried, and the
// server starts again; sequences, times and bytes stay as they were. Nobody is connected
// meanwhile, so nobody's event is lost: to the roles it is an outage of the bus.
//
// # What can go wrong
//
// A store that is damaged, or a stream with weaker settings, is refused at the
// start by name, before any role runs.
package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/logserver"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/trust"
)

// Start starts the bus of a site. It is a host.StartBus.
func Start(ctx context.Context, l site.Layout, s host.SiteConfig, c host.BusConfig, log *slog.Logger) (host.Bus, error) {
	if err := os.MkdirAll(l.BusStore(), 0o700); err != nil {
		return nil, fmt.Errorf("make the bus's store: %w", err)
	}
	first, err := site.ReadGenesis(l)
	if err != nil {
		return nil, err
	}
	book := trust.New(s.Origin, keys.PublicKey(s.RootKey))
	file, err := firstTrust(s, first)
	if err != nil {
		return nil, err
	}
	b := &embedded{log: log, layout: l, options: options(l, c, *file, log), first: first, book: book}
	return b, b.start(ctx)
}

// start starts the server.
func (b *embedded) start(ctx context.Context) error {
	o := b.options
	o.Prepare = func(ctx context.Context, server *logserver.Server) error {
		b.server, b.standing = server, standing.New(server.Admin(), b.book, host.PolicyEnv(b.layout))
		if err := b.begin(ctx, b.first); err != nil {
			return err
		}
		return b.thin(ctx)
	}
	server, err := logserver.Start(ctx, o)
	if err == nil {
		b.let(server)
	}
	return err
}

// Quiet starts the bus of a site that is stopped, for this process alone: nobody else can
// connect.
func Quiet(ctx context.Context, l site.Layout, s host.SiteConfig, c host.BusConfig, log *slog.Logger) (host.Bus, error) {
	c.Listen = "127.0.0.1:-1"
	return Start(ctx, l, s, c, log)
}

func options(l site.Layout, c host.BusConfig, file events.TrustPublished, log *slog.Logger) logserver.Options {
	address, port, _ := net.SplitHostPort(c.Listen) // validated
	n, _ := strconv.Atoi(port)
	return logserver.Options{
		StoreDir: l.BusStore(), ConfFile: l.BusConf(), Host: address, Port: n, CertFile: l.BusCert(), KeyFile: l.BusKey(),
		MaxBytes: c.MaxBytes, OutputMaxBytes: c.Output, OutputMaxAge: time.Duration(c.OutputS) * time.Second, Pools: c.Pools, Trust: file, Log: log,
	}
}

// firstTrust is the trust file that init signed, checked against the pinned
// root.
func firstTrust(s host.SiteConfig, first []events.Message) (*events.TrustPublished, error) {
	book := trust.New(s.Origin, keys.PublicKey(s.RootKey))
	for i, m := range first {
		st := events.Stored{Seq: uint64(i + 1), Subject: m.Subject.String(), Header: m.Header, Data: m.Data}
		if _, err := book.Open(st); err != nil {
			return nil, fmt.Errorf("check the site's first events: %w", err)
		}
	}
	file := book.Current()
	if file == nil {
		return nil, fmt.Errorf("check the site's first events: there is no trust file among them")
	}
	return file, nil
}

// embedded is a running bus.
type embedded struct {
	layout  site.Layout
	options logserver.Options
	first   []events.Message
	book    *trust.Book
	log     *slog.Logger

	server   *logserver.Server // replaced by start alone
	standing *standing.Standing

	mu   sync.Mutex        // guards what the roles of this process use
	open *logserver.Server // nil while the server is prepared
}

// InProcessConn connects to whichever server runs now. Like the listener it lets nobody
// in before the server is prepared.
func (b *embedded) InProcessConn() (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		return nil, errors.New("the bus is starting")
	}
	return b.open.InProcess().InProcessConn()
}

// let says who may be connected to.
func (b *embedded) let(server *logserver.Server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = server
}

// begin appends the first events to an empty stream, checks that the stream is
// this site's, and puts the trust file in force.
func (b *embedded) begin(ctx context.Context, first []events.Message) error {
	last, err := b.server.Admin().LastSeq(ctx)
	if err != nil {
		return fmt.Errorf("look at the stream: %w", err)
	}
	for i := int(last); i < len(first); i++ {
		if _, err := b.server.Admin().AppendRaw(ctx, first[i]); err != nil {
			return fmt.Errorf("append the site's first events: %w", err)
		}
	}
	head, err := b.server.Admin().Read(ctx, 1, events.PrefixStored+".>", len(first))
	if err != nil {
		return fmt.Errorf("read the stream's beginning: %w", err)
	}
	for i, m := range first {
		if i >= len(head) || head[i].Subject != m.Subject.String() || string(head[i].Data) != string(m.Data) {
			return fmt.Errorf("the stream does not begin with this site's first events; the store in state/bus belongs to another site")
		}
	}
	return b.reload(ctx)
}

// reload puts the newest trust file into force on the server.
func (b *embedded) reload(ctx context.Context) error {
	if err := b.standing.Refresh(ctx); err != nil {
		return err
	}
	file := b.standing.Book().Current()
	if file == nil {
		return fmt.Errorf("the stream holds no trust file")
	}
	if err := b.server.Reload(*file); err != nil {
		return fmt.Errorf("put trust file %d into force on the bus: %w", file.Version, err)
	}
	return nil
}

// Use points a connection at the server without a socket.
func (b *embedded) Use(c *bus.Config) {
	c.InProcess, c.CAFile, c.URL = b, "", "" // no socket, so nothing to encrypt
}

// Close shuts the server down and waits for it.
func (b *embedded) Close() { b.server.Shutdown() }

// checkEvery is how often the server is asked whether it is healthy.
const checkEvery = 2 * time.Second

// makeRoom lets the oldest output go where little room is left.
func (b *embedded) makeRoom(ctx context.Context) {
	dropped, err := b.server.Admin().TrimOutput(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		b.log.Error("jobs may have to wait until their output finds room", slog.Any("error", err))
	case dropped > 0:
		b.log.Info("the oldest output went to make room; see output_max_bytes in [bus]", slog.Uint64("chunks", dropped))
	}
}

// Watch reports health, makes room for output, follows the trust file and lets go of what
// an epoch leaves behind, until the context ends.
func (b *embedded) Watch(ctx context.Context, report func(bool, string)) error {
	for {
		err := b.watch(ctx, report)
		if !errors.Is(err, errEpoch) {
			return err
		}
		report(false, "the stream of the epoch before is being thinned")
		b.let(nil)
		b.server.Shutdown()
		if err := b.start(ctx); err != nil {
			return err
		}
	}
}

// watch is Watch for one run of the server. It returns errEpoch when there is something
// to let go of.
func (b *embedded) watch(ctx context.Context, report func(bool, string)) error {
	changed := make(chan struct{}, 1)
	stop, err := b.server.Admin().Live(ctx, events.Filter("trust", events.TrustID), func(events.Stored) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return fmt.Errorf("follow the trust file: %w", err)
	}
	defer stop()
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		if err := b.server.Healthy(); err != nil {
			report(false, err.Error())
		} else {
			report(true, "")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			b.makeRoom(ctx)
			if n, _, err := b.epoch(ctx); err != nil {
				b.log.Error("the epoch is not known", slog.Any("error", err))
			} else if n > b.thinned() {
				return errEpoch
			}
		case <-changed:
			if err := b.reload(ctx); err != nil {
				b.log.Error("trust file not put into force", slog.Any("error", err))
			}
		}
	}
}
