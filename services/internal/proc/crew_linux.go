package proc

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// maxIdle bounds how many stewards of one kind wait for work.
const maxIdle = 8

// A Crew keeps stewards for the next program instead of starting one for each, which is most of the cost of a short job.
// A steward serves one program at a time and is not used again after a tree that left survivors. The zero value is ready.
type Crew struct {
	mu     sync.Mutex
	idle   map[string][]*hand // by setup
	closed bool
	out    sync.WaitGroup // stewards at work
}

// Start is the function [Start] with a steward of the crew.
func (c *Crew) Start(ctx context.Context, spec Spec) (*Process, error) {
	setup, err := spec.setup()
	if err != nil {
		return nil, err
	}
	h, err := c.take(setup)
	if err != nil {
		return nil, named(err, spec.Path)
	}
	return begin(ctx, h, spec, c.giveBack)
}

// take returns an idle steward of the right kind or a new one.
func (c *Crew) take(s setup) (*hand, error) {
	key, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode the setup of a steward: %w", err)
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, &StartError{Code: CodeSteward, Detail: "the crew is closed"}
	}
	c.out.Add(1)
	for waiting := c.idle[string(key)]; len(waiting) > 0; waiting = c.idle[string(key)] {
		h := waiting[len(waiting)-1]
		c.idle[string(key)] = waiting[:len(waiting)-1]
		if h.alive() {
			c.mu.Unlock()
			return h, nil
		}
		h.dismiss()
	}
	c.mu.Unlock()
	h, err := hire(s)
	if err != nil {
		c.out.Done()
	}
	return h, err
}

// giveBack keeps a steward for its next program or lets it end.
func (c *Crew) giveBack(h *hand, reusable bool) {
	defer c.out.Done()
	c.mu.Lock()
	keep := reusable && !c.closed && len(c.idle[h.key]) < maxIdle
	if keep {
		if c.idle == nil {
			c.idle = map[string][]*hand{}
		}
		c.idle[h.key] = append(c.idle[h.key], h)
	}
	c.mu.Unlock()
	if !keep {
		h.dismiss()
	}
}

// Close waits for the programs that still run and lets all stewards end. No program can be started afterwards.
func (c *Crew) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.out.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, waiting := range c.idle {
		for _, h := range waiting {
			h.dismiss()
		}
	}
	c.idle = nil
}
