package proposer

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
)

// record is a bus that keeps what is refused; it may be away or contended.
type record struct {
	list   []events.ProposalRefused
	away   bool
	slow   int // conflicts to come
	expect uint64
}

func (r *record) Last(context.Context, string) (events.Stored, bool, error) {
	return events.Stored{Seq: r.expect}, r.expect > 0, nil
}

func (r *record) append(_ context.Context, s events.Subject, expect uint64, payload any) (uint64, error) {
	switch {
	case r.away:
		return 0, errors.New("away")
	case r.slow > 0:
		r.slow--
		r.expect++
		return 0, &bus.Conflict{}
	case expect != r.expect || s.Valid() != nil:
		return 0, errors.New("at another position")
	}
	r.expect++
	r.list = append(r.list, payload.(events.ProposalRefused))
	return r.expect, nil
}

func ledgerOf(r *record) (l *ledger, now *time.Time) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	return &ledger{
		bus: r, append: r.append, actor: "proposer", log: slog.New(slog.DiscardHandler), now: func() time.Time { return at },
		tally: map[ground]*tally{}, wake: make(chan struct{}, 1),
	}, &at
}

// count sums up what is on record of a ground.
func count(list []events.ProposalRefused, code string) (n int) {
	for _, r := range list {
		if r.Code == code {
			n += r.Count
		}
	}
	return n
}

func TestRefusalsAreSummedUp(t *testing.T) {
	r := &record{slow: 2}
	l, now := ledgerOf(r)
	for range 100 {
		l.add(events.ProposalRefused{Proposer: claude, Code: "secret", Digest: "d"})
	}
	l.add(events.ProposalRefused{Proposer: other, Code: "secret", Digest: "e"})
	l.add(events.ProposalRefused{Code: "bad_token"})
	l.tell(t.Context())
	if len(r.list) != singly+2 {
		t.Errorf("%d events, want %d", len(r.list), singly+2)
	}
	l.close(false)
	l.tell(t.Context())
	if len(r.list) != singly+2 {
		t.Errorf("a window was told before its end: %d events", len(r.list))
	}
	*now = now.Add(window)
	l.close(false)
	l.tell(t.Context())
	last := r.list[len(r.list)-1]
	if len(r.list) != singly+3 || last.Count != 100-singly || last.WindowS != 60 || count(r.list, "secret") != 101 {
		t.Errorf("%d events, the last %+v", len(r.list), last)
	}
	if len(l.tally) != 0 {
		t.Errorf("%d grounds are kept for nothing", len(l.tally))
	}
}

// Nothing is forgotten while the bus is away, and memory stays bounded.
func TestRefusalsOutliveAnOutage(t *testing.T) {
	r := &record{away: true}
	l, _ := ledgerOf(r)
	for range 1000 {
		l.add(events.ProposalRefused{Proposer: claude, Code: "secret", Digest: "d"})
		l.tell(t.Context())
	}
	if len(l.queue) > waiting || len(l.tally) > 1 {
		t.Errorf("%d wait, %d grounds", len(l.queue), len(l.tally))
	}
	r.away = false
	l.close(true)
	l.tell(t.Context())
	if n := count(r.list, "secret"); n != 1000 {
		t.Errorf("%d refusals are on record, want 1000", n)
	}
}
