package embed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/banksman/banksman/events"
)

// errEpoch says that the stream holds what an epoch does not carry.
var errEpoch = errors.New("an epoch has begun")

// epoch is the newest epoch whose log is known to hold everything from before it: it was
// opened, and the auditor has published a head that covers the opening. It is the first
// one while there is none.
func (b *embedded) epoch(ctx context.Context) (int, *events.EpochOpened, error) {
	admin := b.server.Admin()
	st, found, err := admin.Last(ctx, events.PrefixStored+".epoch.*.*.opened.*")
	if err != nil || !found {
		return events.FirstEpoch, nil, err
	}
	if err := b.standing.Refresh(ctx); err != nil {
		return 0, nil, err
	}
	e, err := b.book.Open(st)
	open, ok := e.Payload.(*events.EpochOpened)
	if err != nil || !ok || open.Follows(e, open.Epoch-1) != nil {
		return events.FirstEpoch, nil, nil // the auditor reports it
	}
	head, found, err := admin.Last(ctx, events.For("audit.sealed", events.SiteScope, events.EpochID(open.Epoch), "*").String())
	if err != nil || !found {
		return events.FirstEpoch, nil, err
	}
	sealed, err := b.book.Open(head)
	p, ok := sealed.Payload.(*events.AuditSealed)
	if err != nil || !ok || p.ThroughSeq < st.Seq {
		return events.FirstEpoch, nil, nil
	}
	return open.Epoch, open, nil
}

// thinned is the epoch for which the stream was thinned last. The note may be lost: then
// it is done again, which changes nothing.
func (b *embedded) thinned() int {
	text, err := os.ReadFile(b.layout.BusEpoch())
	if err != nil {
		return events.FirstEpoch
	}
	n, ok := events.ParseEpoch(strings.TrimSpace(string(text)))
	if !ok {
		return events.FirstEpoch
	}
	return n
}

// thin lets go of what the newest epoch does not carry. Nobody is connected.
func (b *embedded) thin(ctx context.Context) error {
	n, open, err := b.epoch(ctx)
	if err != nil || n <= b.thinned() {
		return err
	}
	if err := b.server.Thin(ctx, open.Carries()); err != nil {
		return fmt.Errorf("thin the stream for %s: %w", events.EpochID(n), err)
	}
	if err := renameio.WriteFile(b.layout.BusEpoch(), []byte(events.EpochID(n)+"\n"), 0o600); err != nil {
		return fmt.Errorf("note that the stream was thinned for %s: %w", events.EpochID(n), err)
	}
	return nil
}
