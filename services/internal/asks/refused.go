package asks

import (
	"context"
	"fmt"

	"github.com/banksman/banksman/events"
)

// Refused calls visit for every believable refusal on record, the oldest first.
func (r Reader) Refused(ctx context.Context, visit func(events.Event, *events.ProposalRefused)) error {
	const page = 256
	if err := r.Standing.Refresh(ctx); err != nil {
		return err
	}
	filter := events.PrefixStored + ".proposal." + events.SiteScope + ".*.refused.*"
	for next := uint64(1); ; {
		list, err := r.Bus.Read(ctx, next, filter, page)
		if err != nil {
			return fmt.Errorf("read what was refused: %w", err)
		}
		if len(list) == 0 {
			return nil
		}
		for _, stored := range list {
			next = stored.Seq + 1
			e, err := r.Standing.Book().Open(stored)
			if p, ok := e.Payload.(*events.ProposalRefused); ok && err == nil {
				visit(e, p)
			}
		}
	}
}
