package bus

import (
	"context"
	"errors"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// followPoll bounds how late an event is noticed whose live copy was lost.
const followPoll = 5 * time.Second

// Follow hands over every event under a filter from a sequence on, in order
// and each once: first those stored, then new ones as they come. It reads the
// stored bytes always; live copies only wake it. It goes on over reconnects
// and server restarts, and returns nil when ctx ends, or handle's error.
func (c *Conn) Follow(ctx context.Context, from uint64, filter string, handle func(events.Stored) error) error {
	wake := make(chan struct{}, 1)
	rouse := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	stop, err := c.listen(ctx, grants.LivePrefix+filter[len(events.PrefixStored):], rouse)
	if err != nil {
		return quietly(ctx, err)
	}
	defer stop()
	defer c.Notify(func(connected bool) {
		if connected {
			rouse()
		}
	})()
	poll := time.NewTicker(followPoll)
	defer poll.Stop()
	next := max(from, 1)
	for {
		page, err := c.Read(ctx, next, filter, pageMessages)
		if err != nil {
			return quietly(ctx, err)
		}
		for _, st := range page {
			if err := handle(st); err != nil {
				return err
			}
			next = st.Seq + 1
		}
		if len(page) > 0 {
			continue
		}
		select {
		case <-wake:
		case <-poll.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// quietly drops errors that only say that ctx has ended.
func quietly(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ErrOutage) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return nil
	}
	return err
}
