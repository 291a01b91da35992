package permits

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/grant"
	"github.com/banksman/banksman/services/internal/asks"
	"github.com/banksman/banksman/services/internal/trust"
)

// Reader reads grants.
type Reader struct {
	Bus      asks.Bus
	Standing asks.Standing
}

const pageEvents = 256

// everything is the filter of all that is stored about grants.
const everything = events.PrefixStored + ".grant.>"

// Grant folds one grant. One that the stream does not hold has no status.
func (r Reader) Grant(ctx context.Context, id string) (grant.Grant, error) {
	var g grant.Grant
	if events.For("grant.given", events.SiteScope, id, events.SiteScope).Valid() != nil { // a wildcard would be every grant
		return g, nil
	}
	err := r.each(ctx, 1, events.Filter("grant", id), func(st events.Stored) { g = apply(g, r.Standing.Book(), st) })
	if err != nil {
		return grant.Grant{}, fmt.Errorf("read grant %s: %w", id, err)
	}
	return g, nil
}

func (r Reader) each(ctx context.Context, next uint64, filter string, visit func(events.Stored)) error {
	for {
		page, err := r.Bus.Read(ctx, next, filter, pageEvents)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := r.Standing.Refresh(ctx); err != nil {
			return err
		}
		for _, st := range page {
			visit(st)
			next = st.Seq + 1
		}
	}
}

// apply folds a stored event; one that may not be believed moves the position
// only.
func apply(g grant.Grant, book *trust.Book, st events.Stored) grant.Grant {
	e, err := book.Open(st)
	var unknown *events.UnknownKind
	if errors.As(err, &unknown) {
		g.Unreadable = true
	}
	if err != nil {
		return g.Skip(st.Seq)
	}
	g, _ = grant.Apply(g, e) // what it refuses is the auditor's to report
	return g
}

// Keeper keeps all grants folded: after the first time only what is new is
// read.
type Keeper struct {
	Reader Reader

	mu      sync.Mutex // guards the rest
	all     map[string]grant.Grant
	through uint64
}

// All are the grants of the site as of now, by id.
func (k *Keeper) All(ctx context.Context) ([]grant.Grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[string]grant.Grant{}
	}
	err := k.Reader.each(ctx, k.through+1, everything, func(st events.Stored) {
		k.through = st.Seq
		if s, err := events.ParseSubject(st.Subject); err == nil {
			k.all[s.ID] = apply(k.all[s.ID], k.Reader.Standing.Book(), st)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the grants: %w", err)
	}
	list := slices.Collect(maps.Values(k.all))
	slices.SortFunc(list, func(a, b grant.Grant) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}
