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

// maxPages bounds how many pages of everybody's jobs one question looks
// through, so that a caller with few jobs costs no more than one with many.
const maxPages = 20

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
	q := query.List{Before: r.FormValue("before")}
	if q.Before != "" {
		if _, err := d.own(r.Context(), q.Before, from); err != nil {
			return err
		}
	}
	out := view.List{Jobs: []view.Job{}}
	for range maxPages {
		var page view.List
		if err := d.env.Bus.Ask(r.Context(), query.Jobs, q, &page); err != nil {
			return fmt.Errorf("ask the auditor for jobs: %w", err)
		}
		for _, j := range page.Jobs {
			q.Before = j.Job
			switch {
			case j.Proposer != from.String():
			case len(out.Jobs) == limit:
				out.More = true
				return reply(w, http.StatusOK, out)
			default:
				out.Jobs = append(out.Jobs, j)
			}
		}
		if !page.More || len(page.Jobs) == 0 {
			return reply(w, http.StatusOK, out)
		}
	}
	out.More = true
	return reply(w, http.StatusOK, out)
}
