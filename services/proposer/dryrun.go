package proposer

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
)

// previewWithin bounds how long a worker may take to look at what would run.
const previewWithin = 30 * time.Second

// dryRun says what would become of a proposal: what the gate would decide, and
// what a worker of the pool would run. A command that the gate denies is shown to
// no worker.
func (d *door) dryRun(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	var out query.DryRun
	payload, gate, err := d.judged(r, from)
	if err != nil {
		return err
	}
	out.Gate = gate
	if out.Gate.Verdict == "deny" {
		out.NoPreview = "the gate denies it"
		return reply(w, http.StatusOK, out)
	}
	ctx, cancel := context.WithTimeout(r.Context(), previewWithin)
	defer cancel()
	var seen query.Previewed
	switch err := d.env.Bus.Ask(ctx, query.Preview+"."+payload.Pool, query.PreviewRequest{Proposal: payload}, &seen); {
	case err == nil:
		out.Preview = &seen
	case errors.Is(err, bus.ErrNoResponder):
		out.NoPreview = "no worker of pool " + payload.Pool + " is there"
	default:
		out.NoPreview = "the worker of pool " + payload.Pool + " did not say: " + err.Error()
	}
	return reply(w, http.StatusOK, out)
}
