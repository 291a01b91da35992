package worker

import (
	"sync"
	"time"
)

// clock tells the stream's time. Whether an approval is still good and an attempt
// is due is judged by that clock, and the machine's own may be minutes off or step
// at any moment: between two looks at the stream only its monotonic part is used.
// The zero value tells the machine's time until the stream was first heard.
type clock struct {
	mu     sync.Mutex
	stream time.Time // as last heard
	heard  time.Time // when that was, with its monotonic reading
}

// note takes over the time of an event that was stored just now.
func (c *clock) note(stream time.Time) {
	if stream.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stream, c.heard = stream, time.Now()
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream.IsZero() {
		return time.Now()
	}
	return c.stream.Add(time.Since(c.heard))
}

// until is how long it takes to a moment of the stream's time; none for the zero
// time.
func (c *clock) until(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return at.Sub(c.now())
}
