package front

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/texts"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/person"
)

func (a *app) textCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "text", Short: "List and erase the words of people that are kept beside the log", GroupID: "prove", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.textListCommand(), a.textEraseCommand())
	return cmd
}

// keptText is a text that an event about a job names.
type keptText struct {
	Digest string      `json:"digest"`
	Bytes  int         `json:"bytes"`
	Seq    uint64      `json:"seq"` // of the first event that names it
	Kind   events.Kind `json:"kind"`
	Actor  string      `json:"actor"`
	At     time.Time   `json:"at"`
	Text   string      `json:"text"` // or (erased), (withheld), (altered)
}

func (a *app) textListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls JOB", Short: "List the texts that the events of a job, and what was said about it, name", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, l, s, err := a.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			list, err := a.textsOf(cmd.Context(), c, l, s, args[0])
			if err != nil {
				return err
			}
			return a.print(map[string][]keptText{"texts": list}, func(w io.Writer) {
				var rows [][]string
				for _, t := range list {
					rows = append(rows, []string{t.Digest, string(t.Kind), t.Actor, t.At.Format(time.RFC3339), clip(view.Printable(t.Text), 60)})
				}
				table(w, []string{"DIGEST", "IN", "BY", "AT", "TEXT"}, rows)
			})
		},
	}
}

// textsOf lists the texts of a job, each once.
func (a *app) textsOf(ctx context.Context, c *bus.Conn, l site.Layout, s host.SiteConfig, prefix string) ([]keptText, error) {
	found, err := a.find(ctx, c, prefix)
	if err != nil {
		return nil, err
	}
	history, err := c.History(ctx, found.Job.Job)
	if err != nil {
		return nil, err
	}
	for next := uint64(1); ; {
		page, err := c.Read(ctx, next, events.Filter("ask", found.Job.Job), 64)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		history, next = append(history, page...), page[len(page)-1].Seq+1
	}
	r := texts.Reader{Bus: c, Standing: host.NewStanding(c, s, l)}
	if err := r.Standing.Refresh(ctx); err != nil {
		return nil, err
	}
	list, known := []keptText{}, map[string]bool{}
	for _, st := range history {
		e, err := r.Standing.Book().Open(st)
		if err != nil {
			continue
		}
		for _, t := range events.TextsOf(e.Payload) {
			if !known[t.Digest] {
				known[t.Digest] = true
				list = append(list, keptText{t.Digest, t.Bytes, e.Seq, e.Kind, e.Subject.Actor, e.Time.UTC(), t.String()})
			}
		}
	}
	var places []*string
	for i := range list {
		places = append(places, &list[i].Text)
	}
	return list, r.Fill(ctx, places...)
}

func (a *app) textEraseCommand() *cobra.Command {
	var file, reason, basis string
	cmd := &cobra.Command{
		Use: "erase DIGEST... --reason TEXT", Short: "Delete texts for good; the log keeps their digests, and every proof stays valid", Args: cobra.MinimumNArgs(1),
		Long: "Sign an order that texts be erased. Once it is under a signed head, the auditor deletes them;\nwaits up to 15 s for that and exits 75 if it is still to come. Wherever an event quotes such a\ntext, \"(erased)\" is shown from then on. The reason of the order stays in the log for ever, so\nit should repeat nothing. Needs the admin's role.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return usage("say why; it goes on record", "text erase: --reason is required")
			}
			return a.atDesk(cmd.Context(), file, func(d *person.Desk, c *bus.Conn) error {
				for _, digest := range args {
					if err := d.Erase(cmd.Context(), digest, reason, basis); err != nil {
						return err
					}
				}
				left, err := gone(cmd.Context(), c, args)
				if err != nil {
					return err
				}
				if left > 0 {
					return &exit{code: ExitPending, err: &agentapi.Error{Code: "not_erased_yet", Message: fmt.Sprintf("the order is signed; %d text(s) are still to be deleted", left), Next: "the auditor deletes them when the order is sealed; look with 'banksman audit status'"}}
				}
				return a.print(map[string][]string{"erased": args}, func(w io.Writer) { fmt.Fprintf(w, "%d text(s) erased\n", len(args)) })
			})
		},
	}
	passphraseFlag(cmd, &file)
	cmd.Flags().StringVar(&reason, "reason", "", "why (required)")
	cmd.Flags().StringVar(&basis, "basis", "", "the legal ground, such as \"GDPR Art. 17(1)(a)\"")
	return cmd
}

// gone waits until texts are deleted, and says how many are not.
func gone(ctx context.Context, c *bus.Conn, digests []string) (left int, err error) {
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		there, err := c.Texts(ctx, digests)
		if err != nil || len(there) == 0 {
			return 0, err
		}
		select {
		case <-tick.C:
		case <-deadline:
			return len(there), nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
