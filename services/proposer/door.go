package proposer

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// door answers requests on the socket.
type door struct {
	config *Config
	env    *host.Env
	ending context.Context // done when the role drains
}

// answer is a handler that has been told on whose behalf it works.
type answer func(w http.ResponseWriter, r *http.Request, from events.Proposer) error

func (d *door) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/jobs", d.open(d.propose))
	mux.Handle("POST /v1/assess", d.open(d.assess))
	mux.Handle("GET /v1/jobs/{id}", d.open(d.job))
	mux.Handle("GET /v1/jobs/{id}/output", d.open(d.output))
	return mux
}

// open checks the token, and turns an error into its object.
func (d *door) open(do answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		from, known, err := whose(d.env.Layout.TokenFolders(), token)
		if err == nil && !known {
			err = &agentapi.Error{Code: "bad_token", Status: http.StatusUnauthorized,
				Message: "the proposer does not know the token", Next: "set BANKSMAN_TOKEN to a token of this site, or unset it to use the local agent's"}
		}
		if err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, 4<<20)
			err = do(w, r, from)
		}
		if err != nil && r.Context().Err() == nil {
			d.fail(w, err)
		}
	})
}

// fail writes the error object. What is not a refusal is logged, once, here.
func (d *door) fail(w http.ResponseWriter, err error) {
	var e *agentapi.Error
	if !errors.As(err, &e) {
		d.env.Log.Error("request failed", slog.Any("error", err))
		e = &agentapi.Error{Code: "proposer_failed", Message: err.Error(), Next: "look at 'banksman status'", Status: http.StatusServiceUnavailable}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	json.MarshalWrite(w, agentapi.Envelope{Error: e})
}

func reply(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data)
	return nil
}

// read decodes a proposal; a member that nobody defined is refused.
func read(r *http.Request) (agentapi.Proposal, error) {
	var p agentapi.Proposal
	if err := json.UnmarshalRead(r.Body, &p, json.RejectUnknownMembers(true)); err != nil {
		return p, &agentapi.Error{Code: "bad_request", Status: http.StatusBadRequest, Message: "the proposal is not in the form of POST /v1/jobs: " + shape(err)}
	}
	return p, nil
}

// shape says what is wrong with JSON without repeating it.
func shape(err error) string {
	var s *json.SemanticError
	if errors.As(err, &s) {
		return fmt.Sprintf("at %q", s.JSONPointer)
	}
	return "it is no valid JSON in UTF-8"
}

func (d *door) propose(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	p, err := read(r)
	if err != nil {
		return err
	}
	payload, err := admit(d.config, p, from)
	if err != nil {
		return err
	}
	id, err := jobID(d.env.Site.Origin, &payload)
	if err != nil {
		return err
	}
	subject := events.For("job.proposed", payload.Pool, id, d.env.Actor)
	_, err = d.env.Append.Append(r.Context(), subject, 0, payload)
	var conflict *bus.Conflict
	switch {
	case errors.As(err, &conflict):
		return d.repeated(w, r, id, payload)
	case errors.Is(err, bus.ErrFull):
		return &agentapi.Error{Code: "stream_full", Message: "store the proposal: the site's stream is full", Next: "ask the operator to raise bus.max_bytes", Status: http.StatusInsufficientStorage}
	case err != nil:
		return fmt.Errorf("store the proposal: %w", err)
	}
	j, err := d.atOnce(r.Context(), id, &payload)
	if err != nil {
		return err
	}
	return reply(w, http.StatusCreated, view.DetailOf(j))
}

// deniedWithin bounds how long an answer waits for a denial that the gate has
// announced to be stored.
const deniedWithin = 5 * time.Second

// atOnce returns the new job; where the gate says that policy denies it, with
// the denial.
func (d *door) atOnce(ctx context.Context, id string, p *events.JobProposed) (lifecycle.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, deniedWithin)
	defer cancel()
	moved, stop, err := d.watch(id)
	if err != nil {
		return lifecycle.Job{}, err
	}
	defer stop()
	var a query.Assessment
	denied := d.env.Bus.Ask(ctx, query.Assess, question(p), &a) == nil && a.Verdict == "deny"
	for {
		j, err := d.env.Standing.Job(context.WithoutCancel(ctx), id)
		if err != nil || !denied || j.Status != lifecycle.Proposed || !d.wait(ctx, moved, 0) {
			return j, err
		}
	}
}

