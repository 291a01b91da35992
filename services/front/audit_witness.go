package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/auditor"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/internal/witness"
)

func (a *app) auditWitnessCommand() *cobra.Command {
	var listen, store, name string
	var logs []string
	cmd := &cobra.Command{
		Use: "witness --listen ADDR --store DIR --log KEY", Short: "Run a small witness that remembers the heads of logs", Args: cobra.NoArgs,
		Long: "Run a witness (C2SP tlog-witness) on another host than the auditor's. It cosigns a head only\nif it grew out of the head that it cosigned before. The first start makes its key in the\nstore. The line that it prints belongs into the auditor's and the verifiers' policy file.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if listen == "" || store == "" || len(logs) == 0 {
				return usage("give --listen ADDR, --store DIR and --log KEY, the checkpoint key of the trust file", "witness: something is missing")
			}
			s, err := witnessKey(store, name)
			if err != nil {
				return err
			}
			server, err := witness.NewServer(filepath.Join(store, "heads"), s, logs, time.Now)
			if err != nil {
				return err
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("witness: %w", err)
			}
			fmt.Fprintf(a.out, "witness %s %s http://%s\n", name, s.Verifier(), l.Addr())
			return serveUntil(cmd.Context(), l, server)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address to answer on, HTTP without TLS; heads are public and signed")
	cmd.Flags().StringVar(&store, "store", "", "folder of the key and the heads")
	cmd.Flags().StringVar(&name, "name", "witness", "the witness's name, part of its key")
	cmd.Flags().StringArrayVar(&logs, "log", nil, "verifier key of a log to witness; may be repeated")
	return cmd
}

// witnessKey loads the witness's key and makes it the first time.
func witnessKey(store, name string) (*witness.Signer, error) {
	if err := keys.MakePrivateDir(store); err != nil {
		return nil, err
	}
	path := filepath.Join(store, "witness.sign")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		key, err := keys.GenerateSigner()
		if err == nil {
			err = keys.WriteSigner(path, key, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	key, err := keys.LoadSigner(path, nil)
	if err != nil {
		return nil, err
	}
	public, err := key.Public().Bytes()
	if err != nil {
		return nil, err
	}
	return witness.NewSigner(name, public, key.Sign)
}

// serveUntil answers until the context ends, and lets running requests finish.
func serveUntil(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("witness: %w", err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	<-ended
	return err
}

func (a *app) auditDrillCommand() *cobra.Command {
	var live bool
	cmd := &cobra.Command{
		Use: "drill", Short: "Attack a log made for it in eighteen ways and show which layer finds what", Args: cobra.NoArgs,
		Long: "Make a log with keys, a lock and a loopback witness of its own in a temporary folder, attack\ncopies of it, and verify each. Exits 0 exactly when nothing but the named limit is missed.\nIt touches neither the site nor the bus. With --live, copies of this\nsite's own log are attacked instead, in the ways that need no key; the log is only read.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "banksman-drill.")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			if live {
				return a.drillCopy(cmd.Context(), dir)
			}
			r, err := auditor.Drill(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if err := a.print(r, func(w io.Writer) { drillTable(w, r) }); err != nil {
				return err
			}
			if !r.OK {
				return &exit{code: ExitError}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "attack copies of this site's own log")
	return cmd
}

// drillCopy attacks copies of the site's log.
func (a *app) drillCopy(ctx context.Context, dir string) error {
	l, s, err := a.site()
	if err != nil {
		return err
	}
	o := auditor.Options{Origin: s.Origin, RootKey: keys.PublicKey(s.RootKey)}
	o.AllEpochs(l)
	r, err := auditor.DrillCopy(ctx, o, dir)
	if err != nil {
		return err
	}
	err = a.print(r, func(w io.Writer) {
		var rows [][]string
		for _, d := range r.Attacks {
			found := "MISSED"
			if d.Found {
				found = "found"
			}
			rows = append(rows, []string{d.Attack, found, clip(view.Printable(d.By), 100)})
		}
		table(w, []string{"ATTACK", "", "BY"}, rows)
		fmt.Fprintf(w, "%d of %d attacks on copies of the log, %d entries, were found\n", r.Detected, len(r.Attacks), r.Size)
	})
	if err == nil && !r.OK {
		err = &exit{code: ExitError}
	}
	return err
}

// drillTable writes the matrix: D where the layer, with all before it, detects.
func drillTable(w io.Writer, r auditor.DrillReport) {
	head := []string{"ATTACK"}
	for i, layer := range r.Layers {
		if i > 0 {
			layer = "+ " + layer
		}
		head = append(head, layer)
	}
	var rows [][]string
	for _, attack := range r.Attacks {
		row := []string{attack.Attack}
		for _, found := range attack.Found {
			row = append(row, map[bool]string{true: "D", false: "-"}[found])
		}
		if attack.KnownLimit {
			row[0] += " (known limit: seal before acting)"
		}
		rows = append(rows, row)
	}
	table(w, head, rows)
	fmt.Fprintf(w, "%d of %d detected\n", r.Detected, len(r.Attacks))
}
