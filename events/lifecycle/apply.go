package lifecycle

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
)

// Refusal is why an event changes nothing.
type Refusal struct {
	Code   string // stable, see the constants
	From   Status
	Kind   events.Kind
	Why    string
	Taints bool // no honest writer does this by being slow
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%s in status %q refused (%s): %s", r.Kind, r.From, r.Code, r.Why)
}

// Codes of refusals.
const (
	CodeIllegal         = "illegal_transition"
	CodeOtherJob        = "other_job"
	CodeOtherPool       = "other_pool"
	CodeOrder           = "wrong_order"
	CodePosition        = "wrong_position"
	CodeOtherProposal   = "other_proposal"
	CodeOtherResolution = "other_resolution"
	CodeUnresolved      = "unresolved"
	CodeSelfApproval    = "self_approval"
	CodeTwice           = "approved_twice"
	CodeNotPersons      = "needs_persons"
	CodeNotApprover     = "not_an_approver"
	CodeNotConfirmed    = "not_confirmed"
	CodeTooLate         = "too_late"
	CodeAttempt         = "attempt_not_covered"
	CodeFence           = "fenced"
	CodeNotClaimant     = "not_the_claimant"
	CodeTainted         = "tainted"
	CodeExecutor        = "other_executor"
	CodePayload         = "payload"
)

// step is the working copy that one event is applied to.
type step struct {
	j    Job
	e    events.Event
	when string
}

// refuse makes a refusal that taints the job.
func (s *step) refuse(code, format string, args ...any) error {
	return &Refusal{Code: code, From: s.j.Status, Kind: s.e.Kind, Why: fmt.Sprintf(format, args...), Taints: true}
}

// late makes a refusal that an honest, slow writer can run into.
func (s *step) late(code, format string, args ...any) error {
	r := s.refuse(code, format, args...).(*Refusal)
	r.Taints = false
	return r
}

// Apply returns the job after the event. On a *Refusal the job returned has
// its position moved and, where the refusal taints, the mark set; its status
// is unchanged.
func Apply(j Job, e events.Event) (Job, error) {
	if e.Kind.Family() != "job" || j.Status != None && e.Subject.ID != j.ID {
		return j, &Refusal{Code: CodeOtherJob, From: j.Status, Kind: e.Kind, Why: "the event is not about job " + j.ID}
	}
	if e.Seq <= j.LastSeq {
		return j, &Refusal{Code: CodeOrder, From: j.Status, Kind: e.Kind, Why: fmt.Sprintf("sequence %d was applied already", e.Seq)}
	}
	s := &step{j: j, e: e}
	s.j.Attempts = slices.Clone(j.Attempts)
	s.j.Approvals = slices.Clone(j.Approvals)
	s.j.Declines = slices.Clone(j.Declines)
	err := s.apply()
	if err == nil {
		to, ok := next(j.Status, e.Kind, s.when)
		if ok {
			s.j.Status = to
			s.j.LastSeq, s.j.UpdatedAt = e.Seq, e.Time
			return s.j, nil
		}
		err = s.refuse(CodeIllegal, "no such move%s", suffix(s.when))
	}
	after := j
	after.LastSeq, after.UpdatedAt = e.Seq, e.Time
	if r, ok := err.(*Refusal); ok {
		r.From = j.Status
		// What a reader cannot read may be what makes this event right.
		r.Taints = r.Taints && !j.Unreadable
		if r.Taints {
			after = Taint(after, e.Seq, r.Code)
		}
	}
	return after, err
}

func suffix(when string) string {
	if when == "" {
		return ""
	}
	return " (" + when + ")"
}

// Taint marks a job that a forged or rule-breaking event was stored for. The
// first mark stays.
func Taint(j Job, seq uint64, code string) Job {
	if !j.Tainted {
		j.Tainted, j.TaintCode, j.TaintSeq = true, code, seq
	}
	j.LastSeq = max(j.LastSeq, seq)
	return j
}

