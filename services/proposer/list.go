package proposer

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// defaultListed is how many jobs a list holds when the question names no limit.
const defaultListed = 20

// list answers with the caller's own jobs, newest first. Others leave no trace
// in it, not even in the cursor.
func (d *door) list(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	limit := defaultListed
	if text := r.FormValue("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > agentapi.MaxListed {
			return &agentapi.Error{Code: "bad_request", Status: http.StatusBadRequest, Message: fmt.Sprintf("list jobs: limit must be 1 to %d", agentapi.MaxListed)}
		}
		limit = n
	}
	q := query.List{From: from.String(), Limit: limit, Before: r.FormValue("before")}
	if q.Before != "" {
		if _, err := d.own(r.Context(), q.Before, from); err != nil {
			return err
		}
	}
	var out view.List
	if err := d.env.Bus.Ask(r.Context(), query.Jobs, q, &out); err != nil {
		return fmt.Errorf("ask the auditor for jobs: %w", err)
	}
	// An auditor that does not know the filter must not make others visible.
	own := []view.Job{}
	for _, j := range out.Jobs {
		if j.Proposer == q.From {
			own = append(own, j)
		}
	}
	out.Jobs = own
	if err := d.words().Fill(r.Context(), out.Words()...); err != nil {
		return err
	}
	return reply(w, http.StatusOK, out)
}
