package worker

import (
	"context"
	"sync"
)

// maxServed bounds how many proposers are remembered that hold nothing.
const maxServed = 1024

// slots shares out how many jobs may be in hand at once. A free slot is taken at
// once. Where several jobs wait for one it goes to the proposer that holds the
// fewest, among these to the one that was served the longest ago, and then to the
// job that waits the longest: whoever has many jobs waits for its own only.
type slots struct {
	mu     sync.Mutex
	free   int
	held   map[string]int    // by proposer
	served map[string]uint64 // when a proposer was last given one
	turns  uint64
	queue  []*turn // oldest first
}

// turn is one job that waits.
type turn struct {
	who   string
	given chan struct{} // closed when it has a slot
}

func newSlots(n int) *slots {
	return &slots{free: n, held: map[string]int{}, served: map[string]uint64{}}
}

// try takes a slot for a proposer that is not known yet, if one is free.
func (q *slots) try() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free == 0 || len(q.queue) > 0 {
		return false
	}
	q.grant("")
	return true
}

// take waits for a slot.
func (q *slots) take(ctx context.Context, who string) error {
	q.mu.Lock()
	if q.free > 0 && len(q.queue) == 0 {
		q.grant(who)
		q.mu.Unlock()
		return nil
	}
	t := &turn{who: who, given: make(chan struct{})}
	q.queue = append(q.queue, t)
	q.mu.Unlock()
	select {
	case <-t.given:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	for i, other := range q.queue {
		if other == t {
			q.queue = append(q.queue[:i], q.queue[i+1:]...)
			q.mu.Unlock()
			return context.Cause(ctx)
		}
	}
	q.mu.Unlock()
	q.give(who) // it was given in the same moment
	return context.Cause(ctx)
}

// name says whose slot it is that was taken by try.
func (q *slots) name(who string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop("")
	q.free--
	q.grantTo(who)
}

// give returns a slot and hands it on.
func (q *slots) give(who string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(who)
	if len(q.queue) == 0 {
		return
	}
	best := 0
	for i, t := range q.queue {
		b := q.queue[best]
		if q.held[t.who] < q.held[b.who] || q.held[t.who] == q.held[b.who] && q.served[t.who] < q.served[b.who] {
			best = i
		}
	}
	t := q.queue[best]
	q.queue = append(q.queue[:best], q.queue[best+1:]...)
	q.grant(t.who)
	close(t.given)
}

// grant, grantTo and drop keep the books; the lock is held.
func (q *slots) grant(who string) {
	q.free--
	q.grantTo(who)
}

func (q *slots) grantTo(who string) {
	if len(q.served) >= maxServed {
		clear(q.served)
	}
	q.turns++
	q.held[who]++
	q.served[who] = q.turns
}

func (q *slots) drop(who string) {
	q.free++
	if q.held[who]--; q.held[who] <= 0 {
		delete(q.held, who)
	}
}

// crowded says whether a job that comes now would wait.
func (q *slots) crowded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.free == 0
}

// waiting lists the proposers whose jobs wait.
func (q *slots) waiting() map[string]bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := map[string]bool{}
	for _, t := range q.queue {
		out[t.who] = true
	}
	return out
}