// apply checks what the table cannot say and fills the working copy.
func (s *step) apply() error {
	if err := s.addressed(); err != nil {
		return err
	}
	switch p := s.e.Payload.(type) {
	case *events.JobProposed:
		return s.proposed(p)
	case *events.JobResolved:
		return s.resolved(p)
	case *events.JobAssessed:
		return s.assessed(p)
	case *events.JobApproved:
		return s.approved(p)
	case *events.JobDenied:
		return s.denied(p)
	case *events.JobDeclined:
		s.j.Declines = append(s.j.Declines, Decline{Actor: s.e.Subject.Actor, Session: s.e.ID.Session, Code: p.Code, Reason: p.Reason, At: s.e.Time})
		return nil
	case *events.JobStarted:
		return s.started(p)
	case *events.JobHandedOver:
		return s.handedOver(p)
	case *events.JobReported:
		return s.reported(p)
	case *events.JobFinished:
		return s.finished(p)
	case *events.JobLapsed:
		return s.lapsed(p)
	case *events.JobCancelled:
		return s.cancelled(p)
	case *events.JobRevoked:
		return s.revoked(p)
	case *events.JobExpired:
		return s.expired(p)
	case *events.JobDeadLettered:
		if s.e.Subject.Actor != s.j.ResolvedBy {
			return s.refuse(CodeNotClaimant, "only %s, which resolved it, may say that it has changed", s.j.ResolvedBy)
		}
		s.j.Ending = p.Reason
		return nil
	}
	return s.refuse(CodePayload, "payload %T does not belong to the kind", s.e.Payload)
}

// addressed refuses what is not an event for this job at this position. A
// writer that has signed another position did not see what was stored since:
// it was slow, or somebody stored its event a second time or elsewhere.
func (s *step) addressed() error {
	d, known := events.Find(s.e.Kind, max(1, s.e.Version))
	if !known || reflect.TypeOf(s.e.Payload) != reflect.PointerTo(d.Type) {
		return s.refuse(CodePayload, "payload %T does not belong to the kind", s.e.Payload)
	}
	if s.j.Status == None {
		return nil
	}
	if s.e.Subject.Scope != s.j.Pool {
		return s.refuse(CodeOtherPool, "it speaks for pool %q, the job belongs to %q", s.e.Subject.Scope, s.j.Pool)
	}
	if s.e.Expect != s.j.LastSeq {
		return s.late(CodePosition, "it was signed to follow event %d, the job's last is %d", s.e.Expect, s.j.LastSeq)
	}
	return nil
}

func (s *step) proposed(p *events.JobProposed) error {
	if s.j.Status != None {
		return s.refuse(CodeIllegal, "the job was proposed before")
	}
	s.j.ID, s.j.Pool = s.e.Subject.ID, s.e.Subject.Scope
	s.j.Proposal, s.j.ProposalDigest, s.j.ProposedSeq, s.j.ProposedAt = p, s.e.Digest, s.e.Seq, s.e.Time
	if p.Executor != "" && p.Executor != events.ExecutorCaller {
		return s.refuse(CodePayload, "executor %q is not known", p.Executor)
	}
	if p.Pool != s.j.Pool || len(p.Argv) == 0 || p.MaxAttempts < 1 || p.TimeoutS < 1 || p.ExpiresS < 1 {
		return s.refuse(CodePayload, "pool, argv, max_attempts, timeout_s or expires_s is not acceptable")
	}
	return nil
}

// sameProposal refuses what names another proposal than the job's.
func (s *step) sameProposal(digest string) error {
	if s.j.Proposal == nil || digest != s.j.ProposalDigest {
		return s.refuse(CodeOtherProposal, "it names proposal %.12s, the job's is %.12s", digest, s.j.ProposalDigest)
	}
	return nil
}

func (s *step) resolved(p *events.JobResolved) error {
	if err := s.sameProposal(p.Proposal); err != nil {
		return err
	}
	if s.j.Resolution != nil {
		return s.late(CodeIllegal, "the job has a resolution already")
	}
	if s.j.Status == Pending {
		s.when = caseLate
	}
	s.j.Resolution, s.j.ResolutionDigest, s.j.ResolvedBy = p, s.e.Digest, s.e.Subject.Actor
	s.j.Unresolved = false
	return nil
}

func (s *step) assessed(p *events.JobAssessed) error {
	if err := s.sameProposal(p.Proposal); err != nil {
		return err
	}
	if p.Resolution != s.j.ResolutionDigest {
		return s.late(CodeOtherResolution, "it names another resolution")
	}
	s.j.Assessment, s.j.Quorum, s.j.Unresolved = p, max(1, p.Quorum), p.Resolution == ""
	return nil
}

