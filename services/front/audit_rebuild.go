package front

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/auditor"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
)

func (a *app) auditRebuildCommand() *cobra.Command {
	var to string
	var replace bool
	cmd := &cobra.Command{
		Use: "rebuild", Short: "Make the log and the index again from the stream and compare", Args: cobra.NoArgs,
		Long: "Make the log of this epoch again from the stream, and the index of jobs from the log, into a\nnew folder, and compare both with the site's: the log byte for byte under its signed head.\nThe bus has to run. Exits 0 when they are the same, else 1. With --replace, which no auditor\nmay run beside ('banksman bus' runs the bus alone), the index, and a log that is damaged or\nlost, are put in place; a log only if it leads to the head that is kept elsewhere.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.rebuild(cmd.Context(), to, replace)
			if err != nil {
				return err
			}
			if err := a.print(r, func(w io.Writer) { printRebuilt(w, r) }); err != nil {
				return err
			}
			if !r.Same() && !r.ReplacedIndex {
				return &exit{code: ExitError}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "new folder to keep what is made (default: a temporary one)")
	cmd.Flags().BoolVar(&replace, "replace", false, "put what was made in place")
	return cmd
}

func (a *app) rebuild(ctx context.Context, to string, replace bool) (auditor.Rebuilt, error) {
	c, l, s, err := a.reader(ctx)
	if err != nil {
		return auditor.Rebuilt{}, err
	}
	defer c.Close()
	o := auditor.RebuildOptions{Layout: l, Origin: s.Origin, RootKey: keys.PublicKey(s.RootKey), Stream: c, Dir: to, Replace: replace}
	audit := auditor.DefaultConfig()
	if err := config.Load(l.Config(), config.Section{Name: "auditor", Into: &audit}); err != nil {
		return auditor.Rebuilt{}, err
	}
	o.Elsewhere = audit.KeepsElsewhere()
	if o.Own, err = ownKey(l, audit.ActorName); err != nil {
		return auditor.Rebuilt{}, err
	}
	running, err := host.ReadStatus(ctx, l)
	if err != nil {
		return auditor.Rebuilt{}, err
	}
	for _, r := range running.Roles {
		o.Running = o.Running || r.Role == "auditor"
	}
	if to == "" { // beside the log, so that it can be moved into its place
		dir, err := os.MkdirTemp(l.State(), "rebuild-")
		if err != nil {
			return auditor.Rebuilt{}, err
		}
		defer os.RemoveAll(dir)
		o.Dir = filepath.Join(dir, "made")
	}
	r, err := auditor.Rebuild(ctx, o)
	if to == "" {
		r.Dir = ""
	}
	return r, err
}

// ownKey is the public half of the auditor's signing key.
func ownKey(l site.Layout, actor string) (keys.PublicKey, error) {
	own, err := keys.LoadSigner(l.SignKey(actor), nil)
	if err != nil {
		return "", err
	}
	return own.Public(), nil
}

func printRebuilt(w io.Writer, r auditor.Rebuilt) {
	fmt.Fprintf(w, "epoch %d: the stream leads to %d leaves, through event %d\n", r.Epoch, r.Size, r.ThroughSeq)
	fmt.Fprintf(w, "log: %s, %d sealed leaves compared", r.Log, r.Sealed)
	if r.First != nil {
		fmt.Fprintf(w, ", the first that differs is leaf %d", *r.First)
	}
	fmt.Fprintf(w, "\nindex: %s\n", r.Index)
	if r.Detail != "" {
		fmt.Fprintf(w, "%s\n", r.Detail)
	}
	if r.Dir != "" {
		fmt.Fprintf(w, "what was made lies in %s\n", r.Dir)
	}
	if r.ReplacedLog != "" {
		fmt.Fprintf(w, "the log was put in place, the old one lies in %s\n", r.ReplacedLog)
	}
	if r.ReplacedIndex {
		fmt.Fprintln(w, "the index was put in place; start the auditor")
	}
}
