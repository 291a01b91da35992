package supervisor

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/loops"
)

// batchFor is how long output waits for company before it becomes a chunk.
const batchFor = 100 * time.Millisecond

// outputAttempt is the attempt under which a round's output is stored; a round
// has one.
const outputAttempt = 1

// publish stores a round's output on the bus, chunk by chunk, until it has
// ended and everything is stored, or ctx ends. It owns the log's file. What is
// not stored stays in it.
func (t *tender) publish(ctx context.Context, s *scroll, round string) {
	defer s.file.Close()
	denied := false
	for {
		p, ok, done := s.front(false)
		if done {
			return
		}
		if !ok {
			select {
			case <-s.wake:
			case <-ctx.Done():
				return
			}
			if !s.over() && pause(ctx, batchFor) != nil {
				return
			}
			s.front(true)
			continue
		}
		if !denied {
			var err error
			if denied, err = t.put(ctx, s, p, round); err != nil {
				t.log.Warn("output of a round is not on the bus, only in its log", "round", round, "error", err)
			}
		}
		if ctx.Err() != nil {
			return
		}
		s.advance()
	}
}

// put stores one chunk, however long the bus is away.
func (t *tender) put(ctx context.Context, s *scroll, p piece, round string) (denied bool, err error) {
	data, err := s.load(p)
	if err != nil {
		return false, err
	}
	subject := bus.OutputSubject(t.name, round, outputAttempt, p.n, t.s.me.actor)
	for wait := briefly; ; wait = min(2*wait, againAfter) {
		err := t.s.env.Bus.PutOutput(ctx, subject, p.stream.name, p.atMS, data)
		var forbidden *bus.Denied
		var refused *bus.Refused
		switch {
		case err == nil, ctx.Err() != nil:
			return false, nil
		case errors.As(err, &forbidden):
			return true, err
		case errors.As(err, &refused):
			return false, err
		}
		if pause(ctx, wait) != nil {
			return false, nil
		}
	}
}

// pruneLogs keeps the newest logs only. Logs of rounds that are not over are
// among the newest.
func (t *tender) pruneLogs() {
	keep := t.s.cfg.KeepLogs
	if keep == 0 {
		return
	}
	list, err := os.ReadDir(t.journal.Dir())
	if err != nil {
		return
	}
	var numbers []int
	for _, e := range list {
		if id, ok := strings.CutSuffix(e.Name(), logSuffix); ok {
			if project, n, ok := loops.ParseRound(id); ok && project == t.name {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	for len(numbers) >= keep {
		id := events.RoundID(t.name, numbers[0])
		if err := os.Remove(t.journal.log(id)); err != nil {
			t.log.Warn("an old round log could not be removed", "round", id, "error", err)
		}
		numbers = numbers[1:]
	}
}
