package worker

import (
	"context"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/asks"
	"github.com/banksman/banksman/services/internal/permits"
	"github.com/banksman/banksman/services/internal/policy"
)

// codeGrantChanged is the code of a job whose grant no longer stands.
const codeGrantChanged = "grant_changed"

// reasonAsked is why an attempt is ended that somebody has asked to cancel; who
// and why is in the request.
const reasonAsked = "somebody entitled asked for it"

// heedEvery bounds how late a request is noticed whose live copy was lost, or
// that came while its job was being claimed.
const heedEvery = 5 * time.Second

// heed ends running attempts that somebody entitled has asked to cancel, until
// ctx ends. It goes on while the worker drains.
func (s *shift) heed(ctx context.Context) {
	wake := make(chan struct{}, 1)
	rouse := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	subjects := events.PrefixStored + ".ask." + s.cfg.Pool + ".*.cancel_requested.*"
	stop, err := s.env.Bus.Live(ctx, subjects, func(events.Stored) { rouse() })
	if err != nil {
		s.log.Warn("requests to cancel are noticed late, because their live copies cannot be heard", "error", err)
		stop = func() {}
	}
	defer stop()
	tick := time.NewTicker(heedEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-tick.C:
		}
		s.heedAll(ctx)
	}
}

// heedAll looks at what was asked about each running job.
func (s *shift) heedAll(ctx context.Context) {
	s.mu.Lock()
	running := map[*attempt]lifecycle.Job{}
	for a := range s.running {
		running[a] = a.job
	}
	s.mu.Unlock()
	reader := asks.Reader{Bus: s.env.Bus, Standing: s.env.Standing}
	for a, j := range running {
		requests, _, err := reader.Requests(ctx, j)
		if err != nil {
			if ctx.Err() == nil {
				s.log.Debug("what was asked about a job cannot be read; it is looked at again", "job", j.ID, "error", err)
			}
			return
		}
		i := slices.IndexFunc(requests, func(r lifecycle.Request) bool { return r.Kind == "ask.cancel_requested" })
		if i >= 0 {
			a.cancel(requests[i])
		}
	}
}

// cancel ends the attempt on somebody's request, unless it is being ended.
func (a *attempt) cancel(r lifecycle.Request) {
	a.mu.Lock()
	first := a.ending == ""
	if first {
		a.asked = r
	}
	a.mu.Unlock()
	if first {
		a.end(reasonAsked)
	}
}

// byGrant judges an approval by grant without believing the gate: the grant
// stands, the use belongs to this job and these digests, and the scope covers
// what would run. Nil also for a job that no grant has approved.
func (s *shift) byGrant(ctx context.Context, j lifecycle.Job, d policy.Decision) (*change, error) {
	for _, a := range j.Approvals {
		if a.Basis != "grant" {
			continue
		}
		g, err := permits.Reader{Bus: s.env.Bus, Standing: s.env.Standing}.Grant(ctx, a.Grant)
		if err != nil {
			return nil, err
		}
		u, used := g.UsedFor(j.ID)
		q := request(j, j.Resolution.Cwd, j.Resolution.Program.Path, s.clock.now())
		switch {
		case !used || u.Seq != a.GrantUsed || u.Proposal != j.ProposalDigest || u.Resolution != j.ResolutionDigest:
			return &change{codeGrantChanged, "it names a use of grant " + a.Grant + " that was not made for it"}, nil
		case !g.Standing():
			return &change{codeGrantChanged, "grant " + a.Grant + " was revoked by " + g.RevokedBy + ": " + g.Reason}, nil
		case d.Verdict != policy.Allow && !permits.Answers(d, g.GivenBy):
			return &change{codePolicyChanged, "the policy in force does not let " + g.GivenBy + " alone approve it, in advance or at all: " + d.Reason}, nil
		}
		if err := permits.Covers(g, j, q, host.PolicyEnv(s.env.Layout)); err != nil {
			return &change{codeGrantChanged, "grant " + a.Grant + " does not cover it: " + err.Error()}, nil
		}
	}
	return nil, nil
}
