package person

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
)

// Refusal is why a decision was not signed.
type Refusal struct {
	Code string // stable, see the constants
	Why  string
	Next string
}

func (r *Refusal) Error() string { return r.Why }

// Codes of refusals.
const (
	CodeDecided      = "already_decided"
	CodeUnresolved   = "unresolved"
	CodeSelfApproval = "self_approval"
	CodeTainted      = "tainted"
	CodeTwice        = "approved_twice"
	CodeExpired      = "expired"
	CodeNoReason     = "no_reason"
	CodeNoRight      = "no_right"  // the trust file in force does not let the person decide
	CodeOtherKey     = "other_key" // it names another key than the person's
	CodeTooLate      = "too_late"  // stored, and refused by the fold
	CodeOtherDigest  = "other_digest"
	CodeNeedsDigest  = "needs_digest" // a rule wants it, and none was named
	CodeNotApprover  = "not_an_approver"
	CodeWrongRoot    = "wrong_root"
	CodeBadActor     = "bad_actor"
	CodeActorExists  = "actor_exists"
	CodeUnknownActor = "unknown_actor"
)

func refuse(code, next, format string, args ...any) error {
	return &Refusal{Code: code, Why: fmt.Sprintf(format, args...), Next: next}
}

// approve makes the approval of a job as it stands, or says why not.
func approve(c *Config, j lifecycle.Job, actor, policy string, now time.Time) (*events.JobApproved, error) {
	if err := open(j, now); err != nil {
		return nil, err
	}
	if j.Tainted || j.Unreadable {
		return nil, refuse(CodeTainted, "look at it with 'banksman events --job "+j.ID+"'; it may only be denied",
			"approve job %s: %s", j.ID, unfit(j))
	}
	if j.Proposal.Proposer == (events.Proposer{Kind: "person", ID: actor}) {
		return nil, refuse(CodeSelfApproval, "ask another person", "approve job %s: you proposed it yourself", j.ID)
	}
	for _, a := range j.Approvals {
		if a.Actor == actor {
			return nil, refuse(CodeTwice, "ask another person", "approve job %s: you approved it at %s; %d of %d approvals are there", j.ID, a.At.UTC().Format(time.RFC3339), len(j.Approvals), j.Quorum)
		}
	}
	if j.Assessed() && len(j.Assessment.Approvers) > 0 && !slices.Contains(j.Assessment.Approvers, actor) {
		return nil, refuse(CodeNotApprover, "ask one of "+strings.Join(j.Assessment.Approvers, ", "), "approve job %s: rule %s does not name you among those who may", j.ID, j.Assessment.Ruling.Rule)
	}
	if j.Resolution == nil {
		return nil, refuse(CodeUnresolved, "start a worker of pool "+j.Pool+", or deny the job", "approve job %s: no worker has reported what would run%s", j.ID, declined(j))
	}
	return &events.JobApproved{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: policy, Basis: "person",
		ValidS: c.ApprovalValidS, MaxAttempts: j.Proposal.MaxAttempts, UnsafeSharedUser: j.Resolution.UnsafeSharedUser,
	}, nil
}

// sameDigest refuses a job that is not the one whose digest a person names. An
// empty prefix names none, which a rule may not take.
func sameDigest(j lifecycle.Job, prefix string) error {
	read := "read it with 'banksman show " + j.ID + "'"
	switch {
	case prefix == "" && j.Assessed() && j.Assessment.Confirm != "":
		return refuse(CodeNeedsDigest, fmt.Sprintf("%s, then approve it with --digest and the first %d digits or more of the digest that it prints", read, events.MinDigestDigits),
			"approve job %s: rule %s wants you to name the digest of what would run", j.ID, j.Assessment.Ruling.Rule)
	case prefix == "" || events.NamesDigest(j.ResolutionDigest, prefix):
		return nil
	case len(prefix) < events.MinDigestDigits:
		return refuse(CodeOtherDigest, fmt.Sprintf("give at least %d digits of the digest that 'banksman show %s' prints", events.MinDigestDigits, j.ID), "approve job %s: the digest %q is too short", j.ID, prefix)
	}
	return refuse(CodeOtherDigest, read, "approve job %s: what would run has the digest %.16s, not %.16s", j.ID, j.ResolutionDigest, prefix)
}

// unfit says what is wrong with a job's events.
func unfit(j lifecycle.Job) string {
	if j.Tainted {
		return fmt.Sprintf("event %d of it breaks a rule (%s)", j.TaintSeq, j.TaintCode)
	}
	return "it has an event of a newer version, which this banksman cannot read"
}

func declined(j lifecycle.Job) string {
	var b strings.Builder
	for _, d := range j.Declines {
		fmt.Fprintf(&b, "; %s declined: %s", d.Actor, d.Reason)
	}
	return b.String()
}

// deny makes the denial of a job as it stands, or says why not.
func deny(j lifecycle.Job, reason string, now time.Time) (*events.JobDenied, error) {
	if strings.TrimSpace(reason) == "" {
		return nil, refuse(CodeNoReason, "say why with --reason; it reaches the agent", "deny job %s: there is no reason", j.ID)
	}
	if err := open(j, now); err != nil {
		return nil, err
	}
	if err := free("deny job "+j.ID, reason); err != nil {
		return nil, err
	}
	return &events.JobDenied{Proposal: j.ProposalDigest, Basis: "person", Ruling: events.Ruling{Code: "person", Reason: reason}}, nil
}

// open refuses a job that nobody can decide any more.
func open(j lifecycle.Job, now time.Time) error {
	if j.Proposal == nil {
		return refuse(CodeTainted, "", "decide job %s: its proposal cannot be believed", j.ID)
	}
	if !j.Status.Undecided() {
		return refuse(CodeDecided, "look at it with 'banksman show "+j.ID+"'", "decide job %s: it is %s", j.ID, j.Status)
	}
	if !now.Before(j.RequestExpires()) {
		return refuse(CodeExpired, "propose it again", "decide job %s: the request expired at %s", j.ID, j.RequestExpires().UTC().Format(time.RFC3339))
	}
	return nil
}
