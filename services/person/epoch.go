package person

import (
	"context"
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/query"
)

// CloseEpoch signs the request to close the epoch that the auditor is in, and returns its
// number. That is a person's to ask and over the bus alone: closing an epoch decides what
// the bus lets go of, so it is an event with a name under it, and only a running auditor
// can seal what comes before.
func (d *Desk) CloseEpoch(ctx context.Context, reason string) (int, error) {
	if reason != "" {
		if err := fit("close the epoch", reason); err != nil {
			return 0, err
		}
	}
	var s query.AuditStatus
	if err := d.Bus.Ask(ctx, query.Audit, struct{}{}, &s); err != nil {
		return 0, fmt.Errorf("ask the auditor for the epoch: %w", err)
	}
	subject := events.For("epoch.close_requested", events.SiteScope, events.EpochID(s.Epoch), d.Config.ActorName)
	return s.Epoch, d.say(ctx, func() (words, error) {
		last, _, err := d.Bus.Last(ctx, subject.Filter())
		return words{subject, last.Seq, events.EpochCloseRequested{Reason: reason}}, err
	})
}
