package front

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/person"
)

// approveFlags are what may be said beside the jobs.
type approveFlags struct {
	file   string
	digest string
	like   string
	yes    bool
}

func (a *app) approveCommand() *cobra.Command {
	var f approveFlags
	cmd := &cobra.Command{
		Use: "approve JOB...", Short: "Say yes to exactly what is shown, with your key", GroupID: "decide", Args: cobra.ArbitraryArgs,
		Long: "Say yes to exactly what is shown: the digest of what a worker found, which covers the\nproposal, is signed with your own key. Waits up to 10 s for a worker to report what would run,\nthen exits 75. Several jobs are listed and counted first, and approved after a yes on the\nterminal or with --yes; --all-like JOB lists every waiting job of the same proposer, rule,\nprogram, folder and pool.",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.like == "" && len(args) == 0:
				return usage("list what waits with 'banksman inbox'", "approve: name a job")
			case f.like != "" && len(args) > 0:
				return usage("", "approve: --all-like JOB takes no other job")
			case f.digest != "" && (f.like != "" || len(args) > 1):
				return usage("approve them one by one", "approve: --digest belongs to one job")
			case f.like == "" && len(args) == 1:
				return a.decide(cmd.Context(), args[0], f.file, func(ctx context.Context, d *person.Desk, id string) (lifecycle.Job, error) {
					return d.ApproveDigest(ctx, id, f.digest)
				})
			}
			return a.approveAll(cmd.Context(), f, args)
		},
	}
	passphraseFlag(cmd, &f.file)
	cmd.Flags().StringVar(&f.digest, "digest", "", "refuse unless the digest of what would run begins so; at least 8 digits; a rule may demand it")
	cmd.Flags().StringVar(&f.like, "all-like", "", "every waiting job like this one")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "approve several without asking on the terminal")
	return cmd
}

// approveAll lists and counts jobs, asks once, and approves each as it was
// listed: one that has become another since is refused.
func (a *app) approveAll(ctx context.Context, f approveFlags, args []string) error {
	return a.atDesk(ctx, f.file, func(d *person.Desk, c *bus.Conn) error {
		d.Show = nil // the list is what is shown
		list, err := a.chosen(ctx, c, f.like, args)
		if err != nil {
			return err
		}
		if err := a.agreed(list, f.yes); err != nil {
			return err
		}
		done, failed := []view.Detail{}, 0
		for _, j := range list {
			after, err := approveListed(ctx, d, j)
			if err != nil {
				failed++
				report(a.err, a.json, err)
				continue
			}
			v := view.DetailOf(after)
			if err := a.fill(ctx, c, v.Words()...); err != nil {
				return err
			}
			done = append(done, v)
		}
		err = a.print(map[string][]view.Detail{"jobs": done}, func(w io.Writer) {
			for _, j := range done {
				fmt.Fprintf(w, "%s %s\n", j.Job.Job, j.Status)
			}
		})
		if err == nil && failed > 0 {
			err = &exit{code: ExitError, err: &agentapi.Error{Code: "some_failed", Message: fmt.Sprintf("approve %d jobs: %d were not approved", len(list), failed), Next: "the lines above say why"}}
		}
		return err
	})
}

func approveListed(ctx context.Context, d *person.Desk, j view.Detail) (lifecycle.Job, error) {
	if j.Resolution == nil {
		return lifecycle.Job{}, &agentapi.Error{Code: person.CodeUnresolved, Message: fmt.Sprintf("approve job %s: no worker had reported what would run when the list was made", j.Job.Job), Next: "approve it by itself"}
	}
	return d.ApproveListed(ctx, j.Job.Job, j.Resolution.Digest)
}

// chosen are the jobs that were named, or those like one.
func (a *app) chosen(ctx context.Context, c *bus.Conn, like string, args []string) ([]view.Detail, error) {
	if like == "" {
		var list []view.Detail
		for _, id := range args {
			j, err := a.find(ctx, c, id)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(list, func(o view.Detail) bool { return o.Job.Job == j.Job.Job }) {
				list = append(list, j)
			}
		}
		return list, nil
	}
	model, err := a.find(ctx, c, like)
	if err != nil {
		return nil, err
	}
	if model.Status != lifecycle.Pending {
		return nil, &agentapi.Error{Code: "already_decided", Message: fmt.Sprintf("approve all like job %s: it is %s", model.Job.Job, model.Status), Next: "name one that waits"}
	}
	var list []view.Detail
	err = query.Each(ctx, c, query.List{Status: []lifecycle.Status{lifecycle.Pending}}, func(id string) error {
		j, err := a.find(ctx, c, id)
		if err == nil && alike(model, j) {
			list = append(list, j)
		}
		return err
	})
	slices.Reverse(list) // the oldest first
	return list, err
}

// alike says whether a person who looks at one of two jobs knows the other, but
// for its arguments, which are listed.
func alike(a, b view.Detail) bool {
	rule := func(j view.Detail) string {
		if j.Ruling == nil {
			return ""
		}
		return j.Ruling.Rule
	}
	return b.Status == lifecycle.Pending && a.Proposer == b.Proposer && a.Pool == b.Pool && a.Cwd == b.Cwd && rule(a) == rule(b) &&
		len(a.Argv) > 0 && len(b.Argv) > 0 && a.Argv[0] == b.Argv[0]
}

// agreed lists what is about to be approved, whole, and asks once.
func (a *app) agreed(list []view.Detail, yes bool) error {
	for i, j := range list {
		a.say("%d. %s %s", i+1, j.Job.Job, view.Command(j.Argv))
		digest := "not resolved"
		if j.Resolution != nil {
			digest = fmt.Sprintf("digest %.16s", j.Resolution.Digest)
		}
		a.say("   in %s, proposed by %s, %s", view.Printable(j.Cwd), view.Printable(j.Proposer), digest)
	}
	a.say("%d job(s) to approve", len(list))
	if yes || len(list) == 0 {
		return nil
	}
	if !onTerminal(a.in) {
		return usage("look at the list and give --yes", "approve %d jobs: there is no terminal to ask on", len(list))
	}
	fmt.Fprintf(a.err, "banksman: approve all %d? Type yes: ", len(list))
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(line) != "yes" {
		return &exit{code: ExitError, err: &agentapi.Error{Code: "not_agreed", Message: "nothing was approved"}}
	}
	return nil
}

// onTerminal says whether a person may be there to answer: the file is a
// character device other than the one that is always empty.
func onTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
