package supervisor

import (
	"context"
	"encoding/json/v2"
	"errors"
	"slices"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/query"
)

// Codes of answers that say no.
const (
	codeBadRequest = "bad_request"
	codeNotFound   = "not_found"
)

// serve answers questions about projects. What it says is read from the log,
// so any supervisor can answer for all; why a project of this one waits is
// known here alone.
func (s *shift) serve(ctx context.Context) (stop func(), err error) {
	return s.env.Bus.Serve(ctx, "banksman-supervisor", "1.0.0", "projects and their rounds", map[string]bus.Endpoint{
		query.Loops:  func(ctx context.Context, q []byte) (any, error) { return answer(ctx, q, s.answerLoops) },
		query.Rounds: func(ctx context.Context, q []byte) (any, error) { return answer(ctx, q, s.answerRounds) },
		query.Round:  func(ctx context.Context, q []byte) (any, error) { return answer(ctx, q, s.answerRound) },
	})
}

func answer[Q any, A any](ctx context.Context, request []byte, say func(context.Context, Q) (A, error)) (any, error) {
	var q Q
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, &bus.RemoteError{Code: codeBadRequest, Message: "the question cannot be read: " + err.Error()}
	}
	a, err := say(ctx, q)
	if errors.Is(err, loops.ErrUnknown) {
		return nil, &bus.RemoteError{Code: codeNotFound, Message: err.Error()}
	}
	return a, err
}

func (s *shift) answerLoops(ctx context.Context, q query.LoopsRequest) (query.LoopList, error) {
	names := []string{q.Project}
	if q.Project == "" {
		var err error
		if names, err = s.read.Projects(ctx); err != nil {
			return query.LoopList{}, err
		}
		for _, t := range s.tends {
			names = append(names, t.name)
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	out := query.LoopList{Loops: []query.LoopView{}}
	for _, name := range names {
		p, err := s.read.Project(ctx, name)
		if err != nil {
			return query.LoopList{}, err
		}
		v := loops.View(p)
		if t := s.tender(name); t != nil {
			if why := t.waits(); why != "" {
				v.Reason = why
			}
			v.MaxRounds = t.cfg.MaxRounds
		} else if p.Loop.LastSeq == 0 {
			return query.LoopList{}, &bus.RemoteError{Code: codeNotFound, Message: "no supervisor knows project " + name}
		}
		out.Loops = append(out.Loops, v)
	}
	return out, nil
}

func (s *shift) answerRounds(ctx context.Context, q query.RoundsRequest) (query.RoundList, error) {
	if err := events.CheckName("project", q.Project); err != nil {
		return query.RoundList{}, &bus.RemoteError{Code: codeBadRequest, Message: err.Error()}
	}
	return s.read.Rounds(ctx, q)
}

func (s *shift) answerRound(ctx context.Context, q query.RoundRequest) (query.RoundView, error) {
	r, err := s.read.Round(ctx, q.Round)
	if err != nil {
		return query.RoundView{}, err
	}
	return loops.ViewRound(r), nil
}
