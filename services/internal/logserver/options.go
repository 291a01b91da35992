package logserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
)

// Options say where the server keeps its store and where it listens.
type Options struct {
	// StoreDir is the directory of the store; it is made when missing.
	StoreDir string
	// ConfFile, when set, is where the configuration is written before it is
	// used, for operators to look at. It holds public keys only.
	ConfFile string
	// Host to listen on; empty is 127.0.0.1.
	Host string
	// Port to listen on; 0 takes a free one, negative listens on none, so that
	// only [Server.InProcess] connects.
	Port int
	// CertFile and KeyFile, in PEM, turn on TLS for the listener.
	CertFile string
	KeyFile  string
	// MaxBytes of the audited stream, and of the texts that its events name; 0 is 8 GiB.
	MaxBytes int64
	// OutputMaxBytes of the output stream; 0 is as much as MaxBytes.
	OutputMaxBytes int64
	// OutputMaxAge is how long output is kept; 0 for as long as there is room.
	OutputMaxAge time.Duration
	// Pools have queues of their own.
	Pools []string
	// Trust lists who may log in.
	Trust events.TrustPublished
	// Log gets what the server has to say; nil for nobody.
	Log *slog.Logger
	// Prepare, when set, is called when the server works and before it listens,
	// so that what it stores precedes everything that other processes store, and
	// the trust file that it puts in force is the first one that they meet.
	Prepare func(ctx context.Context, s *Server) error
}

const defaultMaxBytes = 8 << 30

// maxMemoryBytes bounds streams in memory: the view of jobs and the state of
// readers' consumers.
const maxMemoryBytes = 256 << 20

func (o *Options) fill() error {
	if o.StoreDir == "" {
		return errors.New("start the bus: no store directory given")
	}
	dir, err := filepath.Abs(o.StoreDir)
	if err != nil {
		return fmt.Errorf("start the bus: store directory: %w", err)
	}
	o.StoreDir = dir
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("start the bus: give both a certificate and its key, or neither")
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.OutputMaxBytes <= 0 {
		o.OutputMaxBytes = o.MaxBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// text renders the whole configuration. Extra is an administrator that lives
// as long as this process.
func (o *Options) text(t events.TrustPublished, extra string) (string, error) {
	accounts, err := grants.Config(t, o.Pools, extra)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Written by banksman from the trust file; changes are overwritten.\n")
	fmt.Fprintf(&b, "server_name: %q\n", "banksman-"+t.Origin)
	if o.Port >= 0 {
		fmt.Fprintf(&b, "host: %q\nport: %d\n", o.Host, listenPort(o.Port))
	}
	if o.CertFile != "" {
		fmt.Fprintf(&b, "tls { cert_file: %q, key_file: %q, handshake_first: true, min_version: \"1.3\", timeout: 5 }\n", o.CertFile, o.KeyFile)
	}
	b.WriteString("max_payload: 1MB\n")
	// The store gets half as much again as the streams, for the server's own
	// bookkeeping; the streams' own limits are what counts.
	fmt.Fprintf(&b, "jetstream { store_dir: %q, sync_interval: always, max_file_store: %d, max_memory_store: %d }\n",
		o.StoreDir, (2*o.MaxBytes+o.OutputMaxBytes+bus.HeadsBytes)/2*3, maxMemoryBytes)
	b.WriteString(accounts)
	return b.String(), nil
}

// listenPort is the port as nats-server has it: -1 for any.
func listenPort(port int) int {
	if port == 0 {
		return server.RANDOM_PORT
	}
	return port
}
