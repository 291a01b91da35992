package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/evidence"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/view"
)

func (a *app) auditExportCommand() *cobra.Command {
	var to, tiles string
	var stamped bool
	cmd := &cobra.Command{
		Use: "export JOB --to DIR", Short: "Write the evidence of one job, or with --tiles the whole log, for others to verify", Args: cobra.MaximumNArgs(1),
		Long: "Write every event of a job, the trust files that judge it, their proofs, the signed head and\nthe proof that no event is missing into a new folder, with the words of people that they\nname, which are read from the bus. 'banksman audit verify --bundle DIR'\nand scripts/verify.sh check it anywhere, with the site's name and the root's public key.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if tiles != "" && to == "" && len(args) == 0 {
				return a.exportTiles(cmd, tiles)
			}
			if to == "" || tiles != "" || len(args) != 1 {
				return usage("give JOB and --to DIR, or --tiles DIR alone; the folder must not exist yet", "export: it is not clear what to write where")
			}
			r, err := a.openLogOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer r.Close()
			kept, done, err := a.keptTexts(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			from := evidence.Source{Log: r, Texts: kept}
			if err := a.stampedHead(&from, stamped); err != nil {
				return err
			}
			made, err := evidence.Write(cmd.Context(), from, args[0], to)
			if err != nil {
				return err
			}
			if made.Withheld > 0 {
				a.say("%d text(s) of people are missing from the bundle, which therefore does not verify as complete; export while the bus runs", made.Withheld)
			}
			return a.print(made, func(w io.Writer) {
				fmt.Fprintf(w, "job %s: %d events, and %d entries that show that none came later, in %s\nverify it with: banksman audit verify --bundle %s\n",
					made.Job, len(made.Leaves), made.Later, made.Dir, made.Dir)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "folder to make")
	cmd.Flags().BoolVar(&stamped, "stamped", false, "as of the newest head that has a time stamp, which goes with it")
	cmd.Flags().StringVar(&tiles, "tiles", "", "folder to make with the whole log as C2SP tlog-tiles, without payloads")
	return cmd
}

// keptTexts is where the words of people are, nil while no bus runs from this folder.
func (a *app) keptTexts(ctx context.Context) (kept evidence.Texts, done func(), err error) {
	l, s, err := a.site()
	if err != nil {
		return nil, nil, err
	}
	c, err := a.beside(ctx, l, s)
	if err != nil || c == nil {
		return nil, func() {}, err
	}
	return c, c.Close, nil
}

// exportTiles is audit export --tiles.
func (a *app) exportTiles(cmd *cobra.Command, dir string) error {
	r, err := a.openLog()
	if err != nil {
		return err
	}
	defer r.Close()
	done, err := evidence.WriteTiles(cmd.Context(), r, dir)
	if err != nil {
		return err
	}
	return a.print(done, func(w io.Writer) {
		fmt.Fprintf(w, "%d entries in %d files in %s\n", done.Size, done.Files, done.Dir)
	})
}

// proven is what audit prove --json prints.
type proven struct {
	Job    string   `json:"job"`
	Size   int64    `json:"size"`
	Leaves []int64  `json:"leaves"`
	Proofs []string `json:"proofs"` // C2SP tlog-proof texts, one for each leaf
}

func (a *app) auditProveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "prove JOB", Short: "Print the inclusion proof of each event of a job", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.openLogOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer r.Close()
			place, err := evidence.Find(cmd.Context(), r, args[0])
			if err != nil {
				return err
			}
			out := proven{Job: place.Job, Size: place.Checkpoint.Size, Leaves: place.Leaves}
			for _, leaf := range place.Leaves {
				p, err := evidence.Prove(r, leaf, place.Checkpoint)
				if err != nil {
					return err
				}
				out.Proofs = append(out.Proofs, string(p.Text()))
			}
			return a.print(out, func(w io.Writer) {
				for i, text := range out.Proofs {
					if i > 0 {
						fmt.Fprintln(w)
					}
					fmt.Fprint(w, text)
				}
			})
		},
	}
}

// openLog opens the newest log of the site's folder for reading.
func (a *app) openLog() (*tlog.Reader, error) {
	l, err := a.layout()
	if err != nil {
		return nil, err
	}
	return tlog.OpenReader(l.AuditLog())
}

// openLogOf opens the log that holds all of a job: that of the newest epoch in which it
// was open, since a log begins with the jobs that were carried into it.
func (a *app) openLogOf(ctx context.Context, job string) (*tlog.Reader, error) {
	l, err := a.layout()
	if err != nil {
		return nil, err
	}
	for n := l.Epoch(); ; n-- {
		r, err := tlog.OpenReader(l.AuditLogOf(n))
		if err != nil {
			return nil, err
		}
		_, err = evidence.Find(ctx, r, job)
		if err == nil || n == events.FirstEpoch || !errors.Is(err, evidence.ErrNoJob) {
			return r, nil // what is wrong shows again when the job is taken out
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
}

// pins are the two things that a verifier must know from elsewhere.
type pins struct{ origin, root string }

func (p *pins) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.origin, "origin", "", "the site's name, where no site's folder tells it")
	cmd.Flags().StringVar(&p.root, "root-key", "", "the root's public key, where no site's folder tells it")
}

// fill takes what the flags left out from the site's folder.
func (p *pins) fill(a *app) error {
	if (p.origin == "") != (p.root == "") {
		return usage("give both, or neither inside a site's folder", "--origin and --root-key belong together")
	}
	if p.origin != "" {
		return nil
	}
	_, s, err := a.site()
	p.origin, p.root = s.Origin, s.RootKey
	return err
}

// verifyBundle is audit verify --bundle.
func (a *app) verifyBundle(cmd *cobra.Command, o evidence.Options, p pins) error {
	if err := p.fill(a); err != nil {
		return err
	}
	o.Origin, o.RootKey = p.origin, keys.PublicKey(p.root)
	r, err := evidence.Verify(cmd.Context(), o)
	if err != nil {
		return err
	}
	err = a.print(r, func(w io.Writer) {
		printRows(w, r.Integrity, r.Authenticity, r.Completeness, r.Freshness)
		fmt.Fprintf(w, "job %s, %d events in a head of %d entries, root %s\n", r.Job, r.Events, r.Size, r.Root)
		if r.FirstBadLeaf != nil {
			fmt.Fprintf(w, "first bad leaf %d\n", *r.FirstBadLeaf)
		}
		if r.Stamp != nil {
			fmt.Fprintf(w, "the head existed at %s, says %s\n", r.Stamp.Time.Format(time.RFC3339), view.Printable(r.Stamp.TSA))
			if !r.Stamp.Vouched {
				fmt.Fprintln(w, "note: nobody vouches for who made the stamp; name the authority's certificate with --tsa-ca")
			}
		}
		if len(r.Erased) > 0 {
			fmt.Fprintf(w, "note: the words that leaves %v name were erased by order\n", r.Erased)
		}
		if len(r.Withheld) > 0 {
			fmt.Fprintf(w, "note: the headers or payload of leaves %v are withheld\n", r.Withheld)
		}
	})
	if err != nil {
		return err
	}
	if code := r.ExitCode(); code != ExitOK {
		return &exit{code: code}
	}
	return nil
}
