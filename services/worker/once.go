package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/banksman/banksman/services/internal/query"
)

// Why a worker takes nothing new although nobody has stopped its process.
var (
	errDrained = errors.New("drained")
	errOnce    = errors.New("one job")
)

// forEver is how long a draining worker waits for its jobs.
const forEver = time.Duration(math.MaxInt64)

// TakeOne lets the worker run one job that waits for a start, if there is one, and
// end.
func (w *Role) TakeOne() { w.single = true }

// Ran is the job that a worker with TakeOne has started, empty for none. It is
// valid after Run has returned.
func (w *Role) Ran() string { return w.ran }

// takeOne asks the index once and runs the first job that starts here.
func (s *shift) takeOne(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var ready query.ReadyJobs
	if err := s.env.Bus.Ask(asking, query.Ready+"."+s.cfg.Pool, query.ReadyRequest{Limit: maxAsked}, &ready); err != nil {
		return unlessEnded(ctx, fmt.Errorf("ask which jobs of pool %s are ready: %w", s.cfg.Pool, err))
	}
	for _, id := range ready.Jobs {
		err := s.take(ctx, id, 0, func() { s.ran = id })
		if s.ran != "" || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.log.Warn("a ready job could not be judged; the next one is looked at", "job", id, "error", err)
		}
	}
	return nil
}
