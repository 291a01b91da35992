package lifecycle

import (
	"time"

	"github.com/banksman/banksman/events"
)

// Status is where a job stands.
type Status string

// The statuses of a job. The zero value means that nothing was proposed yet.
const (
	None       Status = ""
	Proposed   Status = "proposed"
	Pending    Status = "pending"
	Approved   Status = "approved"
	Running    Status = "running"
	RetryWait  Status = "retry_wait"
	Succeeded  Status = "succeeded"
	Failed     Status = "failed"
	TimedOut   Status = "timed_out"
	Lost       Status = "lost"
	Denied     Status = "denied"
	Expired    Status = "expired"
	Cancelled  Status = "cancelled"
	Revoked    Status = "revoked"
	DeadLetter Status = "dead_letter"
	HandedOver Status = "handed_over"
)

// Statuses lists every status in the order of a life.
var Statuses = []Status{
	None, Proposed, Pending, Approved, Running, RetryWait, Succeeded, Failed,
	TimedOut, Lost, Denied, Expired, Cancelled, Revoked, DeadLetter, HandedOver,
}

// Final says that no event moves the job any more, but for the one late result
// that a lost job accepts, and the one report on a job that was handed over.
func (s Status) Final() bool {
	switch s {
	case Succeeded, Failed, TimedOut, Lost, Denied, Expired, Cancelled, Revoked, DeadLetter, HandedOver:
		return true
	}
	return false
}

// Undecided says that the job waits for policy or people.
func (s Status) Undecided() bool { return s == Proposed || s == Pending }

// Job is everything that the events of one job say.
type Job struct {
	ID     string
	Pool   string
	Status Status

	Proposal       *events.JobProposed
	ProposalDigest string
	ProposedSeq    uint64
	ProposedAt     time.Time

	Resolution       *events.JobResolved
	ResolutionDigest string
	ResolvedBy       string

	Assessment *events.JobAssessed // the last one
	Unresolved bool                // assessed without a resolution; may be denied, not approved
	Quorum     int                 // distinct persons needed, 0 until assessed
	Approvals  []Approval          // that count, in order
	Denial     *events.JobDenied
	DeniedBy   string
	Declines   []Decline
	Ending     string          // why it ended without a result, for people
	Receipt    *events.Receipt // of an attempt that was cancelled while it ran

	Attempts []Attempt

	HandedOver uint64              // sequence at which the caller was told to execute it
	Report     *events.JobReported // the caller's word on how it went

	Tainted    bool
	TaintCode  string
	TaintSeq   uint64
	Unreadable bool // an event of a version that this reader does not know

	LastSeq   uint64 // last event of the job, refused ones included
	UpdatedAt time.Time
}

// Approval is a yes that counts.
type Approval struct {
	Actor            string
	Basis            string
	Seq              uint64
	At               time.Time
	Expires          time.Time
	MaxAttempts      int
	Ruling           events.Ruling
	Policy           string
	UnsafeSharedUser bool
	Grant            string // id, for basis "grant"
	GrantUsed        uint64 // sequence of the use
	Confirmed        bool   // the person named the digest of what would run
}

// Decline is a worker that cannot run the job.
type Decline struct {
	Actor   string
	Session string
	Code    string
	Reason  string
	At      time.Time
}

// Attempt is one start and what became of it.
type Attempt struct {
	N          int
	Worker     string
	Session    string
	StartedSeq uint64
	StartedAt  time.Time
	Started    events.JobStarted
	EndedAt    time.Time
	EndedSeq   uint64
	Result     *events.JobFinished
	Lapsed     bool
	Late       bool // the result came after the claim had lapsed
}

// Current is the last attempt, nil when there was none.
func (j *Job) Current() *Attempt {
	if len(j.Attempts) == 0 {
		return nil
	}
	return &j.Attempts[len(j.Attempts)-1]
}

// RequestExpires is when an undecided request ends.
func (j *Job) RequestExpires() time.Time {
	if j.Proposal == nil {
		return time.Time{}
	}
	return j.ProposedAt.Add(time.Duration(j.Proposal.ExpiresS) * time.Second)
}

// ApprovalExpires is when the earliest of the approvals that count ends; zero
// when there is none.
func (j *Job) ApprovalExpires() time.Time {
	var t time.Time
	for _, a := range j.Approvals {
		if t.IsZero() || a.Expires.Before(t) {
			t = a.Expires
		}
	}
	return t
}

// Assessed says whether the gate has judged what would run; until then the
// quorum is not known and no person's approval counts.
func (j *Job) Assessed() bool {
	return j.Resolution != nil && j.Assessment != nil && j.Assessment.Resolution == j.ResolutionDigest
}

// LastApproval is the sequence that the audit log must cover before a start.
func (j *Job) LastApproval() uint64 {
	if len(j.Approvals) == 0 {
		return 0
	}
	return j.Approvals[len(j.Approvals)-1].Seq
}

// AttemptsAllowed is how many starts proposal and approvals agree on.
func (j *Job) AttemptsAllowed() int {
	if j.Proposal == nil {
		return 0
	}
	n := j.Proposal.MaxAttempts
	for _, a := range j.Approvals {
		n = min(n, a.MaxAttempts)
	}
	return n
}

// RetryAt is when the next attempt of a job in retry_wait is due.
func (j *Job) RetryAt() time.Time {
	c := j.Current()
	if j.Status != RetryWait || c == nil {
		return time.Time{}
	}
	if c.Result == nil {
		return c.EndedAt
	}
	return time.UnixMilli(c.Result.RetryAtMS)
}

// ByCaller says that no worker ever starts the job.
func (j *Job) ByCaller() bool { return j.Proposal != nil && j.Proposal.Executor != "" }

// Ready says whether a worker may start the job at a moment of stream time,
// apart from the seal, the policy and what it resolves.
func (j *Job) Ready(at time.Time) bool {
	if j.ByCaller() || j.Tainted || j.Unreadable || j.Resolution == nil || !at.Before(j.ApprovalExpires()) {
		return false
	}
	return j.Status == Approved || j.Status == RetryWait && !at.Before(j.RetryAt())
}
