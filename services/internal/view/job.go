package view

import (
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
)

// Job is a job as a list shows it.
type Job struct {
	Job        string            `json:"job"`
	Status     lifecycle.Status  `json:"status"`
	Argv       []string          `json:"argv"`
	Cwd        string            `json:"cwd"`
	Pool       string            `json:"pool"`
	Proposer   string            `json:"proposer"`
	Executor   string            `json:"executor,omitempty"` // caller: who proposed it executes it
	Created    time.Time         `json:"created"`
	Updated    time.Time         `json:"updated"`
	Reason     string            `json:"reason,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Expires    time.Time         `json:"expires,omitzero"`            // of an undecided request
	Unresolved bool              `json:"unresolved,omitzero"`         // no worker has looked it up; may be denied, not approved
	Unsafe     bool              `json:"unsafe_shared_user,omitzero"` // it would share the worker's user
	Tainted    string            `json:"tainted,omitempty"`           // code of what taints it
	Unreadable bool              `json:"unreadable,omitzero"`
	Ruling     *events.Ruling    `json:"ruling,omitempty"` // the rule that spoke, or a person's words
	Quorum     int               `json:"quorum,omitzero"`
	Approved   int               `json:"approved,omitzero"` // how many approvals count so far
	Worker     string            `json:"worker,omitempty"`
	Ending     string            `json:"ending,omitempty"`
	ExitCode   *int              `json:"exit_code,omitempty"`
	Declines   []Decline         `json:"declines,omitempty"`
	RetryAt    time.Time         `json:"retry_at,omitzero"` // when its next attempt is due, by the stream's clock
	Waiting    string            `json:"waiting,omitempty"` // what it waits for, such as "seal since T"
	LastSeq    uint64            `json:"last_seq"`
	Existing   bool              `json:"existing,omitzero"` // a repeated proposal found this job
}

// Decline is a worker that could not run it.
type Decline struct {
	Worker string `json:"worker"`
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

// Detail is a job as show prints it.
type Detail struct {
	Job
	Env            map[string]string   `json:"env,omitempty"`
	TimeoutS       int                 `json:"timeout_s"`
	MaxAttempts    int                 `json:"max_attempts"`
	ProposalDigest string              `json:"proposal_digest"`
	Resolution     *Resolution         `json:"resolution"`
	Approvals      []Approval          `json:"approvals"`
	Attempts       []Attempt           `json:"attempts"`
	Result         *Result             `json:"result"`
	Assessment     *events.JobAssessed `json:"assessment,omitempty"`
	DeniedBy       string              `json:"denied_by,omitempty"`
	RetrySafe      bool                `json:"retry_safe,omitzero"`
	Follows        events.Follows      `json:"follows,omitzero"`
	Waived         uint64              `json:"waived,omitzero"`   // event by which a person let it pass as no secret
	Receipt        *events.Receipt     `json:"receipt,omitempty"` // of an attempt that was cancelled while it ran
	HandedOver     uint64              `json:"handed_over,omitzero"`
	Report         *events.JobReported `json:"report,omitempty"` // the caller's own word
}

// Resolution is what would run.
type Resolution struct {
	Digest  string              `json:"digest"`
	Worker  string              `json:"worker"`
	Program events.FileDigest   `json:"program"`
	Files   []events.FileDigest `json:"files,omitempty"`
	Cwd     string              `json:"cwd"`
}

// Approval is a yes that counts.
type Approval struct {
	Actor            string    `json:"actor"`
	Basis            string    `json:"basis"`
	Seq              uint64    `json:"seq"`
	At               time.Time `json:"at"`
	Expires          time.Time `json:"expires"`
	Rule             string    `json:"rule,omitempty"`
	Grant            string    `json:"grant,omitempty"`
	UnsafeSharedUser bool      `json:"unsafe_shared_user,omitzero"`
}

// Attempt is one start.
type Attempt struct {
	Attempt int       `json:"attempt"`
	Worker  string    `json:"worker"`
	Seq     uint64    `json:"seq"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Bound   string    `json:"bound"`
	Walls   []string  `json:"walls,omitempty"`
	Lapsed  bool      `json:"lapsed,omitzero"`
	Late    bool      `json:"late,omitzero"`
	Outcome string    `json:"outcome,omitempty"`
	Chunks  int       `json:"chunks,omitzero"` // of output that were stored, once it has ended
}

// Result is how the last attempt ended. Stdout and Stderr are filled by who
// has read the output.
type Result struct {
	ExitCode    int           `json:"exit_code"`
	Signal      string        `json:"signal"`
	Error       string        `json:"error,omitempty"`
	Outcome     string        `json:"outcome"`
	DurationS   float64       `json:"duration_s"`
	UserS       float64       `json:"user_s"`
	SystemS     float64       `json:"system_s"`
	MaxRSSBytes int64         `json:"max_rss_bytes"`
	Stdout      string        `json:"stdout"`
	Stderr      string        `json:"stderr"`
	NotKept     int           `json:"not_kept,omitzero"` // chunks that were stored and are no longer there
	StdoutInfo  events.Output `json:"stdout_info"`
	StderrInfo  events.Output `json:"stderr_info"`
	Means       []string      `json:"means,omitempty"`
	LeftBehind  int           `json:"left_behind,omitzero"`
	Killed      int           `json:"killed,omitzero"`
	Survivors   int           `json:"survivors,omitzero"`
	SurvivorPID []int         `json:"survivor_pids,omitempty"`
	Late        bool          `json:"late,omitzero"`
}

