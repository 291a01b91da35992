package proposer

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// takenWithin bounds how long an answer waits for the log to seal the approval.
const takenWithin = 15 * time.Second

// take hands an approved job over to whoever proposed it, once. As before a start by
// a worker, the log has to have sealed the approvals, and what would run has to be
// what was approved; if it is not, the job is called off.
func (d *door) take(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	id := r.PathValue("id")
	wait, cancel := context.WithTimeout(r.Context(), takenWithin)
	defer cancel()
	for {
		j, err := d.own(r.Context(), id, from)
		if err == nil {
			err = mayTake(j, time.Now())
		}
		if err != nil {
			return err
		}
		sealed, err := d.sealed(wait, j)
		if err != nil {
			return err
		}
		if changed, err := d.changed(wait, j); err != nil {
			return err
		} else if changed != "" {
			if err := d.askCancel(r.Context(), id, changed, from); err != nil {
				return err
			}
			return &agentapi.Error{Code: "changed", Status: http.StatusConflict, Message: fmt.Sprintf("take job %s: %s", id, changed), Next: "propose it again"}
		}
		handed := events.JobHandedOver{Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: j.Approvals[0].Policy, Sealed: sealed}
		for _, a := range j.Approvals {
			handed.Approvals = append(handed.Approvals, a.Seq)
		}
		_, err = d.env.Append.Append(r.Context(), events.For("job.handed_over", j.Pool, id, d.env.Actor), j.LastSeq, handed)
		var conflict *bus.Conflict
		if errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("hand over job %s: %w", id, err)
		}
		// Whether it counts is for the fold to say, by the stream's time.
		if j, err = d.own(r.Context(), id, from); err != nil {
			return err
		}
		if j.Status != lifecycle.HandedOver {
			return notTaken(j, "it is "+string(j.Status))
		}
		return d.replyJob(r.Context(), w, http.StatusOK, view.DetailOf(j))
	}
}

func notTaken(j lifecycle.Job, why string) error {
	return &agentapi.Error{Code: "not_taken", Status: http.StatusConflict, Message: fmt.Sprintf("take job %s: %s", j.ID, why), Next: "look at it with 'banksman show " + j.ID + "'"}
}

// mayTake says why a job is not handed over at a moment.
func mayTake(j lifecycle.Job, now time.Time) error {
	switch {
	case !j.ByCaller():
		return notTaken(j, "a worker executes it")
	case j.Status == lifecycle.HandedOver:
		return notTaken(j, "it was handed over before")
	case j.Status.Undecided():
		return notTaken(j, "it is not decided yet")
	case j.Status != lifecycle.Approved:
		return notTaken(j, "it is "+string(j.Status))
	case j.Tainted || j.Unreadable:
		return notTaken(j, "an event of it breaks a rule or cannot be read")
	case !now.Before(j.ApprovalExpires()):
		return notTaken(j, "its approval has expired")
	}
	return nil
}

// sealed waits until the audit log covers the approvals of a job, and returns
// through which event it does.
func (d *door) sealed(ctx context.Context, j lifecycle.Job) (uint64, error) {
	for {
		var audit query.AuditStatus
		err := d.env.Bus.Ask(ctx, query.Audit, struct{}{}, &audit)
		if err == nil && audit.Dispatch == "open" && audit.ThroughSeq >= j.LastApproval() {
			return audit.ThroughSeq, nil
		}
		if !d.wait(ctx, nil, outputTick) {
			return 0, &agentapi.Error{Code: "not_sealed", Status: http.StatusServiceUnavailable, RetryAfterS: 1,
				Message: fmt.Sprintf("take job %s: the audit log does not cover its approval, or dispatch is closed", j.ID), Next: "look at 'banksman audit status' and try again"}
		}
	}
}

// changed says, as a worker of the pool sees it now, what is no longer as it was
// approved.
func (d *door) changed(ctx context.Context, j lifecycle.Job) (string, error) {
	var now query.Previewed
	if err := d.env.Bus.Ask(ctx, query.Preview+"."+j.Pool, query.PreviewRequest{Proposal: *j.Proposal}, &now); err != nil {
		return "", fmt.Errorf("ask a worker of pool %s what would run: %w", j.Pool, err)
	}
	was := j.Resolution
	byPolicy := slices.ContainsFunc(j.Approvals, func(a lifecycle.Approval) bool { return a.Basis == "policy" })
	switch {
	case now.Fault != nil:
		return now.Fault.Reason, nil
	case now.Assessment.Verdict == "deny" || byPolicy && now.Assessment.Verdict != "allow":
		return "the policy in force says " + now.Assessment.Verdict + ": " + now.Assessment.Reason, nil
	case now.Program != was.Program:
		return fmt.Sprintf("the program was approved as %s with sha256 %.16s and is now %s with %.16s", was.Program.Path, was.Program.SHA256, now.Program.Path, now.Program.SHA256), nil
	case now.Cwd != was.Cwd:
		return fmt.Sprintf("the working directory was approved as %s and is now %s", was.Cwd, now.Cwd), nil
	case !slices.Equal(now.Files, was.Files):
		return "a script or another file that it reads as code has changed since it was approved", nil
	}
	return "", nil
}

// report stores what the caller says of a job that it has taken.
func (d *door) report(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
	var p agentapi.Report
	if err := json.UnmarshalRead(r.Body, &p, json.RejectUnknownMembers(true)); err != nil {
		return &agentapi.Error{Code: "bad_request", Status: http.StatusBadRequest, Message: "the report is not in the form of POST /v1/jobs/JOB/report: " + shape(err)}
	}
	id := r.PathValue("id")
	for {
		j, err := d.own(r.Context(), id, from)
		if err != nil {
			return err
		}
		if j.Status != lifecycle.HandedOver || j.Report != nil {
			return &agentapi.Error{Code: "not_taken", Status: http.StatusConflict, Message: fmt.Sprintf("report on job %s: it is not taken, or it was reported before", id), Next: "a job that was taken is reported once"}
		}
		_, err = d.env.Append.Append(r.Context(), events.For("job.reported", j.Pool, id, d.env.Actor), j.LastSeq, events.JobReported{HandedOver: j.HandedOver, ExitCode: p.ExitCode})
		var conflict *bus.Conflict
		if errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("report on job %s: %w", id, err)
		}
		if j, err = d.own(r.Context(), id, from); err != nil {
			return err
		}
		return d.replyJob(r.Context(), w, http.StatusOK, view.DetailOf(j))
	}
}
