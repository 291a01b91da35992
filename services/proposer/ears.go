package proposer

import (
	"context"
	"fmt"
	"sync"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
)

// jobEvents is the filter of what every request may wait for.
const jobEvents = events.PrefixStored + ".job.>"

// ears tells requests when the stream has stored something about the job that
// they wait for. All of them share one subscription, since to make one for each
// request costs the bus more than everything else that the request asks of it.
type ears struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{} // by job
}

// listen hears until stop is called. A copy may be lost with the connection, so
// that whoever waits looks again when it has come back.
func (e *ears) listen(ctx context.Context, conn *bus.Conn) (stop func(), err error) {
	unsubscribe, err := conn.Live(ctx, jobEvents, func(st events.Stored) {
		if s, err := events.ParseSubject(st.Subject); err == nil {
			e.rouse(s.ID)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch the jobs: %w", err)
	}
	forget := conn.Notify(func(connected bool) {
		if connected {
			e.rouseAll()
		}
	})
	return func() {
		forget()
		unsubscribe()
	}, nil
}

func (e *ears) rouse(job string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ch := range e.waiting[job] {
		signal(ch)
	}
}

func (e *ears) rouseAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, list := range e.waiting {
		for ch := range list {
			signal(ch)
		}
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// watch signals when the stream has stored something about a job, until stop is
// called.
func (e *ears) watch(job string) (moved <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil {
		e.waiting = map[string]map[chan struct{}]struct{}{}
	}
	if e.waiting[job] == nil {
		e.waiting[job] = map[chan struct{}]struct{}{}
	}
	e.waiting[job][ch] = struct{}{}
	return ch, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting[job], ch)
		if len(e.waiting[job]) == 0 {
			delete(e.waiting, job)
		}
	}
}
