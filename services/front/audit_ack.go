package front

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
	"github.com/banksman/banksman/services/person"
)

// ackWait is how long an acknowledgement waits for dispatch to open.
const ackWait = 15 * time.Second

// acknowledged is what audit ack says.
type acknowledged struct {
	Faults   []query.Fault `json:"faults"` // that were acknowledged
	Dispatch string        `json:"dispatch"`
}

func (a *app) auditAckCommand() *cobra.Command {
	var reason, passphrase string
	cmd := &cobra.Command{
		Use: "ack --reason TEXT", Short: "Say as an administrator that what closed dispatch is known, and open it again", Args: cobra.NoArgs,
		Long: "Say, signed with your own key, that the faults which 'banksman audit status' lists are\nknown, so that jobs start again. What is lost stays lost, and the log goes on saying so. A\nfault that nobody's word heals, such as a stream that is not the audited one, is refused.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return usage("say for the log why jobs may start again", "audit ack: --reason is required")
			}
			return a.acknowledge(cmd.Context(), reason, passphrase)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why jobs may start again, for the log")
	passphraseFlag(cmd, &passphrase)
	return cmd
}

func (a *app) acknowledge(ctx context.Context, reason, passphrase string) error {
	return a.atDesk(ctx, passphrase, func(desk *person.Desk, conn *bus.Conn) error {
		told := acknowledged{}
		var err error
		if told.Faults, err = desk.Faults(ctx); err != nil {
			return err
		}
		if !a.json {
			printFaults(a.err, told.Faults)
		}
		if err := desk.Acknowledge(ctx, told.Faults, reason); err != nil {
			return err
		}
		s, _, err := auditBecomes(ctx, conn, ackWait, func(s *query.AuditStatus) bool { return !slices.ContainsFunc(s.Faults, told.names) })
		if err != nil {
			return fmt.Errorf("the acknowledgement is stored; see 'banksman audit status': %w", err)
		}
		told.Dispatch = s.Dispatch
		return a.print(told, func(w io.Writer) {
			fmt.Fprintf(w, "%d fault(s) acknowledged; dispatch is %s\n", len(told.Faults), told.Dispatch)
		})
	})
}

// names says whether a fault is one of those that were acknowledged.
func (a *acknowledged) names(f query.Fault) bool {
	return slices.ContainsFunc(a.Faults, func(one query.Fault) bool { return f.Code == one.Code && f.Seq == one.Seq })
}

// auditBecomes asks the auditor until it says what is waited for, and returns what it
// said last. An auditor that is away for a moment is asked again; the error is that of
// one who has not answered at all.
func auditBecomes(ctx context.Context, conn query.Asker, wait time.Duration, so func(*query.AuditStatus) bool) (s query.AuditStatus, done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	heard := false
	for {
		var now query.AuditStatus
		if err = conn.Ask(ctx, query.Audit, struct{}{}, &now); err == nil {
			if s, heard = now, true; so(&s) {
				return s, true, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if heard {
				err = nil
			}
			return s, false, err
		}
	}
}

// printFaults lists what holds dispatch closed, and what to do.
func printFaults(w io.Writer, faults []query.Fault) {
	for _, f := range faults {
		fmt.Fprintf(w, "fault %s: %s; %s\n", f.Code, view.Printable(f.Detail), f.Next)
	}
}
