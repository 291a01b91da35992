package approver

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/policy"
)

// request is a job as the policy sees it at a moment.
func request(j lifecycle.Job, now time.Time) policy.Request {
	r := policy.Request{
		Argv: j.Proposal.Argv, Cwd: j.Proposal.Cwd, Pool: j.Pool, Proposer: j.Proposal.Proposer.String(),
		Timeout_s: j.Proposal.TimeoutS, MaxAttempts: j.Proposal.MaxAttempts,
		EnvNames: slices.Sorted(maps.Keys(j.Proposal.Env)), Env: j.Proposal.Env, At: now,
	}
	if j.Resolution != nil {
		r.RealCwd, r.ResolvedPath = j.Resolution.Cwd, j.Resolution.Program.Path
	}
	return r
}

func ruling(d policy.Decision) events.Ruling {
	return events.Ruling{Rule: d.Rule, Code: string(d.Code), Reason: d.Reason, Instead: d.Instead, Broad: d.Broad}
}

// verdict is what the gate does about a job: append a payload, look again
// after a while, or nothing.
type verdict struct {
	kind    events.Kind
	payload any
	again   time.Duration
}

// decide says what is due for an undecided job under a policy.
func decide(c *Config, j lifecycle.Job, p *policy.Policy, now time.Time) verdict {
	if !j.Status.Undecided() || j.Tainted || j.Unreadable {
		return verdict{}
	}
	if j.Resolution == nil {
		return unresolved(c, j, p, now)
	}
	if j.Assessment != nil && j.Assessment.Resolution == j.ResolutionDigest {
		return verdict{} // people have it
	}
	d := p.Assess(request(j, now))
	switch d.Verdict {
	case policy.Allow:
		return verdict{kind: "job.approved", payload: &events.JobApproved{
			Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: p.Digest(), Basis: "policy",
			Ruling: ruling(d), ValidS: c.ApprovalValidS, MaxAttempts: j.Proposal.MaxAttempts, UnsafeSharedUser: j.Resolution.UnsafeSharedUser,
		}}
	case policy.Ask:
		return assessed(j, p, d)
	default:
		return denied(j, p, d)
	}
}

// unresolved decides what can be decided before a worker has looked.
func unresolved(c *Config, j lifecycle.Job, p *policy.Policy, now time.Time) verdict {
	d := p.Static(request(j, now))
	if d.Verdict == policy.Deny {
		return denied(j, p, d)
	}
	if j.Assessment != nil {
		return verdict{}
	}
	if left := c.resolveWait() - now.Sub(j.ProposedAt); left > 0 {
		return verdict{again: min(left, c.resolveWait())} // this clock may be behind the stream's
	}
	return assessed(j, p, d)
}

func denied(j lifecycle.Job, p *policy.Policy, d policy.Decision) verdict {
	return verdict{kind: "job.denied", payload: &events.JobDenied{
		Proposal: j.ProposalDigest, Policy: p.Digest(), Basis: "policy", Ruling: ruling(d),
	}}
}

func assessed(j lifecycle.Job, p *policy.Policy, d policy.Decision) verdict {
	r := ruling(d)
	if j.Resolution == nil {
		r.Code, r.Reason = "unresolved", "no worker of pool "+j.Pool+" has reported what would run; the job may be denied, not approved"+declines(j)
	}
	confirm := ""
	if d.Confirm {
		confirm = events.ConfirmDigest
	}
	return verdict{kind: "job.assessed", payload: &events.JobAssessed{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: p.Digest(), Ruling: r, Quorum: max(1, d.Quorum), Approvers: d.Approvers,
		Confirm: confirm,
	}}
}

// declines tells why workers could not.
func declines(j lifecycle.Job) string {
	var parts []string
	for _, d := range j.Declines {
		parts = append(parts, d.Actor+": "+d.Reason)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// expire says whether a job ran out.
func expire(j lifecycle.Job, now time.Time) verdict {
	what, due := "", time.Time{}
	switch {
	case j.Status.Undecided():
		what, due = "request", j.RequestExpires()
	case j.Status == lifecycle.Approved || j.Status == lifecycle.RetryWait:
		what, due = "approval", j.ApprovalExpires()
	}
	if what == "" || j.Proposal == nil || now.Before(due) {
		return verdict{}
	}
	return verdict{kind: "job.expired", payload: &events.JobExpired{Proposal: j.ProposalDigest, What: what}}
}
