package worker

import (
	"context"
	"errors"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// maxAsked bounds how many jobs of a list are looked at in one go.
const maxAsked = 1000

// maxOffers bounds how many declines of others wait to be looked at.
const maxOffers = 256

// declineSubjects are all declines in the pool.
func (s *shift) declineSubjects() string {
	return events.PrefixStored + ".job." + s.cfg.Pool + ".*.declined.*"
}

// onDecline hands a decline to takeOffers. The copy is only a hint, and one that
// is lost is made up for by the questions to the index.
func (s *shift) onDecline(st events.Stored) {
	select {
	case s.offers <- st:
	default:
	}
}

// takeOffers looks at what other workers of the pool cannot run, until ctx ends:
// the queue has given these jobs away and does not offer them a second time.
func (s *shift) takeOffers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case st := <-s.offers:
			s.takeOffer(ctx, st)
		}
	}
}

func (s *shift) takeOffer(ctx context.Context, st events.Stored) {
	subject, err := events.ParseSubject(st.Subject)
	if err != nil {
		return
	}
	j, err := s.jobAt(ctx, subject.ID, st.Seq)
	switch {
	case err != nil || j.Proposal == nil || declined(j, s.me):
	case j.Status.Undecided():
		s.resolveLate(ctx, j.ID)
	case mayStart(j, s.me, s.clock.now()) == "":
		s.later(ctx, j.ID, time.Time{})
	}
}

// resolveLate looks up a proposal that came by no delivery.
func (s *shift) resolveLate(ctx context.Context, id string) {
	if err := s.resolveJob(ctx, id, 0); err != nil && ctx.Err() == nil {
		s.log.Warn("a waiting proposal could not be looked up; the index names it again", "job", id, "error", err)
	}
}

// resolveWaiting looks up what the index says nobody has: a resolver that was
// killed holds its deliveries until the queue gives them away again, and one that
// declined has none any more.
func (s *shift) resolveWaiting(ctx context.Context) {
	jobs, err := s.list(ctx, lifecycle.Proposed, lifecycle.Pending)
	if err != nil {
		return
	}
	for _, j := range jobs {
		if ctx.Err() != nil {
			return
		}
		if j.Status == lifecycle.Proposed || j.Unresolved {
			s.resolveLate(ctx, j.Job)
		}
	}
}

// list asks the index for the pool's jobs in some statuses, oldest first.
func (s *shift) list(ctx context.Context, status ...lifecycle.Status) ([]view.Job, error) {
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var page view.List
	err := s.env.Bus.Ask(asking, query.Jobs, query.List{Pool: s.cfg.Pool, Status: status, Limit: maxAsked}, &page)
	if err != nil {
		var denied *bus.Denied
		if ctx.Err() == nil && !errors.As(err, &denied) { // a denial is told once, by who watches peers
			s.log.Debug("the index did not list jobs", "status", status, "error", err)
		}
		return nil, err
	}
	for i, n := 0, len(page.Jobs); i < n/2; i++ {
		page.Jobs[i], page.Jobs[n-1-i] = page.Jobs[n-1-i], page.Jobs[i]
	}
	return page.Jobs, nil
}
