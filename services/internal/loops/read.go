package loops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/trust"
)

// Bus is the part of the bus that is asked.
type Bus interface {
	Last(ctx context.Context, filter string) (events.Stored, bool, error)
	Read(ctx context.Context, from uint64, filter string, limit int) ([]events.Stored, error)
}

// Standing is what is in force; *standing.Standing is the one.
type Standing interface {
	Refresh(ctx context.Context) error
	Book() *trust.Book
}

// ErrUnknown is a project or a round that the stream does not hold.
var ErrUnknown = errors.New("the log holds none of that name")

// Reader reads projects.
type Reader struct {
	Bus      Bus
	Standing Standing
}

const pageEvents = 256

// all reads everything under a filter.
func (r Reader) all(ctx context.Context, filter string) ([]events.Stored, error) {
	var out []events.Stored
	for next := uint64(1); ; {
		page, err := r.Bus.Read(ctx, next, filter, pageEvents)
		if err != nil || len(page) == 0 {
			return out, err
		}
		out = append(out, page...)
		next = page[len(page)-1].Seq + 1
	}
}

// about is the filter of everything that is stored about an id of a project,
// in any family.
func about(project, id string) string {
	return events.PrefixStored + ".*." + project + "." + id + ".>"
}

// Project folds a project. One that the stream does not know is the zero
// project with its name.
func (r Reader) Project(ctx context.Context, name string) (loop.Project, error) {
	return r.project(ctx, name, math.MaxUint64)
}

// project folds a project as of a sequence, so that what is stored while it
// is read is left out wherever it belongs.
func (r Reader) project(ctx context.Context, name string, through uint64) (loop.Project, error) {
	if err := events.CheckName("project", name); err != nil {
		return loop.Project{}, err
	}
	newest, err := r.Newest(ctx, name)
	if err != nil {
		return loop.Project{}, err
	}
	own, err := r.all(ctx, about(name, name))
	if err != nil {
		return loop.Project{}, fmt.Errorf("read project %s: %w", name, err)
	}
	if err := r.Standing.Refresh(ctx); err != nil {
		return loop.Project{}, err
	}
	// A start that the fold refuses has used up its number; the round before
	// it is the newest one.
	for ; newest > 0; newest-- {
		id := events.RoundID(name, newest)
		round, err := r.all(ctx, about(name, id))
		if err != nil {
			return loop.Project{}, fmt.Errorf("read round %s: %w", id, err)
		}
		if p := r.fold(name, append(round, own...), through); p.Round.ID == id || newest == 1 {
			return p, nil
		}
	}
	return r.fold(name, own, through), nil
}

// Newest is the largest number of a round that was ever begun, believed or
// not; 0 for none.
func (r Reader) Newest(ctx context.Context, project string) (int, error) {
	st, found, err := r.Bus.Last(ctx, events.PrefixStored+".round."+project+".*.started.*")
	if err != nil || !found {
		return 0, err
	}
	s, err := events.ParseSubject(st.Subject)
	if err != nil {
		return 0, nil // no event of ours
	}
	_, number, _ := ParseRound(s.ID)
	return number, nil
}

// fold opens and folds stored events in the order of the stream, up to a
// sequence.
func (r Reader) fold(name string, list []events.Stored, through uint64) loop.Project {
	p := loop.Project{Name: name}
	slices.SortFunc(list, func(a, b events.Stored) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, st := range list {
		if st.Seq <= through {
			p, _ = Apply(p, r.Standing.Book(), st)
		}
	}
	return p
}

// Apply opens a stored event about a project and folds it; err says why it
// changed nothing.
func Apply(p loop.Project, book *trust.Book, st events.Stored) (loop.Project, error) {
	s, err := events.ParseSubject(st.Subject)
	if err != nil || loop.Machine(s.Kind()) == "" {
		return p, err // a pool may have the project's name
	}
	e, err := book.Open(st)
	var unknown *events.UnknownKind
	if errors.As(err, &unknown) {
		p.Unreadable = true
	}
	if err == nil {
		return loop.Apply(p, e)
	}
	return p.Skip(s, st.Seq), err
}

// Round folds one round by its id.
func (r Reader) Round(ctx context.Context, id string) (loop.Round, error) {
	project, _, ok := ParseRound(id)
	if !ok {
		return loop.Round{}, fmt.Errorf("round %q: want <project>-<number>: %w", id, ErrUnknown)
	}
	list, err := r.all(ctx, about(project, id))
	if err != nil {
		return loop.Round{}, fmt.Errorf("read round %s: %w", id, err)
	}
	if err := r.Standing.Refresh(ctx); err != nil {
		return loop.Round{}, err
	}
	slices.SortFunc(list, func(a, b events.Stored) int { return cmp.Compare(a.Seq, b.Seq) })
	var out loop.Round
	for _, st := range list {
		e, err := r.Standing.Book().Open(st)
		if err == nil {
			out, err = out.Apply(e)
		}
		if s, bad := events.ParseSubject(st.Subject); err != nil && bad == nil {
			out = out.Skip(s, st.Seq)
		}
	}
	if out.ID == "" {
		return out, fmt.Errorf("round %s: %w", id, ErrUnknown)
	}
	return out, nil
}

// Projects lists every project that was ever claimed, by name.
func (r Reader) Projects(ctx context.Context) ([]string, error) {
	list, err := r.all(ctx, events.PrefixStored+".loop.*.*.claimed.*")
	if err != nil {
		return nil, fmt.Errorf("list the projects: %w", err)
	}
	var names []string
	for _, st := range list {
		if s, err := events.ParseSubject(st.Subject); err == nil {
			names = append(names, s.Scope)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