// List is what ls and inbox print.
type List struct {
	Jobs []Job `json:"jobs"`
	More bool  `json:"more,omitzero"` // the list was cut at the limit
}

// Of makes the row of a job.
func Of(j lifecycle.Job) Job {
	v := Job{
		Job: j.ID, Status: j.Status, Pool: j.Pool, Created: j.ProposedAt.UTC(), Updated: j.UpdatedAt.UTC(),
		Unresolved: j.Unresolved, Unreadable: j.Unreadable, Quorum: j.Quorum, Approved: len(j.Approvals),
		Ending: j.Ending, LastSeq: j.LastSeq,
	}
	if p := j.Proposal; p != nil {
		v.Argv, v.Cwd, v.Proposer, v.Executor, v.Reason, v.Labels = p.Argv, p.Cwd, p.Proposer.String(), p.Executor, p.Reason, p.Labels
	}
	if j.Tainted {
		v.Tainted = j.TaintCode
	}
	v.Unsafe = j.Resolution != nil && j.Resolution.UnsafeSharedUser
	if j.Status == lifecycle.RetryWait {
		v.RetryAt = j.RetryAt().UTC()
	}
	if j.Status.Undecided() {
		v.Expires = j.RequestExpires().UTC()
	}
	switch {
	case j.Denial != nil:
		v.Ruling = &j.Denial.Ruling
	case len(j.Approvals) > 0 && j.Approvals[0].Basis != "person":
		v.Ruling = &j.Approvals[0].Ruling
	case j.Assessment != nil:
		v.Ruling = &j.Assessment.Ruling
	}
	for _, d := range j.Declines {
		v.Declines = append(v.Declines, Decline{Worker: d.Actor, Code: d.Code, Reason: d.Reason})
	}
	if a := j.Current(); a != nil {
		v.Worker = a.Worker
		if a.Result != nil {
			v.ExitCode = &a.Result.ExitCode
		}
	}
	return v
}

// DetailOf makes the whole object of a job, without the output's text.
func DetailOf(j lifecycle.Job) Detail {
	d := Detail{Job: Of(j), ProposalDigest: j.ProposalDigest, Approvals: []Approval{}, Attempts: []Attempt{}, Assessment: j.Assessment, DeniedBy: j.DeniedBy, Receipt: j.Receipt, HandedOver: j.HandedOver, Report: j.Report}
	if p := j.Proposal; p != nil {
		d.Env, d.TimeoutS, d.MaxAttempts, d.RetrySafe, d.Follows, d.Waived = p.Env, p.TimeoutS, p.MaxAttempts, p.RetrySafe, p.Follows, p.Waived
	}
	if r := j.Resolution; r != nil {
		d.Resolution = &Resolution{Digest: j.ResolutionDigest, Worker: j.ResolvedBy, Program: r.Program, Files: r.Files, Cwd: r.Cwd}
	}
	for _, a := range j.Approvals {
		d.Approvals = append(d.Approvals, Approval{
			Actor: a.Actor, Basis: a.Basis, Seq: a.Seq, At: a.At.UTC(), Expires: a.Expires.UTC(), Rule: a.Ruling.Rule, Grant: a.Grant, UnsafeSharedUser: a.UnsafeSharedUser,
		})
	}
	for _, a := range j.Attempts {
		v := Attempt{Attempt: a.N, Worker: a.Worker, Seq: a.StartedSeq, Started: a.StartedAt.UTC(), Ended: a.EndedAt.UTC(), Bound: a.Started.Bound, Walls: a.Started.Walls, Lapsed: a.Lapsed, Late: a.Late}
		if a.EndedAt.IsZero() {
			v.Ended = time.Time{}
		}
		if a.Result != nil {
			v.Outcome, v.Chunks = a.Result.Outcome, a.Result.Stdout.Chunks+a.Result.Stderr.Chunks
		}
		d.Attempts = append(d.Attempts, v)
	}
	if a := j.Current(); a != nil && a.Result != nil {
		d.Result = resultOf(a)
	} else if a != nil && j.Receipt != nil {
		d.Attempts[len(d.Attempts)-1].Chunks = j.Receipt.Stdout.Chunks + j.Receipt.Stderr.Chunks
	}
	return d
}

func resultOf(a *lifecycle.Attempt) *Result {
	r := a.Result
	return &Result{
		ExitCode: r.ExitCode, Signal: r.Signal, Error: r.Error, Outcome: r.Outcome,
		DurationS: seconds(r.DurationMS), UserS: seconds(r.UserMS), SystemS: seconds(r.SystemMS), MaxRSSBytes: r.MaxRSSBytes,
		StdoutInfo: r.Stdout, StderrInfo: r.Stderr, Means: r.Means,
		LeftBehind: r.LeftBehind, Killed: r.Killed, Survivors: r.Survivors, SurvivorPID: r.SurvivorPIDs, Late: a.Late,
	}
}

// Words are the places in which people's words stand, which may be references to kept
// texts.
func (v *Job) Words() []*string {
	places := []*string{&v.Reason, &v.Ending}
	if v.Ruling != nil {
		own := *v.Ruling // it belongs to an event
		v.Ruling = &own
		places = append(places, &v.Ruling.Reason)
	}
	return places
}

// Words are the places of every job of the list.
func (l *List) Words() []*string {
	var places []*string
	for i := range l.Jobs {
		places = append(places, l.Jobs[i].Words()...)
	}
	return places
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }
