package front

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/person"
)

// closeWait is how long a request to close an epoch waits for the next one.
const closeWait = 45 * time.Second

// epochClosed is what audit close-epoch says.
type epochClosed struct {
	Closed int   `json:"closed"`
	Epoch  int   `json:"epoch"` // that is open now
	Size   int64 `json:"size"`  // leaves of its log
}

func (a *app) auditCloseEpochCommand() *cobra.Command {
	var reason, passphrase string
	cmd := &cobra.Command{
		Use: "close-epoch", Short: "Close the epoch as an administrator: begin a new log, and let the bus go of what is over", Args: cobra.NoArgs,
		Long: "Ask, signed with your own key, that the epoch be closed now instead of when it is full. Its log\nis sealed and stays for ever; the log of the next epoch begins with what is still in force:\nopen jobs, grants, bars, stop orders, projects, alerts, policies and trust files. The bus\nlets go of the rest. Jobs that run go on; the bus is away for a moment.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.closeEpoch(cmd.Context(), reason, passphrase) },
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log")
	passphraseFlag(cmd, &passphrase)
	return cmd
}

func (a *app) closeEpoch(ctx context.Context, reason, passphrase string) error {
	return a.atDesk(ctx, passphrase, func(desk *person.Desk, conn *bus.Conn) error {
		told := epochClosed{}
		var err error
		if told.Closed, err = desk.CloseEpoch(ctx, reason); err != nil {
			return err
		}
		s, done, _ := auditBecomes(ctx, conn, closeWait, func(s *query.AuditStatus) bool { return s.Epoch > told.Closed })
		if !done {
			return &exit{code: ExitPending, err: fmt.Errorf("the request is stored, but %s is still open; see 'banksman audit status' and the auditor's log", events.EpochID(told.Closed))}
		}
		told.Epoch, told.Size = s.Epoch, s.Size
		return a.print(told, func(w io.Writer) {
			fmt.Fprintf(w, "%s is closed; %s begins with %d entries\n", events.EpochID(told.Closed), events.EpochID(told.Epoch), told.Size)
		})
	})
}
