package proposer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
)

const (
	// window is over how long refusals of one ground are summed up.
	window = time.Minute
	// singly is how many of them are told one by one.
	singly = 5
	// waiting bounds how many wait for the bus one by one; more are summed up.
	waiting = 256
	// flushFor bounds how long a stopping proposer tells what it has held back.
	flushFor = 3 * time.Second
)

// ledger tells the log what was refused: digest and ground, never the content.
// The first few of one ground in a minute are told one by one, the others as a
// sum, so that nobody can fill the log by being refused. Add may be called from
// any goroutine; run is the only one that appends.
type ledger struct {
	bus    ledgerBus
	append func(ctx context.Context, s events.Subject, expect uint64, payload any) (uint64, error)
	actor  string
	log    *slog.Logger
	now    func() time.Time

	mu    sync.Mutex // guards the rest
	tally map[ground]*tally
	queue []events.ProposalRefused
	wake  chan struct{}
}

// ledgerBus is the part of the bus that is asked.
type ledgerBus interface {
	Last(ctx context.Context, filter string) (events.Stored, bool, error)
}

// ground is what refusals have in common that are summed up.
type ground struct {
	from events.Proposer
	code string
}

type tally struct {
	since time.Time
	told  int
	held  int
	last  events.ProposalRefused // of those held
}

// add notes one refusal.
func (l *ledger) add(r events.ProposalRefused) {
	r.Count = 1
	l.mu.Lock()
	defer l.mu.Unlock()
	g := ground{r.Proposer, r.Code}
	t := l.tally[g]
	if t == nil {
		t = &tally{since: l.now()}
		l.tally[g] = t
	}
	if t.told >= singly || len(l.queue) >= waiting {
		t.held, t.last = t.held+1, r
		return
	}
	t.told++
	l.queue = append(l.queue, r)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// close ends windows: those that are over, or all of them.
func (l *ledger) close(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for g, t := range l.tally {
		age := l.now().Sub(t.since)
		if age < window && !all {
			continue
		}
		if t.held > 0 {
			sum := t.last
			sum.Count, sum.WindowS = t.held, max(1, int(age.Seconds()))
			l.queue = append(l.queue, sum)
		}
		delete(l.tally, g)
	}
}

// next takes one off the queue.
func (l *ledger) next() (events.ProposalRefused, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return events.ProposalRefused{}, false
	}
	r := l.queue[0]
	l.queue = l.queue[1:]
	return r, true
}

// run tells what is added until ctx ends, and then the rest.
func (l *ledger) run(ctx context.Context) {
	tick := time.NewTicker(window / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.close(true)
			rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushFor)
			defer cancel()
			l.tell(rest)
			return
		case <-l.wake:
		case <-tick.C:
			l.close(false)
		}
		l.tell(ctx)
	}
}

// tell appends what is queued.
func (l *ledger) tell(ctx context.Context) {
	for {
		r, ok := l.next()
		if !ok {
			return
		}
		if err := l.store(ctx, r); err != nil {
			if ctx.Err() == nil {
				l.log.Error("a refusal could not be recorded", slog.String("code", r.Code), slog.Int("count", r.Count), slog.Any("error", err))
			}
			// It is told with the next sum of its ground.
			l.keep(r)
			return
		}
	}
}

// keep puts a refusal that was not stored back into the sums.
func (l *ledger) keep(r events.ProposalRefused) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := ground{r.Proposer, r.Code}
	t := l.tally[g]
	if t == nil {
		t = &tally{since: l.now(), told: singly}
		l.tally[g] = t
	}
	t.held, t.last = t.held+r.Count, r
}

// store appends one, behind whatever else was refused to the same proposer.
func (l *ledger) store(ctx context.Context, r events.ProposalRefused) error {
	s := events.For("proposal.refused", events.SiteScope, events.RefusalID(r.Proposer), l.actor)
	for {
		last, _, err := l.bus.Last(ctx, s.Filter())
		if err != nil {
			return err
		}
		_, err = l.append(ctx, s, last.Seq, r)
		var conflict *bus.Conflict
		if !errors.As(err, &conflict) {
			return err
		}
	}
}
