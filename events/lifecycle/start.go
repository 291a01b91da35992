package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
)

// mayStart refuses what does not fit an approved job that waits for somebody.
func (s *step) mayStart(who, proposal, resolution string) error {
	if s.j.Tainted || s.j.Unreadable {
		return s.refuse(CodeTainted, "a tainted or unreadable job never starts")
	}
	if err := s.sameProposal(proposal); err != nil {
		return err
	}
	if s.j.Status != Approved && s.j.Status != RetryWait {
		return s.refuse(CodeIllegal, "it does not wait for %s", who)
	}
	if resolution != s.j.ResolutionDigest {
		return s.refuse(CodeOtherResolution, "it names another resolution than the approved one")
	}
	if !s.e.Time.Before(s.j.ApprovalExpires()) {
		return s.late(CodeTooLate, "the approval expired at %s", s.j.ApprovalExpires().UTC().Format(time.RFC3339))
	}
	return nil
}

// sealedApprovals refuses a start that does not use exactly the job's approvals, or
// that comes before the log has sealed them.
func (s *step) sealedApprovals(named []uint64, sealed uint64) error {
	used := make([]uint64, 0, len(s.j.Approvals))
	for _, a := range s.j.Approvals {
		used = append(used, a.Seq)
	}
	if !slices.Equal(used, named) || sealed < s.j.LastApproval() {
		return s.refuse(CodeAttempt, "it uses approvals %v sealed through %d, the job has %v", named, sealed, used)
	}
	return nil
}

func (s *step) started(p *events.JobStarted) error {
	if err := s.mayStart("a worker", p.Proposal, p.Resolution); err != nil {
		return err
	}
	if s.j.ByCaller() {
		return s.refuse(CodeExecutor, "whoever proposed it executes it, and no worker")
	}
	if p.Attempt != len(s.j.Attempts)+1 || p.Attempt > s.j.AttemptsAllowed() {
		return s.refuse(CodeAttempt, "attempt %d of %d, %d were started", p.Attempt, s.j.AttemptsAllowed(), len(s.j.Attempts))
	}
	if err := s.sealedApprovals(p.Approvals, p.Sealed); err != nil {
		return err
	}
	s.j.Attempts = append(s.j.Attempts, Attempt{
		N: p.Attempt, Worker: s.e.Subject.Actor, Session: s.e.ID.Session, StartedSeq: s.e.Seq, StartedAt: s.e.Time, Started: *p,
	})
	return nil
}

// handedOver ends what the caller executes by itself.
func (s *step) handedOver(p *events.JobHandedOver) error {
	if err := s.mayStart("its proposer", p.Proposal, p.Resolution); err != nil {
		return err
	}
	if !s.j.ByCaller() {
		return s.refuse(CodeExecutor, "a worker executes it, and nobody else")
	}
	if err := s.sealedApprovals(p.Approvals, p.Sealed); err != nil {
		return err
	}
	s.j.HandedOver, s.j.Ending = s.e.Seq, "handed over to "+s.j.Proposal.Proposer.String()+", who executes it"
	return nil
}

func (s *step) reported(p *events.JobReported) error {
	if s.j.HandedOver == 0 || p.HandedOver != s.j.HandedOver {
		return s.late(CodeFence, "it names event %d, and the job was handed over with event %d", p.HandedOver, s.j.HandedOver)
	}
	if s.j.Report != nil {
		return s.late(CodeIllegal, "it was reported before")
	}
	s.j.Report, s.j.Ending = p, fmt.Sprintf("%s says that it ended with status %d", s.j.Proposal.Proposer, p.ExitCode)
	return nil
}