// question is a proposal as the gate assesses it.
func question(p *events.JobProposed) query.AssessRequest {
	return query.AssessRequest{
		Argv: p.Argv, Cwd: p.Cwd, Pool: p.Pool, Proposer: p.Proposer.String(), TimeoutS: p.TimeoutS,
		MaxAttempts: p.MaxAttempts, EnvNames: slices.Sorted(maps.Keys(p.Env)),
	}
}

// repeated answers a key that was used before: the same job for the same
// content, a conflict for other content.
func (d *door) repeated(w http.ResponseWriter, r *http.Request, id string, payload events.JobProposed) error {
	j, err := d.env.Standing.Job(r.Context(), id)
	if err != nil {
		return err
	}
	data, err := events.Encode(payload)
	if err != nil {
		return err
	}
	if events.Digest(data) != j.ProposalDigest {
		return &agentapi.Error{Code: "idempotency_conflict", Status: http.StatusConflict,
			Message: fmt.Sprintf("the idempotency key belongs to job %s, which has other content", id), Next: "use another key, or repeat the first proposal exactly"}
	}
	v := view.DetailOf(j)
	v.Existing = true
	return reply(w, http.StatusOK, v)
}

func (d *door) assess(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	p, err := read(r)
	if err != nil {
		return err
	}
	payload, err := admit(d.config, p, from)
	if err != nil {
		return err
	}
	var a query.Assessment
	if err := d.env.Bus.Ask(r.Context(), query.Assess, question(&payload), &a); err != nil {
		return fmt.Errorf("ask the gate: %w", err)
	}
	return reply(w, http.StatusOK, a)
}

// own returns a job that the caller proposed; others do not exist for it.
func (d *door) own(ctx context.Context, id string, from events.Proposer) (lifecycle.Job, error) {
	j, err := d.env.Standing.Job(ctx, id)
	if errors.Is(err, jobs.ErrUnknown) || err == nil && (j.Proposal == nil || j.Proposal.Proposer != from) {
		return j, &agentapi.Error{Code: "unknown_job", Status: http.StatusNotFound, Message: fmt.Sprintf("%s has proposed no job %q", from, id)}
	}
	return j, err
}

// longest is how long one request may wait for a job to move.
const longest = 50 * time.Second

func (d *door) job(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	id := r.PathValue("id")
	after, _ := strconv.ParseUint(r.FormValue("after"), 10, 64)
	wait, _ := strconv.ParseInt(r.FormValue("wait_ms"), 10, 64)
	ctx, cancel := context.WithTimeout(r.Context(), min(time.Duration(wait)*time.Millisecond, longest))
	defer cancel()
	moved, stop, err := d.watch(id)
	if err != nil {
		return err
	}
	defer stop()
	for {
		j, err := d.own(r.Context(), id, from)
		if err != nil {
			return err
		}
		if j.LastSeq > after || !d.wait(ctx, moved, 0) {
			return reply(w, http.StatusOK, d.detail(r.Context(), j))
		}
	}
}

// detail is the job with what it waits for.
func (d *door) detail(ctx context.Context, j lifecycle.Job) view.Detail {
	v := view.DetailOf(j)
	if j.Status != lifecycle.Approved {
		return v
	}
	var audit query.AuditStatus
	switch err := d.env.Bus.Ask(ctx, query.Audit, struct{}{}, &audit); {
	case err != nil:
		v.Waiting = "seal since " + j.UpdatedAt.UTC().Format(time.RFC3339) + " (the auditor does not answer)"
	case audit.ThroughSeq < j.LastApproval():
		v.Waiting = "seal since " + j.UpdatedAt.UTC().Format(time.RFC3339)
	case audit.Dispatch != "open":
		v.Waiting = "the audit log to be acknowledged; dispatch is " + audit.Dispatch
	default:
		v.Waiting = "a worker of pool " + j.Pool
	}
	return v
}

// watch signals when the stream has stored something about a job.
func (d *door) watch(id string) (<-chan struct{}, func(), error) {
	moved := make(chan struct{}, 1)
	stop, err := d.env.Bus.Live(d.ending, events.Filter("job", id), func(events.Stored) {
		select {
		case moved <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch job %s: %w", id, err)
	}
	return moved, stop, nil
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

// output streams the chunks of an attempt as JSON lines until it has ended.
func (d *door) output(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	id := r.PathValue("id")
	attempt, _ := strconv.Atoi(r.FormValue("attempt"))
	next, _ := strconv.Atoi(r.FormValue("from"))
	moved, stop, err := d.watch(id)
	if err != nil {
		return err
	}
	defer stop()
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
		flush.Flush()
		if ended(j, attempt) || !d.wait(r.Context(), moved, outputTick) {
			return nil
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
