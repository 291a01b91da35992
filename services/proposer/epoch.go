package proposer

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// endedBefore returns the job of a key that was used in an epoch before and has ended, nil
// if there is none. The stream does not hold such a job any more, so the store would take
// the key for a new one; the auditor's index knows every job. Without its answer nothing is
// proposed.
func (d *door) endedBefore(ctx context.Context, id string, p events.JobProposed) (*view.Detail, error) {
	if p.IdempotencyKey == "" {
		return nil, nil
	}
	_, opened, err := d.env.Bus.Last(ctx, events.PrefixStored+".epoch.*.*.opened.*")
	if err != nil || !opened {
		return nil, err
	}
	var v view.Detail
	err = d.env.Bus.Ask(ctx, query.Get, query.GetRequest{Job: id}, &v)
	var remote *bus.RemoteError
	switch {
	case errors.As(err, &remote) && remote.Code == "unknown_job":
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look the idempotency key up among the jobs of epochs before: %w", err)
	}
	if p.Reason, err = d.sameWords(ctx, v.Reason, p.Reason); err != nil {
		return nil, err
	}
	data, err := events.Encode(p)
	if err != nil {
		return nil, err
	}
	if events.Digest(data) != v.ProposalDigest {
		return nil, otherContent(id)
	}
	v.Existing = true
	return &v, nil
}

// otherContent refuses a key that belongs to another proposal.
func otherContent(id string) error {
	return &agentapi.Error{Code: "idempotency_conflict", Status: http.StatusConflict,
		Message: fmt.Sprintf("the idempotency key belongs to job %s, which has other content", id), Next: "use another key, or repeat the first proposal exactly"}
}
