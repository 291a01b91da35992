package approver

import (
	"context"
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/events/lifecycle/grant"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/permits"
	"github.com/banksman/banksman/services/internal/policy"
)

// counts says whether a grant may be used now, as far as this gate lets grants
// last.
func counts(c *Config, g grant.Grant, now time.Time) bool {
	return g.Usable(now) && now.Before(g.GivenAt.Add(time.Duration(c.GrantMaxS)*time.Second))
}

// byGrant is the approval by a use of a grant. It lasts no longer than the grant.
func byGrant(c *Config, j lifecycle.Job, p *policy.Policy, d policy.Decision, g grant.Grant, used uint64, now time.Time) verdict {
	left := int(g.Expires().Sub(now) / time.Second)
	r := events.Ruling{Rule: d.Rule, Code: "grant", Reason: fmt.Sprintf("%s has said yes in advance with grant %s: %s", g.GivenBy, g.ID, g.Given.Reason)}
	return verdict{kind: "job.approved", payload: &events.JobApproved{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: p.Digest(), Basis: "grant", Grant: g.ID, GrantUsed: used,
		Ruling: r, ValidS: max(1, min(c.ApprovalValidS, left)), MaxAttempts: j.Proposal.MaxAttempts, UnsafeSharedUser: j.Resolution.UnsafeSharedUser,
	}}
}

// granted approves a job that policy asks about by a grant that covers it; where
// there is none, v stands. The use is appended first, so that no crash and no
// second gate uses a grant more often than it says.
func (g *gate) granted(ctx context.Context, j lifecycle.Job, p *policy.Policy, v verdict, now time.Time) (verdict, error) {
	d := p.Assess(request(j, now))
	if d.Verdict != policy.Ask {
		return v, nil
	}
	passed := map[string]bool{} // grants that will not do
	for {
		all, err := g.grants.All(ctx)
		if err != nil {
			return verdict{}, err
		}
		found, used := g.choose(all, passed, j, d, now)
		if found == nil {
			return v, nil
		}
		if used > 0 {
			return byGrant(g.config, j, p, d, *found, used, now), nil
		}
		use := events.GrantUsed{Given: found.GivenSeq, Use: len(found.Uses) + 1, Job: j.ID, Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest}
		subject := events.For("grant.used", events.SiteScope, found.ID, g.env.Actor)
		switch _, err := g.env.Append.Append(ctx, subject, found.LastSeq, use); {
		case isConflict(err): // somebody used or revoked it
		case err != nil:
			return verdict{}, fmt.Errorf("use grant %s for job %s: %w", found.ID, j.ID, err)
		default:
			// The fold says on the next look whether it counts by the stream's
			// time. If not, this grant is not tried again.
			passed[found.ID] = true
		}
	}
}

// choose finds a grant for a job: one that it has used already, with the
// sequence of the use, else one that it may use.
func (g *gate) choose(all []grant.Grant, passed map[string]bool, j lifecycle.Job, d policy.Decision, now time.Time) (found *grant.Grant, used uint64) {
	env := host.PolicyEnv(g.env.Layout)
	for i, one := range all {
		u, hasUsed := one.UsedFor(j.ID)
		same := hasUsed && u.Proposal == j.ProposalDigest && u.Resolution == j.ResolutionDigest
		fresh := !hasUsed && !passed[one.ID] && counts(g.config, one, now)
		if !(same && one.Standing() || fresh) || !permits.Answers(d, one.GivenBy) || permits.Covers(one, j, request(j, now), env) != nil {
			continue
		}
		if same {
			return &all[i], u.Seq
		}
		if found == nil {
			found = &all[i]
		}
	}
	return found, 0
}
