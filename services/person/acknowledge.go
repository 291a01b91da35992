package person

import (
	"context"
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/site"
)

// Codes of refusals about faults.
const (
	CodeNoFault   = "no_open_fault"
	CodeNotHealed = "not_healed"
)

// Faults asks the auditor what holds dispatch closed.
func (d *Desk) Faults(ctx context.Context) ([]query.Fault, error) {
	var s query.AuditStatus
	if err := d.Bus.Ask(ctx, query.Audit, struct{}{}, &s); err != nil {
		return nil, fmt.Errorf("ask the auditor what is wrong: %w", err)
	}
	return s.Faults, nil
}

// Acknowledge signs that faults are known, so that dispatch opens again. When one of
// them is such that nobody's word heals it, nothing is signed.
func (d *Desk) Acknowledge(ctx context.Context, faults []query.Fault, reason string) error {
	if err := fit("acknowledge a fault", reason); err != nil {
		return err
	}
	if len(faults) == 0 {
		return refuse(CodeNoFault, "see 'banksman audit status'", "acknowledge a fault: none is open")
	}
	payload := events.GapAcknowledged{Reason: reason}
	for _, f := range faults {
		if !f.Acknowledgeable {
			return refuse(CodeNotHealed, f.Next, "acknowledge the fault %s: %s", f.Code, f.Detail)
		}
		payload.Faults = append(payload.Faults, events.FaultName{Code: f.Code, Seq: f.Seq, To: f.To})
	}
	subject := events.For("gap.acknowledged", events.SiteScope, site.Epoch, d.Config.ActorName)
	return d.say(ctx, func() (words, error) {
		last, _, err := d.Bus.Last(ctx, subject.Filter())
		return words{subject, last.Seq, payload}, err
	})
}
