package proposer

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// number reads a parameter of a query; one that is missing is 0.
func number(r *http.Request, name string) (uint64, error) {
	text := r.FormValue(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, &agentapi.Error{Code: "bad_request", Status: http.StatusBadRequest, Message: name + " must be a decimal number from 0", Next: "correct the parameter"}
	}
	return n, nil
}

// longest is how long one request may wait for a job to move.
const longest = 50 * time.Second

func (d *door) job(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	id := r.PathValue("id")
	after, err := number(r, "after")
	if err != nil {
		return err
	}
	waitMS, err := number(r, "wait_ms")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(min(waitMS, uint64(longest.Milliseconds())))*time.Millisecond)
	defer cancel()
	moved, stop := d.ears.watch(id)
	defer stop()
	for {
		j, err := d.own(r.Context(), id, from)
		if err != nil {
			return err
		}
		if j.LastSeq > after || !d.wait(ctx, moved, 0) {
			return d.replyJob(r.Context(), w, http.StatusOK, d.detail(r.Context(), j))
		}
	}
}

// detail is the job with what it waits for.
func (d *door) detail(ctx context.Context, j lifecycle.Job) view.Detail {
	v := view.DetailOf(j)
	if j.Status != lifecycle.Approved {
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var audit query.AuditStatus
	switch err := d.env.Bus.Ask(ctx, query.Audit, struct{}{}, &audit); {
	case err != nil:
		v.Waiting = "seal since " + j.UpdatedAt.UTC().Format(time.RFC3339) + " (the auditor does not answer)"
	case audit.ThroughSeq < j.LastApproval():
		v.Waiting = "seal since " + j.UpdatedAt.UTC().Format(time.RFC3339)
	case audit.Dispatch != "open":
		v.Waiting = "the audit log to be acknowledged; dispatch is " + audit.Dispatch
	case j.ByCaller():
		v.Waiting = "its proposer to take it"
	default:
		v.Waiting = "a worker of pool " + j.Pool
	}
	return v
}

// wait returns true when the job has moved or a tick has passed, false when
// the request or the role ends. A tick of 0 never passes.
func (d *door) wait(ctx context.Context, moved <-chan struct{}, tick time.Duration) bool {
	var timer <-chan time.Time
	if tick > 0 {
		t := time.NewTimer(tick)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-moved:
		return true
	case <-timer:
		return true
	case <-ctx.Done():
		return false
	case <-d.ending.Done():
		return false
	}
}

// outputTick is how often stored output is looked for while a job runs.
const outputTick = 100 * time.Millisecond

// errDraining is a request that outlives the role. The caller learns that the
// answer is not whole.
var errDraining = errors.New("the proposer is shutting down")

// output streams the chunks of an attempt as JSON lines until it has ended.
func (d *door) output(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	id := r.PathValue("id")
	of, err := number(r, "attempt")
	if err != nil {
		return err
	}
	from0, err := number(r, "from")
	if err != nil {
		return err
	}
	if _, err := d.own(r.Context(), id, from); err != nil {
		return err
	}
	attempt, next := int(min(of, math.MaxInt32)), int(min(from0, math.MaxInt32))
	moved, stop := d.ears.watch(id)
	defer stop()
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w)
	for {
		// The state is read first: when it says that the attempt has ended,
		// everything it wrote was stored before.
		j, err := d.own(r.Context(), id, from)
		if err != nil {
			return err
		}
		err = d.env.Bus.ReadOutput(r.Context(), j.Pool, id, attempt, next, func(n int, stream string, atMS int64, data []byte) error {
			next = n + 1
			line, err := json.Marshal(agentapi.Chunk{N: n, Stream: stream, AtMS: atMS, Data: data})
			if err == nil {
				_, err = w.Write(append(line, '\n'))
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("read the output of job %s: %w", id, err)
		}
		if err := flush.Flush(); err != nil {
			return fmt.Errorf("send the output of job %s: %w", id, err)
		}
		if ended(j, attempt) {
			return nil
		}
		if !d.wait(r.Context(), moved, outputTick) {
			return errDraining // or nobody listens any more
		}
	}
}

func ended(j lifecycle.Job, attempt int) bool {
	for _, a := range j.Attempts {
		if a.N == attempt {
			return !a.EndedAt.IsZero()
		}
	}
	return true
}
