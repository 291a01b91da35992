package front

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
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
	l, s, c, err := a.person()
	if err != nil {
		return err
	}
	conn, err := a.connect(ctx, l, s, c.ActorName, events.RolePerson)
	if err != nil {
		return err
	}
	defer conn.Close()
	desk := &person.Desk{Config: c, Layout: l, Bus: conn, Standing: host.NewStanding(conn, s, l), Ask: askPassphrase(passphrase)}
	told := acknowledged{}
	if told.Faults, err = desk.Faults(ctx); err != nil {
		return err
	}
	if !a.json {
		printFaults(a.err, told.Faults)
	}
	if err := desk.Acknowledge(ctx, told.Faults, reason); err != nil {
		return err
	}
	if told.Dispatch, err = awaitDispatch(ctx, conn, told.Faults); err != nil {
		return err
	}
	return a.print(told, func(w io.Writer) {
		fmt.Fprintf(w, "%d fault(s) acknowledged; dispatch is %s\n", len(told.Faults), told.Dispatch)
	})
}

// awaitDispatch waits until the auditor has read the acknowledgement, and says whether
// dispatch is open then.
func awaitDispatch(ctx context.Context, conn query.Asker, acked []query.Fault) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, ackWait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var s query.AuditStatus
		if err := conn.Ask(ctx, query.Audit, struct{}{}, &s); err != nil {
			return "", fmt.Errorf("the acknowledgement is stored; see 'banksman audit status': %w", err)
		}
		still := false
		for _, f := range s.Faults {
			for _, one := range acked {
				still = still || f.Code == one.Code && f.Seq == one.Seq
			}
		}
		if !still {
			return s.Dispatch, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return s.Dispatch, nil
		}
	}
}

// printFaults lists what holds dispatch closed, and what to do.
func printFaults(w io.Writer, faults []query.Fault) {
	for _, f := range faults {
		fmt.Fprintf(w, "fault %s: %s; %s\n", f.Code, view.Printable(f.Detail), f.Next)
	}
}
