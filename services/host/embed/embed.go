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
// # What can go wrong
//
// A store that is damaged, or a stream with weaker settings, is refused at the
// start by name, before any role runs.
package embed

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
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
	b := &embedded{log: log}
	o := options(l, c, *file, log)
	o.Prepare = func(ctx context.Context, server *logserver.Server) error {
		b.server, b.standing = server, standing.New(server.Admin(), book, host.PolicyEnv(l))
		return b.begin(ctx, first)
	}
	if _, err := logserver.Start(ctx, o); err != nil {
		return nil, err
	}
	return b, nil
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
	server   *logserver.Server
	log      *slog.Logger
	standing *standing.Standing
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
	c.InProcess, c.CAFile, c.URL = b.server.InProcess(), "", "" // no socket, so nothing to encrypt
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

// Watch reports health, makes room for output and follows the trust file until
// the context ends.
func (b *embedded) Watch(ctx context.Context, report func(bool, string)) error {
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
		case <-changed:
			if err := b.reload(ctx); err != nil {
				b.log.Error("trust file not put into force", slog.Any("error", err))
			}
		}
	}
}
