package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/banksman/banksman/services/internal/view"
)

// MaxListed is the most jobs that one list may hold.
const MaxListed = 100

// List returns own jobs, newest first, at most limit of them (0 for the
// proposer's default, at most [MaxListed]). Before is the id of an own job; the
// list holds those older than it. Where More is set, the last one's id asks for
// the next page.
func (c *Client) List(ctx context.Context, limit int, before string) (view.List, error) {
	q := url.Values{}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	if before != "" {
		q.Set("before", before)
	}
	return call[view.List](ctx, c, http.MethodGet, "/v1/jobs?"+q.Encode(), nil)
}
