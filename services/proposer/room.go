package proposer

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/query"
)

const (
	// fullPercent of the stream's bound is for everything; what is above is kept
	// for decisions, results, stops and audit, so that what was begun can end.
	fullPercent = 80
	// roomEvery is how long an answer of the auditor is good.
	roomEvery = 3 * time.Second
	// roomWait is how long a proposal waits for it.
	roomWait = time.Second
)

// room refuses proposals while the stream is nearly full. Where the auditor
// does not answer, its last word counts; without one, proposals are taken, and
// the stream's own bound refuses them when it is reached.
type room struct {
	ask func(context.Context) (query.AuditStatus, error)
	now func() time.Time

	mu    sync.Mutex
	asked time.Time
	last  query.AuditStatus
}

// check asks when the last answer is too old. Who comes meanwhile waits for the
// same answer.
func (r *room) check(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked.IsZero() || r.now().Sub(r.asked) >= roomEvery {
		ctx, cancel := context.WithTimeout(ctx, roomWait)
		defer cancel()
		if a, err := r.ask(ctx); err == nil {
			r.last = a
		}
		r.asked = r.now()
	}
	used, bound := r.last.Bytes, r.last.MaxBytes
	if bound == 0 || used < bound/100*fullPercent {
		return nil
	}
	return full(fmt.Sprintf("the site's stream holds %d of %d bytes; above %d %% no proposals are taken", used, bound, fullPercent))
}

func full(why string) error {
	return &agentapi.Error{Code: "stream_full", Message: "proposal refused: " + why, Next: "ask the operator to raise max_bytes in [bus]", Status: http.StatusInsufficientStorage}
}
