package proposer

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// Codes of refusals by quota.
const (
	codeRate = "rate_limited"
	codeOpen = "too_many_open"
)

const (
	// recountEvery bounds how often the index is asked for what is open.
	recountEvery = time.Second
	// openAgainS is when a proposer that has too many open requests is told to
	// try again; people decide at their own pace.
	openAgainS = 60
)

// maxAtOnce is how many proposals of one token are read at the same time, which
// bounds the memory that they take.
const maxAtOnce = 32

// quota bounds what each token, and all together, may ask for. It bounds agents
// only: who decides does not come through this door.
type quota struct {
	config *Config
	now    func() time.Time
	count  func(context.Context) (map[events.Proposer]int, error) // open proposals, by proposer

	mu      sync.Mutex // guards the rest
	rates   map[events.Proposer]*bucket
	all     bucket
	reading map[events.Proposer]int
	left    chan struct{}           // closed and replaced when a request is let out
	open    map[events.Proposer]int // at most as many too high as were decided since the count
	total   int
	counted time.Time // zero before the first count
}

// bucket is a rate with a burst: it fills with time and each proposal takes one.
type bucket struct {
	left float64
	at   time.Time
}

// take takes one, or says how long to wait for it.
func (b *bucket) take(now time.Time, perMinute, burst int) (wait time.Duration) {
	if b.at.IsZero() {
		b.left = float64(burst)
	}
	b.left = min(float64(burst), b.left+now.Sub(b.at).Minutes()*float64(perMinute))
	b.at = now
	if b.left < 1 {
		// Never 0, which means that it was taken, however little is missing.
		return max(1, time.Duration((1-b.left)/float64(perMinute)*float64(time.Minute)))
	}
	b.left--
	return 0
}

func newQuota(c *Config, count func(context.Context) (map[events.Proposer]int, error)) *quota {
	return &quota{
		config: c, now: time.Now, count: count, rates: map[events.Proposer]*bucket{},
		reading: map[events.Proposer]int{}, left: make(chan struct{}), open: map[events.Proposer]int{},
	}
}

// enter lets one request in, before anything of it is read; leave lets it out.
// A caller with many at once waits for its own.
func (q *quota) enter(ctx context.Context, from events.Proposer) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.rate(from); err != nil {
		return nil, err
	}
	for q.reading[from] >= maxAtOnce {
		left := q.left
		q.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
		}
		q.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	q.reading[from]++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.reading[from]--; q.reading[from] == 0 {
			delete(q.reading, from)
		}
		close(q.left)
		q.left = make(chan struct{})
	}, nil
}

// rate takes one from the token's bucket and from everybody's.
func (q *quota) rate(from events.Proposer) error {
	now := q.now()
	q.forget(now)
	if n := q.config.RatePerMinute; n > 0 {
		b := q.rates[from]
		if b == nil {
			b = &bucket{}
			q.rates[from] = b
		}
		if wait := b.take(now, n, q.config.RateBurst); wait > 0 {
			return tooFast(wait, "%s has made more than %d in a minute", from, n)
		}
	}
	if n := q.config.TotalPerMinute; n > 0 {
		if wait := q.all.take(now, n, q.config.TotalBurst); wait > 0 {
			return tooFast(wait, "all together have made more than %d in a minute", n)
		}
	}
	return nil
}

// forget drops buckets that are full again, since rounds come with tokens of
// their own and never return.
func (q *quota) forget(now time.Time) {
	if len(q.rates) < 1024 {
		return
	}
	for p, b := range q.rates {
		if now.Sub(b.at).Minutes()*float64(q.config.RatePerMinute) >= float64(q.config.RateBurst) {
			delete(q.rates, p)
		}
	}
}

func tooFast(wait time.Duration, format string, args ...any) error {
	seconds := int((wait + time.Second - 1) / time.Second)
	return &agentapi.Error{
		Code: codeRate, Status: http.StatusTooManyRequests, RetryAfterS: seconds,
		Message: "proposal refused: " + fmt.Sprintf(format, args...), Next: fmt.Sprintf("try again in %d s", seconds),
	}
}

// room says whether one more undecided proposal may be stored. What it knows is
// counted again when a bound seems to be reached, at most once a second.
func (q *quota) room(ctx context.Context, from events.Proposer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	refusal := q.over(from)
	if refusal == nil && !q.counted.IsZero() {
		return nil
	}
	if q.now().Sub(q.counted) < recountEvery {
		return refusal
	}
	open, err := q.count(ctx)
	if err != nil {
		return refusal // what was counted before stands
	}
	q.open, q.total, q.counted = open, 0, q.now()
	for _, n := range open {
		q.total += n
	}
	return q.over(from)
}

func (q *quota) over(from events.Proposer) error {
	what, n := "", 0
	switch {
	case q.config.OpenPerToken > 0 && q.open[from] >= q.config.OpenPerToken:
		what, n = from.String()+" has", q.open[from]
	case q.config.OpenTotal > 0 && q.total >= q.config.OpenTotal:
		what, n = "all together have", q.total
	default:
		return nil
	}
	return &agentapi.Error{
		Code: codeOpen, Status: http.StatusTooManyRequests, RetryAfterS: openAgainS,
		Message: fmt.Sprintf("proposal refused: %s %d undecided requests open", what, n),
		Next:    "try again when some are decided, or cancel those that are no longer wanted with 'banksman cancel JOB'",
	}
}

// stored counts a proposal that was stored.
func (q *quota) stored(from events.Proposer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open[from]++
	q.total++
}

// countOpen counts undecided jobs by the index.
func countOpen(ctx context.Context, bus query.Asker) (map[events.Proposer]int, error) {
	out := map[events.Proposer]int{}
	ask := query.List{Status: []lifecycle.Status{lifecycle.Proposed, lifecycle.Pending}, Limit: 1000}
	for {
		var page view.List
		if err := bus.Ask(ctx, query.Jobs, ask, &page); err != nil {
			return nil, err
		}
		for _, j := range page.Jobs {
			if p, ok := events.ParseProposer(j.Proposer); ok {
				out[p]++
			}
			ask.Before = j.Job
		}
		if !page.More || len(page.Jobs) == 0 {
			return out, nil
		}
	}
}