func (s *step) approved(p *events.JobApproved) error {
	if err := s.sameProposal(p.Proposal); err != nil {
		return err
	}
	if s.j.Resolution == nil {
		return s.refuse(CodeUnresolved, "no worker has resolved the job")
	}
	if p.Resolution != s.j.ResolutionDigest {
		return s.refuse(CodeOtherResolution, "it names resolution %.12s, the job's is %.12s", p.Resolution, s.j.ResolutionDigest)
	}
	actor := s.e.Subject.Actor
	if s.j.Proposal.Proposer == (events.Proposer{Kind: "person", ID: actor}) {
		return s.refuse(CodeSelfApproval, "%s proposed the job", actor)
	}
	if slices.ContainsFunc(s.j.Approvals, func(a Approval) bool { return a.Actor == actor }) {
		return s.refuse(CodeTwice, "%s approved it before", actor)
	}
	if !s.e.Time.Before(s.j.RequestExpires()) {
		return s.late(CodeTooLate, "the request expired at %s", s.j.RequestExpires().UTC().Format(time.RFC3339))
	}
	if p.ValidS < 1 || p.MaxAttempts < 1 || p.Basis != "policy" && p.Basis != "person" && p.Basis != "grant" {
		return s.refuse(CodePayload, "valid_s, max_attempts or basis %q is not acceptable", p.Basis)
	}
	if named := p.Grant != "" && p.GrantUsed > 0; named != (p.Basis == "grant") {
		return s.refuse(CodePayload, "basis %q with grant %q used by event %d is not acceptable", p.Basis, p.Grant, p.GrantUsed)
	}
	s.j.Approvals = append(s.j.Approvals, Approval{
		Actor: actor, Basis: p.Basis, Seq: s.e.Seq, At: s.e.Time, Ruling: p.Ruling, Policy: p.Policy,
		Expires: s.e.Time.Add(time.Duration(p.ValidS) * time.Second), MaxAttempts: p.MaxAttempts, UnsafeSharedUser: p.UnsafeSharedUser,
		Grant: p.Grant, GrantUsed: p.GrantUsed, Confirmed: events.NamesDigest(s.j.ResolutionDigest, p.Confirmed),
	})
	return s.enough(p.Basis)
}

// enough decides whether the approvals so far suffice.
func (s *step) enough(basis string) error {
	if basis == "policy" {
		if s.j.Quorum > 0 && s.j.Assessment.Resolution != "" {
			return s.refuse(CodeNotPersons, "policy asks for %d person(s)", s.j.Quorum)
		}
		s.when = caseEnough
		return nil
	}
	if basis == "grant" {
		if s.j.Quorum > 1 {
			return s.refuse(CodeNotPersons, "policy asks for %d persons, and a grant is the word of one", s.j.Quorum)
		}
		s.when = caseEnough
		return nil
	}
	if s.j.Status != Pending {
		return s.late(CodeIllegal, "it does not wait for persons")
	}
	if !s.j.Assessed() {
		return s.late(CodeUnresolved, "the gate has not assessed it since a worker resolved it")
	}
	if named := s.j.Assessment.Approvers; len(named) > 0 && !slices.Contains(named, s.e.Subject.Actor) {
		return s.late(CodeNotApprover, "policy lets only %s approve it", strings.Join(named, ", "))
	}
	if !s.j.Approvals[len(s.j.Approvals)-1].Confirmed && s.j.Assessment.Confirm != "" {
		return s.late(CodeNotConfirmed, "policy wants the digest of what would run in the approval, and it names another one or none")
	}
	s.when = caseMore
	if len(s.j.Approvals) >= s.j.Quorum {
		s.when = caseEnough
	}
	return nil
}

func (s *step) denied(p *events.JobDenied) error {
	if err := s.sameProposal(p.Proposal); err != nil {
		return err
	}
	if s.j.Status.Final() || s.j.Status == Approved {
		return s.late(CodeIllegal, "it was decided before")
	}
	s.j.Denial, s.j.DeniedBy, s.j.Ending = p, s.e.Subject.Actor, p.Ruling.Reason
	return nil
}

