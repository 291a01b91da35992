package proposer

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/redact"
	"github.com/banksman/banksman/services/internal/texts"
	"github.com/banksman/banksman/services/internal/view"
)

// door answers requests on the socket.
type door struct {
	config   *Config
	env      *host.Env
	ending   context.Context // done when the role drains
	secrets  *redact.Detector
	room     *room
	quota    *quota
	ledger   *ledger
	ears     ears
	requests sync.WaitGroup // being answered
}

func newDoor(ctx context.Context, c *Config, env *host.Env) (*door, error) {
	detector, err := redact.NewDetector(env.Site.SecretPatterns...)
	if err != nil {
		return nil, fmt.Errorf("prepare to look for secrets: %w", err)
	}
	d := &door{config: c, env: env, ending: ctx, secrets: detector}
	d.quota = newQuota(c, func(ctx context.Context) (map[events.Proposer]int, error) { return countOpen(ctx, env.Bus) })
	d.ledger = &ledger{
		bus: env.Bus, append: env.Append.Append, actor: env.Actor, log: env.Log, now: time.Now,
		tally: map[ground]*tally{}, wake: make(chan struct{}, 1),
	}
	d.room = &room{now: time.Now, ask: func(ctx context.Context) (query.AuditStatus, error) {
		var a query.AuditStatus
		return a, env.Bus.Ask(ctx, query.Audit, struct{}{}, &a)
	}}
	return d, nil
}

// answer is a handler that has been told on whose behalf it works.
type answer func(w http.ResponseWriter, r *http.Request, from events.Proposer) error

func (d *door) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/jobs", d.open(d.noted(d.bounded(d.propose))))
	mux.Handle("POST /v1/assess", d.open(d.assess))
	mux.Handle("POST /v1/dry-run", d.open(d.bounded(d.dryRun)))
	mux.Handle("GET /v1/jobs", d.open(d.list))
	mux.Handle("GET /v1/jobs/{id}", d.open(d.job))
	mux.Handle("DELETE /v1/jobs/{id}", d.open(d.bounded(d.cancel)))
	mux.Handle("POST /v1/jobs/{id}/take", d.open(d.bounded(d.take)))
	mux.Handle("POST /v1/jobs/{id}/report", d.open(d.bounded(d.report)))
	mux.Handle("GET /v1/jobs/{id}/output", d.open(d.output))
	return mux
}

// open checks the token, and turns an error into its object.
func (d *door) open(do answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.requests.Add(1)
		defer d.requests.Done()
		begun, body := &started{ResponseWriter: w}, r.Body
		err := d.admitted(begun, r, do)
		switch {
		case err == nil || r.Context().Err() != nil:
		case begun.yes:
			// Half of an answer must not look like a whole one.
			if !errors.Is(err, errDraining) {
				d.env.Log.Error("answer cut off", slog.Any("error", err))
			}
			panic(http.ErrAbortHandler)
		default:
			// Who still writes would otherwise see a broken connection, not why.
			io.CopyN(io.Discard, body, maxDiscard)
			d.fail(w, err)
		}
	})
}

// maxDiscard is how much of a refused request is read past.
const maxDiscard = 16 << 20

func (d *door) admitted(w http.ResponseWriter, r *http.Request, do answer) error {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		token = ""
	}
	from, known, err := whose(d.env.Layout.TokenFolders(), token)
	if err != nil {
		return err
	}
	if !known {
		if token != "" {
			d.ledger.add(events.ProposalRefused{Code: "bad_token"})
		}
		return &agentapi.Error{Code: "bad_token", Status: http.StatusUnauthorized,
			Message: "the proposer does not know the token", Next: "set BANKSMAN_TOKEN to a token of this site, or unset it to use the local agent's"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, bodyLimit(d.config))
	return do(w, r, from)
}

// started notes whether an answer was begun.
type started struct {
	http.ResponseWriter
	yes bool
}

func (s *started) WriteHeader(status int) { s.yes = true; s.ResponseWriter.WriteHeader(status) }

func (s *started) Write(b []byte) (int, error) { s.yes = true; return s.ResponseWriter.Write(b) }

// FlushError is what a response controller calls.
func (s *started) FlushError() error {
	s.yes = true
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// fail writes the error object. What is not a refusal is logged, once, here.
func (d *door) fail(w http.ResponseWriter, err error) {
	var e *agentapi.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, errDraining):
		e = &agentapi.Error{Code: "proposer_away", Message: "the proposer is shutting down", Next: "ask again when it runs", Status: http.StatusServiceUnavailable}
	default:
		d.env.Log.Error("request failed", slog.Any("error", err))
		e = &agentapi.Error{Code: "proposer_failed", Message: err.Error(), Next: "look at 'banksman status'", Status: http.StatusServiceUnavailable}
	}
	w.Header().Set("Content-Type", "application/json")
	if e.RetryAfterS > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfterS))
	}
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
	err := json.UnmarshalRead(r.Body, &p, json.RejectUnknownMembers(true))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return p, &agentapi.Error{Code: "too_long", Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("proposal refused: more than %d bytes", large.Limit), Next: "put long input into a file"}
	case err != nil:
		return p, &agentapi.Error{Code: "bad_request", Status: http.StatusBadRequest, Message: "proposal refused: it is not in the form of POST /v1/jobs: " + shape(err), Next: "send a JSON object with argv and cwd"}
	}
	return p, nil
}

// word is what the name of a member looks like; anything else may be content.
var word = regexp.MustCompile(`^[a-z_]{1,24}$`)

