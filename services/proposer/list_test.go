package proposer

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"testing"

	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// list plays the auditor's answers to questions for jobs.
func (y *yard) list(answer func(query.List) view.List) {
	y.T.Helper()
	stop, err := y.Conn("auditor").Serve(y.Context(), "banksman-auditor", "0.0.1", "a test", map[string]bus.Endpoint{
		query.Jobs: func(_ context.Context, data []byte) (any, error) {
			var q query.List
			if err := json.Unmarshal(data, &q); err != nil {
				return nil, err
			}
			return answer(q), nil
		},
	})
	stage.Must(y.T, err)
	y.T.Cleanup(stop)
}

// index plays the auditor's list of everybody's jobs, newest first.
func (y *yard) index(rows []view.Job) {
	y.list(func(q query.List) (out view.List) {
		behind := q.Before == ""
		for _, r := range rows {
			switch {
			case !behind:
				behind = r.Job == q.Before
			case q.From != "" && r.Proposer != q.From:
			case len(out.Jobs) == q.Limit:
				out.More = true
			default:
				out.Jobs = append(out.Jobs, r)
			}
		}
		return out
	})
}

func TestListHoldsOwnJobsOnly(t *testing.T) {
	y := newYard(t, stage.Options{})
	var mine []string // oldest first
	for range 3 {
		j, err := y.local().Propose(t.Context(), agentapi.Proposal{Argv: []string{"true"}, Cwd: "/"})
		stage.Must(t, err)
		mine = append(mine, j.Job.Job)
	}
	other, err := y.as("agent.other").Propose(t.Context(), agentapi.Proposal{Argv: []string{"true"}, Cwd: "/"})
	stage.Must(t, err)
	rows := []view.Job{{Job: other.Job.Job, Proposer: "agent:other"}}
	for i := range mine {
		own, err := y.local().Job(t.Context(), mine[len(mine)-1-i], 0, 0)
		stage.Must(t, err)
		rows = append(rows, own.Job, view.Job{Job: fmt.Sprintf("foreign-%d", i), Proposer: other.Job.Proposer})
	}
	rows[0].Proposer = other.Job.Proposer
	y.index(rows)

	for _, c := range []struct {
		limit  int
		before string
		want   []string
		more   bool
	}{
		{0, "", []string{mine[2], mine[1], mine[0]}, false},
		{3, "", []string{mine[2], mine[1], mine[0]}, false},
		{2, "", []string{mine[2], mine[1]}, true},
		{1, mine[2], []string{mine[1]}, true},
		{1, mine[1], []string{mine[0]}, false},
		{5, mine[0], nil, false},
	} {
		got, err := y.local().List(t.Context(), c.limit, c.before)
		stage.Must(t, err)
		var ids []string
		for _, j := range got.Jobs {
			ids = append(ids, j.Job)
		}
		if fmt.Sprint(ids) != fmt.Sprint(c.want) || got.More != c.more || got.Jobs == nil {
			t.Errorf("limit %d before %q: %q, more %v", c.limit, c.before, ids, got.More)
		}
	}
	_, err = y.local().List(t.Context(), 1, other.Job.Job)
	refused(t, err, "unknown_job", 404)
	for _, limit := range []int{agentapi.MaxListed + 1, 1 << 30} {
		_, err = y.local().List(t.Context(), limit, "")
		refused(t, err, "bad_request", 400)
	}
	if status, e, _ := y.raw("GET", "/v1/jobs?limit=many", "Bearer "+y.tokens["agent.local"], nil); status != 400 || e.Code != "bad_request" {
		t.Errorf("%d %+v", status, e)
	}
	if status, _, _ := y.raw("GET", "/v1/jobs", "", nil); status != 401 {
		t.Errorf("without a token: %d", status)
	}
}

// An auditor that does not know the filter makes nobody else's jobs visible.
func TestListNeverShowsOthers(t *testing.T) {
	y := newYard(t, stage.Options{})
	y.list(func(query.List) view.List {
		return view.List{Jobs: []view.Job{{Job: "foreign", Proposer: "agent:other"}}, More: true}
	})
	got, err := y.local().List(t.Context(), 0, "")
	if err != nil || len(got.Jobs) != 0 || !got.More {
		t.Errorf("%+v, %v", got, err)
	}
}
