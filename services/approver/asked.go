package approver

import (
	"context"
	"errors"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/asks"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/policy"
)

// runningAgain is how soon a request about a running job is looked at again. Its
// worker ends the attempt; should the job then wait for another one, the gate
// ends that.
const runningAgain = 5 * time.Second

// due is what a request makes the gate append: nothing where the job has ended,
// or where its worker has to act.
func due(j lifecycle.Job, r lifecycle.Request) verdict {
	waits := j.Status == lifecycle.Approved || j.Status == lifecycle.RetryWait
	switch {
	case r.Kind == "ask.cancel_requested" && (j.Status.Undecided() || waits):
		return verdict{kind: "job.cancelled", payload: &events.JobCancelled{By: r.By, Reason: r.Reason, Request: r.Seq}}
	case r.Kind == "ask.revoke_requested" && waits:
		return verdict{kind: "job.revoked", payload: &events.JobRevoked{Proposal: j.ProposalDigest, By: r.By, Reason: r.Reason, Request: r.Seq}}
	case j.Status == lifecycle.Running:
		return verdict{again: runningAgain}
	}
	return verdict{}
}

// firstDue is what is due for the first request that makes anything due.
func firstDue(j lifecycle.Job, requests []lifecycle.Request) (v verdict) {
	for _, r := range requests {
		if v = due(j, r); v.payload != nil || v.again > 0 {
			return v
		}
	}
	return verdict{}
}

// answerJob carries out what was asked about a job. A conflict means that
// somebody was faster: the job is read again.
func (g *gate) answerJob(ctx context.Context, id string) (again time.Duration, err error) {
	for {
		j, err := g.env.Standing.Job(ctx, id)
		if errors.Is(err, jobs.ErrUnknown) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		requests, _, err := g.asks().Requests(ctx, j)
		if err != nil {
			return 0, err
		}
		v := firstDue(j, requests)
		if v.payload == nil {
			return v.again, nil
		}
		if err := g.append(ctx, j, v); !isConflict(err) {
			return 0, err
		}
	}
}

func (g *gate) asks() asks.Reader { return asks.Reader{Bus: g.env.Bus, Standing: g.env.Standing} }

// codeDeniedBefore is the code of a denial that a person's earlier one causes.
const codeDeniedBefore = "denied_before"

// barredRuling is the denial that a bar causes.
func barredRuling(b asks.Bar) events.Ruling {
	return events.Ruling{
		Code: codeDeniedBefore, Reason: b.Reason,
		Instead: "a person has denied this command before, as job " + b.Job + "; ask somebody to lift that with 'banksman deny --clear " + b.Job + "'",
	}
}

// weigh looks at what persons have said in advance, wherever policy alone would
// not deny: a denial that sticks denies at once, a grant answers in a person's
// place.
func (g *gate) weigh(ctx context.Context, j lifecycle.Job, p *policy.Policy, v verdict, now time.Time) (verdict, error) {
	if v.kind == "job.denied" || v.payload == nil && v.again == 0 {
		return v, nil
	}
	bar, _, err := g.asks().Bar(ctx, asks.ContentOf(j), j.Proposal.Proposer)
	if err != nil {
		return verdict{}, err
	}
	if bar != nil {
		return verdict{kind: "job.denied", payload: &events.JobDenied{
			Proposal: j.ProposalDigest, Policy: p.Digest(), Basis: "policy", Ruling: barredRuling(*bar),
		}}, nil
	}
	if v.kind == "job.assessed" && j.Resolution != nil {
		return g.granted(ctx, j, p, v, now)
	}
	return v, nil
}
