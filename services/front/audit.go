package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/auditor"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/evidence"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/internal/witness"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Look at the log and verify it", GroupID: "prove", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.auditStatusCommand(), a.auditVerifyCommand(), a.auditExportCommand(), a.auditProveCommand(),
		a.auditAckCommand(), a.auditRebuildCommand(), a.auditDrillCommand(), a.auditWitnessCommand(), a.auditAnchorCommand(), a.auditCloseEpochCommand(), a.auditRelockCommand())
	return cmd
}

func (a *app) auditStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say how far the log is sealed, and what holds dispatch closed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := ask[query.AuditStatus](cmd.Context(), a, query.Audit, struct{}{})
			if err != nil {
				return err
			}
			return a.print(s, func(w io.Writer) {
				fmt.Fprintf(w, "epoch %d: %d entries, sealed through event %d of %d at %s\nroot %s\ndispatch %s, %d violations, %d gaps\n",
					s.Epoch, s.Size, s.ThroughSeq, s.LastSeq, s.SealedAt.Format(time.RFC3339), s.Root, s.Dispatch, s.Violations, s.Gaps)
				printFaults(w, s.Faults)
			})
		},
	}
}

func (a *app) auditVerifyCommand() *cobra.Command {
	var log, bundle, anchor, witnesses, tsaCA string
	var maxAge time.Duration
	var pinned pins
	cmd := &cobra.Command{
		Use: "verify", Short: "Verify the log: integrity, authenticity, completeness, freshness", Args: cobra.NoArgs,
		Long: "Verify the log from its own files, without trusting any service. Beside a running bus it\nalso checks that the signed head covers the newest event, waiting up to 5 s for the seal.\nExits 0 only when all four verdicts are ok, 3 when nothing but freshness is unknown, else 1.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			roots, err := certificates(tsaCA)
			if err != nil {
				return err
			}
			switch {
			case bundle != "" && log != "":
				return usage("verify one at a time", "--bundle and --log exclude each other")
			case bundle != "":
				return a.verifyBundle(cmd, evidence.Options{Dir: bundle, MaxAge: maxAge, TSARoots: roots}, pinned)
			case pinned != pins{}:
				return usage("inside a site's folder they are known", "--origin and --root-key go with --bundle")
			}
			l, s, err := a.site()
			if err != nil {
				return err
			}
			o := auditor.Options{Origin: s.Origin, RootKey: keys.PublicKey(s.RootKey), MaxAge: maxAge, TSARoots: roots}
			o.AllEpochs(l)
			if err := moreToBelieve(&o, anchor, witnesses); err != nil {
				return err
			}
			if log != "" {
				o.LogDir, o.HeadFile, o.Before = log, "", nil // the site's head says nothing about a copy
			} else {
				done, err := a.newest(cmd.Context(), l, s, &o)
				if err != nil {
					return err
				}
				defer done()
			}
			bar := progress{w: a.err, on: terminal(a.err)}
			o.Progress = bar.show
			r, err := auditor.Verify(cmd.Context(), o)
			bar.end()
			if err != nil {
				return err
			}
			if err := a.print(r, func(w io.Writer) { printVerdicts(w, r) }); err != nil {
				return err
			}
			if code := r.ExitCode(); code != ExitOK {
				return &exit{code: code}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&anchor, "checkpoint", "", "a signed head that was kept elsewhere; the log must have grown out of it")
	cmd.Flags().StringVar(&witnesses, "witness-policy", "", "policy file whose quorum must have cosigned the head; witnesses with a URL are asked")
	cmd.Flags().StringVar(&tsaCA, "tsa-ca", "", "certificates, in PEM, that vouch for time-stamping authorities")
	cmd.Flags().StringVar(&bundle, "bundle", "", "verify this bundle of one job instead, offline")
	pinned.flags(cmd)
	cmd.Flags().StringVar(&log, "log", "", "verify this copy of a log folder instead, offline")
	cmd.Flags().DurationVar(&maxAge, "max-age", 24*time.Hour, "how old the head may be when no bus can be asked")
	return cmd
}

// moreToBelieve reads what a verification is given beside the log.
func moreToBelieve(o *auditor.Options, anchor, witnesses string) (err error) {
	if anchor != "" {
		if o.Anchor, err = os.ReadFile(anchor); err != nil {
			return fmt.Errorf("--checkpoint: %w", err)
		}
	}
	if witnesses == "" {
		return nil
	}
	text, err := os.ReadFile(witnesses)
	if err != nil {
		return fmt.Errorf("--witness-policy: %w", err)
	}
	p, err := witness.ParsePolicy(text)
	if err != nil {
		return err
	}
	o.Witnesses, o.AskWitnesses = &p, true
	return nil
}

// newest lets the verification ask the bus, where one runs from this folder or
// answers at its address.
func (a *app) newest(ctx context.Context, l site.Layout, s host.SiteConfig, o *auditor.Options) (done func(), err error) {
	c, err := a.beside(ctx, l, s)
	if err != nil || c == nil {
		return func() {}, err
	}
	o.Bus, o.Texts = auditor.NewestOf(c), c
	return c.Close, nil
}

// beside connects to the bus where one runs from this folder or answers at its address,
// nil where none does.
func (a *app) beside(ctx context.Context, l site.Layout, s host.SiteConfig) (*bus.Conn, error) {
	running, err := host.ReadStatus(ctx, l)
	if err != nil || len(running.Roles) == 0 {
		return nil, err
	}
	c, err := a.connect(ctx, l, s, "reader", events.RoleReader)
	if errors.Is(err, bus.ErrOutage) || errors.Is(err, context.DeadlineExceeded) {
		a.say("roles run from %s, but the bus does not answer; going on offline", l.Dir)
		return nil, nil
	}
	return c, err
}

// printRows writes the four verdicts for people.
func printRows(w io.Writer, integrity, authenticity, completeness, freshness evidence.Verdict) {
	var rows [][]string
	for _, v := range []struct {
		name string
		evidence.Verdict
	}{{"integrity", integrity}, {"authenticity", authenticity}, {"completeness", completeness}, {"freshness", freshness}} {
		state := "FAILED"
		if v.OK {
			state = "ok"
		}
		rows = append(rows, []string{v.name, state, v.Reason})
	}
	table(w, []string{"VERDICT", "", "REASON"}, rows)
}

// printVerdicts writes the report for people.
func printVerdicts(w io.Writer, r auditor.Report) {
	printRows(w, r.Integrity, r.Authenticity, r.Completeness, r.Freshness)
	for _, e := range r.Epochs {
		fmt.Fprintf(w, "%s: %d entries, root %s, ended by %s\n", e.Origin, e.Size, e.Root, e.EndedBy)
	}
	fmt.Fprintf(w, "%d entries, root %s\n", r.Size, r.Root)
	if r.FirstBadLeaf != nil && r.FirstBadIn != "" {
		fmt.Fprintf(w, "first bad leaf %d of %s\n", *r.FirstBadLeaf, r.FirstBadIn)
	} else if r.FirstBadLeaf != nil {
		fmt.Fprintf(w, "first bad leaf %d\n", *r.FirstBadLeaf)
	}
	for _, s := range r.Stamps {
		fmt.Fprintf(w, "the head of %d entries existed at %s, says %s\n", s.Size, s.Time.Format(time.RFC3339), view.Printable(s.TSA))
	}
	if r.Erased > 0 {
		fmt.Fprintf(w, "%d text(s) of people are kept, %d were erased by order\n", r.Texts, r.Erased)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
}
