package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/mcp"
)

func (a *app) mcpCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use: "mcp [--http ADDRESS]", Short: "Serve an agent's tools by the Model Context Protocol", GroupID: "agents", Args: cobra.NoArgs,
		Long: "Serve an agent's tools by the Model Context Protocol, on standard input and output, or on a\nloopback address by streamable HTTP. The tools propose, wait and look; none decides. They speak\nfor BANKSMAN_TOKEN, else for the folder's local agent.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, token, err := a.door()
			if err != nil {
				return err
			}
			cwd, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("find the working directory: %w", err)
			}
			server := mcp.New(client, host.Version(), cwd)
			if address == "" {
				return server.Serve(cmd.Context(), a.in, unclosed{a.out})
			}
			return a.serveMCP(cmd.Context(), address, server.Handler(token))
		},
	}
	cmd.Flags().StringVar(&address, "http", "", "loopback address to listen on, such as 127.0.0.1:7410")
	return cmd
}

// unclosed is a stream that outlives its user.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// serveMCP answers on a loopback address until the context ends. Open requests
// are cut off then: their jobs go on without them.
func (a *app) serveMCP(ctx context.Context, address string, handler http.Handler) error {
	if err := mcp.CheckAddress(address); err != nil {
		return usage("", "--http: %v", err)
	}
	log, err := a.log()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for agents on %s: %w", address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	a.say("serving agents on http://%s", listener.Addr())
	select {
	case err = <-served:
	case <-ctx.Done():
		server.Close()
		err = <-served
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve agents on %s: %w", address, err)
}