// shape says what is wrong with JSON without repeating it.
func shape(err error) string {
	var s *json.SemanticError
	if !errors.As(err, &s) {
		return "it is no valid JSON in UTF-8"
	}
	member, _, _ := strings.Cut(strings.TrimPrefix(string(s.JSONPointer), "/"), "/")
	switch {
	case !word.MatchString(member):
		return "it has another shape"
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Sprintf("it has no member %q", member)
	}
	return fmt.Sprintf("member %q has another type", member)
}

// admit checks a proposal's form and makes its payload, with the word of a person
// where it needs one.
func (d *door) admit(ctx context.Context, p agentapi.Proposal, from events.Proposer) (events.JobProposed, error) {
	payload, err := admit(d.config, d.secrets, p, from)
	if err != nil {
		err = d.waived(ctx, &payload, err)
	}
	return payload, err
}

func (d *door) propose(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	p, err := read(r)
	if err != nil {
		return err
	}
	payload, err := d.admit(r.Context(), p, from)
	if err != nil {
		return err
	}
	id, err := jobID(d.env.Site.Origin, &payload)
	if err != nil {
		return err
	}
	if err := d.room.check(r.Context()); err != nil {
		return err
	}
	if err := d.quota.room(r.Context(), from); err != nil {
		if payload.IdempotencyKey != "" || payload.Waived > 0 {
			if _, known := d.env.Standing.Job(r.Context(), id); known == nil {
				return d.repeated(w, r, id, payload)
			}
		}
		return err
	}
	if payload.IdempotencyKey != "" || payload.Waived > 0 { // so that a repetition keeps no text that nobody names
		if _, known := d.env.Standing.Job(r.Context(), id); known == nil {
			return d.repeated(w, r, id, payload)
		}
		done, err := d.endedBefore(r.Context(), id, payload)
		if err != nil {
			return err
		}
		if done != nil {
			return d.replyJob(r.Context(), w, http.StatusOK, *done)
		}
	}
	words := payload.Reason
	if payload.Reason, err = texts.Keep(r.Context(), d.env.Bus, words); err != nil {
		return keepFailed(err)
	}
	subject := events.For("job.proposed", payload.Pool, id, d.env.Actor)
	_, err = d.env.Append.Append(r.Context(), subject, 0, payload)
	var conflict *bus.Conflict
	switch {
	case errors.As(err, &conflict):
		payload.Reason = words
		return d.repeated(w, r, id, payload)
	case errors.Is(err, bus.ErrFull):
		return full("the site's stream is full")
	case err != nil:
		return fmt.Errorf("store the proposal: %w", err)
	}
	d.quota.stored(from)
	j, err := d.atOnce(r.Context(), id, &payload)
	if err != nil {
		return fmt.Errorf("the proposal is stored as job %s; read it again: %w", id, err)
	}
	return d.replyJob(r.Context(), w, http.StatusCreated, view.DetailOf(j))
}

// deniedWithin bounds how long an answer waits for a denial that the gate has
// announced to be stored.
const deniedWithin = 5 * time.Second

// atOnce returns the new job; where the gate says that policy denies it, with
// the denial.
func (d *door) atOnce(ctx context.Context, id string, p *events.JobProposed) (lifecycle.Job, error) {
	patience, cancel := context.WithTimeout(ctx, deniedWithin)
	defer cancel()
	moved, stop := d.ears.watch(id)
	defer stop()
	var a query.Assessment
	denied := d.env.Bus.Ask(patience, query.Assess, question(p), &a) == nil && a.Verdict == "deny"
	for {
		j, err := d.env.Standing.Job(ctx, id)
		if err != nil || !denied || j.Status != lifecycle.Proposed || !d.wait(patience, moved, 0) {
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
	if j.Proposal == nil {
		return fmt.Errorf("the idempotency key belongs to job %s, whose proposal cannot be believed (%s)", id, j.TaintCode)
	}
	if payload.Reason, err = d.sameWords(r.Context(), j.Proposal.Reason, payload.Reason); err != nil {
		return err
	}
	data, err := events.Encode(payload)
	if err != nil {
		return err
	}
	if events.Digest(data) != j.ProposalDigest {
		return otherContent(id)
	}
	v := view.DetailOf(j)
	v.Existing = true
	return d.replyJob(r.Context(), w, http.StatusOK, v)
}

func (d *door) assess(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	_, a, err := d.judged(r, from)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, a)
}

// judged reads a proposal and asks the gate what it would decide.
func (d *door) judged(r *http.Request, from events.Proposer) (payload events.JobProposed, a query.Assessment, err error) {
	p, err := read(r)
	if err != nil {
		return payload, a, err
	}
	if payload, err = d.admit(r.Context(), p, from); err != nil {
		return payload, a, err
	}
	if err := d.env.Bus.Ask(r.Context(), query.Assess, question(&payload), &a); err != nil {
		return payload, a, fmt.Errorf("ask the gate: %w", err)
	}
	return payload, a, d.words().Fill(r.Context(), &a.Reason) // a denial that sticks quotes a person
}

// own returns a job that the caller proposed; others do not exist for it.
func (d *door) own(ctx context.Context, id string, from events.Proposer) (lifecycle.Job, error) {
	j, err := d.env.Standing.Job(ctx, id)
	if errors.Is(err, jobs.ErrUnknown) || err == nil && (j.Proposal == nil || j.Proposal.Proposer != from) {
		return j, &agentapi.Error{Code: "unknown_job", Status: http.StatusNotFound, Message: fmt.Sprintf("%s has proposed no job %q", from, id)}
	}
	return j, err
}
