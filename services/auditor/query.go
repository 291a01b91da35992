package auditor

import (
	"context"
	"encoding/base64"
	"encoding/json/v2"
	"errors"
	"fmt"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/index"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// Bounds of lists.
const (
	defaultLimit = 200
	maxLimit     = 1000
)

// freshWait bounds how long a question about jobs waits until what was stored before it
// is sealed. After that the answer is as of the last seal.
const freshWait = time.Second

// serviceName is the auditor's name among the services of the bus.
const serviceName = "banksman-auditor"

// desk answers queries from the index.
type desk struct {
	a    *auditor
	pool string // of a ready query
}

// endpoints are the queries that the auditor answers.
func (a *auditor) endpoints(pools []string) map[string]bus.Endpoint {
	d := &desk{a: a}
	out := map[string]bus.Endpoint{query.Get: d.get, query.Jobs: d.list, query.Audit: d.status}
	for _, p := range pools {
		out[query.Ready+"."+p] = (&desk{a: a, pool: p}).ready
	}
	return out
}

// answerError names an error for the asker.
func answerError(err error) error {
	var many *index.ErrAmbiguous
	switch {
	case errors.As(err, &many):
		return &bus.RemoteError{Code: "ambiguous_prefix", Message: err.Error()}
	case errors.Is(err, index.ErrUnknown):
		return &bus.RemoteError{Code: "unknown_job", Message: err.Error()}
	case errors.Is(err, index.ErrDamaged):
		return &bus.RemoteError{Code: "index_damaged", Message: err.Error() + "; restart the auditor, which makes it anew"}
	}
	return err
}

func badRequest(err error) error {
	return &bus.RemoteError{Code: "bad_request", Message: fmt.Sprintf("read the question: %v", err)}
}

// read reads a question; nothing at all is the empty question.
func read(data []byte, into any) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return badRequest(err)
	}
	return nil
}

// fresh waits until what the stream holds now is sealed, so that who has just written
// reads it.
func (d *desk) fresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, freshWait)
	defer cancel()
	last, err := d.a.stream.LastSeq(ctx)
	if err != nil {
		return
	}
	for {
		s, fault, advanced := d.a.state.get()
		if s.covered >= last || fault != nil {
			return
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return
		}
	}
}

func (d *desk) get(ctx context.Context, data []byte) (any, error) {
	var q query.GetRequest
	if err := read(data, &q); err != nil {
		return nil, err
	}
	d.fresh(ctx)
	j, err := d.a.index.Job(q.Job)
	if err != nil {
		return nil, answerError(err)
	}
	v := view.DetailOf(j)
	v.Waiting = d.waiting(j)
	return v, nil
}

func (d *desk) list(ctx context.Context, data []byte) (any, error) {
	var q query.List
	if err := read(data, &q); err != nil {
		return nil, err
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	d.fresh(ctx)
	list, more, err := d.a.index.List(index.Query{Status: q.Status, Pool: q.Pool, Proposer: q.From, Limit: min(q.Limit, maxLimit), Before: q.Before})
	if err != nil {
		return nil, answerError(err)
	}
	out := view.List{Jobs: make([]view.Job, 0, len(list)), More: more}
	for _, j := range list {
		v := view.Of(j)
		v.Waiting = d.waiting(j)
		out.Jobs = append(out.Jobs, v)
	}
	return out, nil
}

// waiting says why an approved job does not start, as far as the auditor knows.
func (d *desk) waiting(j lifecycle.Job) string {
	if j.Status != lifecycle.Approved && j.Status != lifecycle.RetryWait {
		return ""
	}
	s, fault, _ := d.a.state.get()
	switch {
	case fault != nil:
		return "the audit log: " + fault.Detail
	case len(s.faults()) > 0:
		return "an admin to acknowledge a fault of the stream; dispatch is closed"
	case j.Status == lifecycle.RetryWait:
		return "its next attempt at " + j.RetryAt().UTC().Format(time.RFC3339)
	}
	return ""
}

func (d *desk) ready(_ context.Context, data []byte) (any, error) {
	var q query.ReadyRequest
	if err := read(data, &q); err != nil {
		return nil, err
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	out := query.ReadyJobs{Jobs: []string{}}
	s, fault, _ := d.a.state.get()
	if len(s.faults()) > 0 || !s.looked || fault != nil {
		return out, nil
	}
	ids, err := d.a.index.Ready(d.pool, min(q.Limit, maxLimit), time.Now(), s.through)
	if err != nil {
		return nil, answerError(err)
	}
	out.Jobs = append(out.Jobs, ids...)
	return out, nil
}

func (d *desk) status(ctx context.Context, _ []byte) (any, error) {
	s, fault, _ := d.a.state.get()
	ctx, cancel := context.WithTimeout(ctx, freshWait)
	defer cancel()
	stream, err := d.a.stream.StreamState(ctx)
	if err != nil {
		stream = bus.State{} // where the auditor stands is known without it
	}
	return query.AuditStatus{
		Epoch: d.a.epoch, Size: s.head.Size, Root: base64.StdEncoding.EncodeToString(s.head.Root[:]), ThroughSeq: s.through, LastSeq: s.seen,
		SealedAt: s.sealedAt, Dispatch: dispatch(len(s.faults()) > 0 || fault != nil || !s.looked), Violations: int(s.found), Gaps: int(s.gaps),
		Bytes: int64(stream.Bytes), MaxBytes: stream.MaxBytes, Faults: faults(s, fault),
	}, nil
}
