package auditor

import (
	"context"
	"encoding/json/v2"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/index"
	"github.com/banksman/banksman/services/internal/view"
)

// maxValue_bytes is what the view takes for one job; a larger one is left out.
const maxValue_bytes = 64 << 10

// maxOpen bounds how many open jobs are put after a restart.
const maxOpen = 10000

// refillPause lies between a failure to fill the view and the next try.
const refillPause = 2 * time.Second

// jobBoard keeps the key-value view of open and recent jobs. It is a convenience for
// the nats command line: it may lag, and no decision is made from it.
type jobBoard struct {
	view  View
	index *index.Index
	slog  *slog.Logger
	keep  int // ended jobs that stay

	mu     sync.Mutex
	dirty  map[string]lifecycle.Job
	again  bool // the view was emptied by a restart of the bus
	wakeup chan struct{}

	ended []string // ended jobs in the view, oldest first; of the one goroutine
}

func newJobBoard(v View, x *index.Index, log *slog.Logger, keep int) *jobBoard {
	return &jobBoard{view: v, index: x, slog: log, keep: keep, dirty: map[string]lifecycle.Job{}, again: true, wakeup: make(chan struct{}, 1)}
}

// changed takes jobs that are to be put. Only the newest state of each is.
func (b *jobBoard) changed(jobs []lifecycle.Job) {
	b.mu.Lock()
	for _, j := range jobs {
		b.dirty[j.ID] = j
	}
	b.mu.Unlock()
	b.wake()
}

// refill puts everything again.
func (b *jobBoard) refill() {
	b.mu.Lock()
	b.again = true
	b.mu.Unlock()
	b.wake()
}

func (b *jobBoard) wake() {
	select {
	case b.wakeup <- struct{}{}:
	default:
	}
}

// run puts jobs until the context ends.
func (b *jobBoard) run(ctx context.Context) {
	for {
		b.mu.Lock()
		dirty, again := b.dirty, b.again
		b.dirty, b.again = map[string]lifecycle.Job{}, false
		b.mu.Unlock()
		var err error
		if again {
			err = b.putAll(ctx)
		}
		for _, j := range dirty {
			err = errors.Join(err, b.put(ctx, j))
			if ctx.Err() != nil {
				return
			}
		}
		var retry <-chan time.Time
		if err != nil && ctx.Err() == nil {
			b.slog.Warn("the key-value view of jobs is incomplete; it is filled again", "error", err)
			retry = time.After(refillPause)
		}
		select {
		case <-b.wakeup:
			if err != nil {
				b.refill()
			}
		case <-retry:
			b.refill()
		case <-ctx.Done():
			return
		}
	}
}

// putAll fills an empty view: open jobs, then the newest that ended.
func (b *jobBoard) putAll(ctx context.Context) error {
	b.ended = nil
	var open, ended []lifecycle.Status
	for _, s := range lifecycle.Statuses[1:] {
		if s.Final() {
			ended = append(ended, s)
		} else {
			open = append(open, s)
		}
	}
	for _, q := range []index.Query{{Status: ended, Limit: b.keep}, {Status: open, Limit: maxOpen}} {
		list, _, err := b.index.List(q)
		if err != nil {
			return err
		}
		for i := len(list) - 1; i >= 0; i-- { // oldest first, so that the newest stay
			if err := b.put(ctx, list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *jobBoard) put(ctx context.Context, j lifecycle.Job) error {
	if j.Status == lifecycle.None {
		return nil
	}
	value, err := json.Marshal(view.DetailOf(j), json.Deterministic(true))
	if err != nil || len(value) > maxValue_bytes {
		return err
	}
	if err := b.view.Put(ctx, j.ID, value); err != nil {
		return err
	}
	if !j.Status.Final() {
		return nil
	}
	b.ended = append(b.ended, j.ID)
	for len(b.ended) > b.keep {
		if err := b.view.Delete(ctx, b.ended[0]); err != nil {
			return err
		}
		b.ended = b.ended[1:]
	}
	return nil
}
