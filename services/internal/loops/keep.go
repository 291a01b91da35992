package loops

import (
	"context"
	"fmt"
	"sync"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
)

// Keeper keeps one project folded: after the first time only what is new is
// read. It may be asked from several goroutines.
type Keeper struct {
	Reader Reader
	Name   string

	mu      sync.Mutex // guards the rest
	p       loop.Project
	through uint64 // everything about the project up to here is folded; 0 before the first time
}

// Project is the project as of now. Through is the sequence up to which the
// stream was seen.
func (k *Keeper) Project(ctx context.Context) (p loop.Project, through uint64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	st, _, err := k.Reader.Bus.Last(ctx, events.PrefixStored+".>")
	if err != nil {
		return loop.Project{}, 0, fmt.Errorf("read project %s: %w", k.Name, err)
	}
	switch {
	case st.Seq == k.through && st.Seq > 0:
		return k.p, k.through, nil
	case k.through == 0 || st.Seq < k.through:
		if k.p, err = k.Reader.project(ctx, k.Name, st.Seq); err != nil {
			return loop.Project{}, 0, err
		}
		k.through = st.Seq
		return k.p, k.through, nil
	}
	if err := k.catchUp(ctx); err != nil {
		return loop.Project{}, 0, err
	}
	k.through = max(k.through, st.Seq)
	return k.p, k.through, nil
}

// catchUp folds what was stored since.
func (k *Keeper) catchUp(ctx context.Context) error {
	for {
		page, err := k.Reader.Bus.Read(ctx, k.through+1, about(k.Name, "*"), pageEvents)
		if err != nil {
			return fmt.Errorf("read project %s: %w", k.Name, err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := k.Reader.Standing.Refresh(ctx); err != nil {
			return err
		}
		for _, st := range page {
			k.p, _ = Apply(k.p, k.Reader.Standing.Book(), st)
			k.through = st.Seq
		}
	}
}
