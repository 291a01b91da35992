package query_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// pages answers lists from ids, newest first, two at a time.
type pages struct {
	ids   []string
	asked int
	fails error
}

func (p *pages) Ask(_ context.Context, subject string, request, response any) error {
	q, out := request.(query.List), response.(*view.List)
	if p.asked++; subject != query.Jobs || p.fails != nil && p.asked > 1 {
		return errors.Join(p.fails, fmt.Errorf("asked on %s", subject))
	}
	rest := p.ids[slices.Index(p.ids, q.Before)+1:]
	for _, id := range rest[:min(2, len(rest))] {
		out.Jobs = append(out.Jobs, view.Job{Job: id})
	}
	out.More = len(rest) > 2
	return nil
}

func TestEachGoesThroughAllPages(t *testing.T) {
	for _, ids := range [][]string{nil, {"a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d", "e"}} {
		var got []string
		err := query.Each(t.Context(), &pages{ids: ids}, query.List{}, func(id string) error {
			got = append(got, id)
			return nil
		})
		if err != nil || !slices.Equal(got, ids) {
			t.Errorf("%q of %q, %v", got, ids, err)
		}
	}
}

func TestEachStopsAtAnError(t *testing.T) {
	stop := errors.New("stop")
	p := &pages{ids: []string{"a", "b", "c"}}
	if err := query.Each(t.Context(), p, query.List{}, func(string) error { return stop }); !errors.Is(err, stop) || p.asked != 1 {
		t.Errorf("%v after %d questions", err, p.asked)
	}
	away := errors.New("away")
	p = &pages{ids: []string{"a", "b", "c"}, fails: away}
	if err := query.Each(t.Context(), p, query.List{}, func(string) error { return nil }); !errors.Is(err, away) {
		t.Error(err)
	}
}