// held returns the attempt that an event of its holder is about.
func (s *step) held(started uint64) (*Attempt, error) {
	a := s.j.Current()
	if a == nil || a.StartedSeq != started {
		return nil, s.late(CodeFence, "it names start %d, which is not the job's last", started)
	}
	if a.Worker != s.e.Subject.Actor {
		return nil, s.refuse(CodeNotClaimant, "attempt %d belongs to %s", a.N, a.Worker)
	}
	return a, nil
}

func (s *step) finished(p *events.JobFinished) error {
	a, err := s.held(p.Started)
	if err != nil {
		return err
	}
	switch {
	case s.j.Status == Lost && a.Result == nil:
		s.when = caseLateDone
		a.Late = true
	case s.j.Status != Running:
		return s.late(CodeFence, "the attempt has ended")
	case p.Outcome == "succeeded":
		s.when = caseSucceeded
	case p.Outcome == "timed_out":
		s.when = caseTimedOut
	default:
		s.when = caseFailed
	}
	if s.when != caseSucceeded && s.when != caseLateDone && p.RetryAtMS > 0 && a.N < s.j.AttemptsAllowed() {
		s.when = caseRetry
	}
	a.Result, a.EndedAt, a.EndedSeq = p, s.e.Time, s.e.Seq
	return nil
}

func (s *step) lapsed(p *events.JobLapsed) error {
	a := s.j.Current()
	if s.j.Status != Running || a == nil || a.StartedSeq != p.Started {
		return s.late(CodeFence, "start %d is not running", p.Started)
	}
	if p.Why == "restart" && a.Worker != s.e.Subject.Actor {
		return s.refuse(CodeNotClaimant, "attempt %d belongs to %s", a.N, a.Worker)
	}
	a.Lapsed, a.EndedAt, a.EndedSeq = true, s.e.Time, s.e.Seq
	if s.j.Proposal.RetrySafe && a.N < s.j.AttemptsAllowed() {
		s.when = caseRetry
		return nil
	}
	s.j.Ending = "the worker fell silent while it ran; whether the command completed is not known"
	return nil
}

func (s *step) cancelled(p *events.JobCancelled) error {
	if s.j.Status == Running {
		a, err := s.held(p.Started)
		if err != nil {
			return err
		}
		a.EndedAt, a.EndedSeq = s.e.Time, s.e.Seq
	} else if p.Started != 0 {
		return s.late(CodeFence, "start %d is not running", p.Started)
	}
	if s.j.Status.Final() {
		return s.late(CodeIllegal, "it has ended")
	}
	s.j.Ending = "cancelled by " + p.By + ": " + p.Reason
	if s.j.Status == Running {
		s.j.Receipt = &p.Receipt
	}
	return nil
}

// revoked ends what was approved and does not run. Where it runs, only its
// worker can end it, and that is a cancellation.
func (s *step) revoked(p *events.JobRevoked) error {
	if err := s.sameProposal(p.Proposal); err != nil {
		return err
	}
	if s.j.Status != Approved && s.j.Status != RetryWait {
		return s.late(CodeIllegal, "it is not waiting for a start")
	}
	s.j.Ending = "revoked by " + p.By + ": " + p.Reason
	return nil
}

func (s *step) expired(p *events.JobExpired) error {
	if err := s.sameProposal(p.Proposal); err != nil {
		return err
	}
	due, what := s.j.RequestExpires(), "nobody decided in time"
	if !s.j.Status.Undecided() {
		due, what = s.j.ApprovalExpires(), "the approval was not used in time"
	}
	if s.e.Time.Before(due) { // the clock of the writer may be ahead of the stream's
		return s.late(CodeIllegal, "it expires at %s", due.UTC().Format(time.RFC3339))
	}
	if s.j.Status.Final() || s.j.Status == Running {
		return s.late(CodeIllegal, "it is past expiring")
	}
	s.j.Ending = what
	return nil
}

// Fold applies stored events of one job in order and reports every refusal.
func Fold(list []events.Event) (Job, []error) {
	var j Job
	var refused []error
	for _, e := range list {
		var err error
		if j, err = Apply(j, e); err != nil {
			refused = append(refused, err)
		}
	}
	return j, refused
}
