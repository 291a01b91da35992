package proposer

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/asks"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/texts"
)

// cancelledWithin bounds how long an answer waits for a cancellation to be
// carried out.
const cancelledWithin = 15 * time.Second

// defaultReason is the reason of a cancellation that names none.
const defaultReason = "no longer wanted by its proposer"

// cancel asks for the end of an own job, on behalf of who proposed it. Asking
// again changes nothing.
func (d *door) cancel(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	var body agentapi.Cancellation
	if err := json.UnmarshalRead(r.Body, &body, json.RejectUnknownMembers(true)); err != nil {
		return &agentapi.Error{Code: "bad_request", Status: http.StatusBadRequest, Message: "the cancellation is not in the form of DELETE /v1/jobs/JOB: " + shape(err)}
	}
	reason := orDefault(body.Reason, defaultReason)
	if err := unfit(d.config, &events.JobProposed{Reason: reason}); err != nil {
		return err
	}
	if where := suspect(d.secrets, &events.JobProposed{Reason: reason}); where != "" {
		return refuse(codeSecret, "say it in other words", "%s", where)
	}
	if len(reason) > maxReasonBytes {
		return refuse("too_long", "say it shorter", "the reason has %d bytes, at most %d are taken", len(reason), maxReasonBytes)
	}
	id := r.PathValue("id")
	if _, err := d.own(r.Context(), id, from); err != nil { // before the id becomes a subject
		return err
	}
	moved, stop := d.ears.watch(id)
	defer stop()
	if err := d.askCancel(r.Context(), id, reason, from); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(r.Context(), cancelledWithin)
	defer cancel()
	for {
		j, err := d.own(r.Context(), id, from)
		if err != nil {
			return err
		}
		if j.Status.Final() || !d.wait(wait, moved, 0) {
			return d.replyJob(r.Context(), w, http.StatusOK, d.detail(r.Context(), j))
		}
	}
}

// maxReasonBytes bounds the reason of a cancellation.
const maxReasonBytes = 4096

// askCancel makes the request, unless it was made or the job was cancelled.
func (d *door) askCancel(ctx context.Context, id, reason string, from events.Proposer) error {
	keep := texts.Try(ctx, d.env.Bus, reason)
	reader := asks.Reader{Bus: d.env.Bus, Standing: d.env.Standing}
	for {
		j, err := d.own(ctx, id, from)
		if err != nil || j.Status == lifecycle.Cancelled {
			return err
		}
		if j.Status.Final() {
			return &agentapi.Error{Code: "already_ended", Status: http.StatusConflict, Message: fmt.Sprintf("cancel job %s: it is %s", id, j.Status)}
		}
		requests, last, err := reader.Requests(ctx, j)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(requests, func(q lifecycle.Request) bool { return q.Kind == "ask.cancel_requested" }) {
			return nil
		}
		ref, err := keep()
		if err != nil {
			return err
		}
		subject := events.For("ask.cancel_requested", j.Pool, id, d.env.Actor)
		_, err = d.env.Append.Append(ctx, subject, last, events.AskCancelRequested{Proposer: from, Reason: ref})
		var conflict *bus.Conflict
		if errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("ask for the end of job %s: %w", id, err)
		}
		return nil
	}
}
