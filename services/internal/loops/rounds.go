package loops

import (
	"context"
	"errors"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/query"
)

// Bounds of a list of rounds.
const (
	defaultRounds = 20
	maxRounds     = 200
)

// Rounds lists a project's rounds, newest first.
func (r Reader) Rounds(ctx context.Context, q query.RoundsRequest) (query.RoundList, error) {
	out := query.RoundList{Rounds: []query.RoundView{}}
	if err := events.CheckName("project", q.Project); err != nil {
		return out, err
	}
	newest, err := r.Newest(ctx, q.Project)
	if err != nil {
		return out, err
	}
	if q.Before > 0 {
		newest = min(newest, q.Before-1)
	}
	limit := min(q.Limit, maxRounds)
	if limit <= 0 {
		limit = defaultRounds
	}
	for n := newest; n > 0; n-- {
		if len(out.Rounds) == limit {
			out.More = true
			break
		}
		round, err := r.Round(ctx, events.RoundID(q.Project, n))
		if errors.Is(err, ErrUnknown) {
			continue // a start that nobody believes
		}
		if err != nil {
			return out, err
		}
		out.Rounds = append(out.Rounds, ViewRound(round))
	}
	return out, nil
}
