package auditor

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/events/lifecycle/alert"
	"github.com/banksman/banksman/services/internal/alerts"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/permits"
)

// carriedAgo is how long ago something may have happened that is still carried although
// it is over: a lost job accepts its late result, and sessions of workers are looked up.
const carriedAgo = 7 * 24 * time.Hour

// carriedRounds is how many rounds of a project go along, the newest ones. One would do;
// a start that the fold refused has used up its number.
const carriedRounds = 3

// inForce lists what goes along into the next epoch: the jobs that have not ended, as of
// the head that it names, and what everybody reads to decide: requests, bars, grants,
// alerts, the newest rounds. Families that are not listed go along whole: trust and policy
// with their histories, epochs, gaps, stop orders and projects.
func (a *auditor) inForce(ctx context.Context) (*events.EpochOpened, error) {
	long := time.Now().Add(-carriedAgo)
	var jobs []string
	at, err := a.index.Open(func(j lifecycle.Job) {
		if j.Status != lifecycle.Lost || j.UpdatedAt.After(long) {
			jobs = append(jobs, j.ID)
		}
	})
	if err != nil {
		return nil, err
	}
	root, err := a.reader.TreeHash(at.Leaves)
	if err != nil {
		return nil, err
	}
	p := &events.EpochOpened{
		Origin: a.log.Origin(), Size: at.Leaves, Root: base64.StdEncoding.EncodeToString(root[:]), Through: at.Through,
		Carried: map[string][]string{"job": jobs, "audit": nil, "host": nil, "proposal": nil},
	}
	for family, list := range map[string]func(context.Context) ([]string, error){
		"ask": func(ctx context.Context) ([]string, error) {
			bars, err := a.bars(ctx)
			return append(bars, jobs...), err
		},
		"grant":  a.grants,
		"alert":  a.openAlerts,
		"worker": func(ctx context.Context) ([]string, error) { return a.recent(ctx, "worker", long) },
	} {
		if p.Carried[family], err = list(ctx); err != nil {
			return nil, fmt.Errorf("list what is in force: %s: %w", family, err)
		}
	}
	rounds, err := a.rounds(ctx)
	if err != nil {
		return nil, fmt.Errorf("list what is in force: %w", err)
	}
	for _, family := range []string{"round", "agent", "work"} {
		p.Carried[family] = rounds
	}
	for family, ids := range p.Carried {
		slices.Sort(ids)
		p.Carried[family] = append([]string{}, slices.Compact(ids)...)
	}
	return p, nil
}

// each shows every stored event under a filter.
func (a *auditor) each(ctx context.Context, filter string, visit func(s events.Subject, st events.Stored)) error {
	for next := uint64(1); ; {
		page, err := a.stream.Read(ctx, next, filter, tailPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, st := range page {
			if s, err := events.ParseSubject(st.Subject); err == nil {
				visit(s, st)
			}
			next = st.Seq + 1
		}
	}
}

// bars are the contents that are barred and not lifted, or perhaps so: whether an event
// is believed is for who reads it.
func (a *auditor) bars(ctx context.Context) ([]string, error) {
	barred := map[string]bool{}
	err := a.each(ctx, events.PrefixStored+".ask.*.*.barred.*", func(s events.Subject, _ events.Stored) { barred[s.ID] = true })
	return slices.Collect(maps.Keys(barred)), err
}

// grants are those that may still be used.
func (a *auditor) grants(ctx context.Context) ([]string, error) {
	k := permits.Keeper{Reader: permits.Reader{Bus: a.stream, Standing: a.standing}}
	all, err := k.All(ctx)
	var ids []string
	for _, g := range all {
		if g.Unreadable || g.Standing() && time.Now().Before(g.Expires()) {
			ids = append(ids, g.ID)
		}
	}
	return ids, err
}

// openAlerts are those whose episode has not ended.
func (a *auditor) openAlerts(ctx context.Context) ([]string, error) {
	all := map[string]alert.Alert{}
	err := a.each(ctx, events.PrefixStored+".alert.>", func(s events.Subject, st events.Stored) {
		e, err := a.standing.Book().Open(st)
		all[s.ID], _ = alerts.Apply(all[s.ID], e, err)
	})
	var ids []string
	for id, al := range all {
		if al.Unreadable || al.Open() {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// recent are the ids of a family about which something was stored lately.
func (a *auditor) recent(ctx context.Context, family string, since time.Time) ([]string, error) {
	ids := map[string]bool{}
	err := a.each(ctx, events.PrefixStored+"."+family+".>", func(s events.Subject, st events.Stored) {
		if st.Time.After(since) {
			ids[s.ID] = true
		}
	})
	return slices.Collect(maps.Keys(ids)), err
}

// rounds are the newest of every project.
func (a *auditor) rounds(ctx context.Context) ([]string, error) {
	r := loops.Reader{Bus: a.stream, Standing: a.standing}
	projects, err := r.Projects(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, name := range projects {
		newest, err := r.Newest(ctx, name)
		if err != nil {
			return nil, err
		}
		for n := newest; n > 0 && n > newest-carriedRounds; n-- {
			ids = append(ids, events.RoundID(name, n))
		}
	}
	return ids, nil
}
