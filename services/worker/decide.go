package worker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/proc"
)

// Codes of dead letters and of the declines that take their place on a worker
// which did not resolve the job.
const (
	codePolicyChanged    = "policy_changed"
	codeProgramChanged   = "program_changed"
	codeFileChanged      = "file_changed"
	codeCwdChanged       = "cwd_changed"
	codeIsolationChanged = "isolation_changed"
	codeEnvironChanged   = "environment_changed"
)

// identity is whose hands would run the job.
type identity struct {
	actor   string
	session string
	pool    string
}

// change is why what was approved may no longer run, or cannot run here.
type change struct {
	code   string
	reason string
}

// mayResolve says whether a job waits for this worker to look it up; otherwise
// why not.
func mayResolve(j lifecycle.Job, me identity) (why string) {
	switch {
	case j.Tainted || j.Unreadable:
		return "it is tainted or unreadable"
	case j.Pool != me.pool:
		return "it belongs to pool " + j.Pool
	case !j.Status.Undecided():
		return "it is " + string(j.Status)
	case j.Resolution != nil:
		return "it is resolved"
	case declined(j, me):
		return "this worker has declined it"
	}
	return ""
}

// mayStart says whether a job waits for a start at a moment of this worker's
// clock; otherwise why not. The fold judges the start again by stream time.
func mayStart(j lifecycle.Job, me identity, at time.Time) (why string) {
	switch {
	case j.Pool != me.pool:
		return "it belongs to pool " + j.Pool
	case declined(j, me):
		return "this worker has declined it"
	case j.Tainted:
		return "it is tainted: " + j.TaintCode
	case len(j.Attempts) >= j.AttemptsAllowed():
		return "every approved attempt was started"
	case !j.Ready(at):
		return "it is not ready, its status is " + string(j.Status)
	}
	return ""
}

// declined says whether this session has spoken already; saying it again at
// every redelivery would fill the log.
func declined(j lifecycle.Job, me identity) bool {
	return slices.ContainsFunc(j.Declines, func(d lifecycle.Decline) bool {
		return d.Actor == me.actor && d.Session == me.session
	})
}

// request is the job as policy looks at it at a moment; cwd and program are empty
// before resolution.
func request(j lifecycle.Job, cwd, program string, at time.Time) policy.Request {
	p := j.Proposal
	q := policy.Request{
		Argv: p.Argv, Cwd: p.Cwd, RealCwd: cwd, ResolvedPath: program, Pool: j.Pool,
		Proposer: p.Proposer.String(), Env: p.Env, At: at, Timeout_s: p.TimeoutS, MaxAttempts: p.MaxAttempts,
	}
	for name := range p.Env {
		q.EnvNames = append(q.EnvNames, name)
	}
	slices.Sort(q.EnvNames)
	return q
}

// permitted says whether the policy in force still lets the approvals count:
// the gate's own only where policy allows, a person's where it allows or asks.
func permitted(j lifecycle.Job, d policy.Decision) *change {
	least := policy.Ask
	if slices.ContainsFunc(j.Approvals, func(a lifecycle.Approval) bool { return a.Basis == "policy" }) {
		least = policy.Allow
	}
	if d.Verdict < least {
		return &change{codePolicyChanged, fmt.Sprintf("it was approved, but the policy in force says %s: %s", d.Verdict, d.Reason)}
	}
	if d.Verdict == policy.Allow {
		return nil
	}
	voices := 0
	for _, a := range j.Approvals {
		named := a.Basis == "grant" || len(d.Approvers) == 0 || slices.Contains(d.Approvers, a.Actor)
		if named && (a.Confirmed || !d.Confirm) {
			voices++
		}
	}
	if voices < d.Quorum {
		how := ""
		if d.Confirm {
			how = ", each with the digest of what would run"
		}
		return &change{codePolicyChanged, fmt.Sprintf("%d of its approvals count, and the policy in force asks for %d%s", voices, d.Quorum, how)}
	}
	return nil
}

// differs compares what was approved with what would run now.
func differs(approved, now *events.JobResolved) *change {
	switch {
	case now.Program != approved.Program:
		return &change{codeProgramChanged, "the program was approved as " + about(approved.Program) + " and is now " + about(now.Program)}
	case now.Cwd != approved.Cwd:
		return &change{codeCwdChanged, fmt.Sprintf("the working directory was approved as %s and is now %s", approved.Cwd, now.Cwd)}
	case now.UnsafeSharedUser && !approved.UnsafeSharedUser:
		return &change{codeIsolationChanged, "it was approved for a worker that keeps jobs from banksman's files, and this one does not"}
	}
	if fault := surroundings(approved, now); fault != nil {
		return fault
	}
	for _, was := range approved.Files {
		if slices.Contains(now.Files, was) {
			continue
		}
		i := slices.IndexFunc(now.Files, func(f events.FileDigest) bool { return f.Arg == was.Arg })
		if i < 0 {
			return &change{codeFileChanged, origin(was) + " was approved as " + about(was) + " and is no file now"}
		}
		return &change{codeFileChanged, origin(was) + " was approved as " + about(was) + " and is now " + about(now.Files[i])}
	}
	for _, is := range now.Files {
		if slices.Contains(approved.Files, is) {
			continue
		}
		if now.Policy != approved.Policy {
			return &change{codePolicyChanged, "the policy in force counts " + origin(is) + " as code, and the approval does not name it: " + about(is)}
		}
		return &change{codeFileChanged, origin(is) + " was no file when it was approved and is now " + about(is)}
	}
	return nil
}

// surroundings compares what a job gets from the worker itself. A resolution that
// says nothing about it was made by a worker that did not know how.
func surroundings(approved, now *events.JobResolved) *change {
	for _, c := range []struct {
		what     string
		was, are []string
	}{
		{"the variables that a job gets from the worker", approved.EnvPass, now.EnvPass},
		{"the folders in which programs are looked up", approved.SearchPath, now.SearchPath},
	} {
		if c.was != nil && !slices.Equal(c.was, c.are) {
			return &change{codeEnvironChanged, fmt.Sprintf("%s were approved as %s and are now %s", c.what, listed(c.was), listed(c.are))}
		}
	}
	return nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func about(f events.FileDigest) string {
	return fmt.Sprintf("%s (%d bytes, sha256 %.16s)", f.Path, f.SizeBytes, f.SHA256)
}

func origin(f events.FileDigest) string {
	switch {
	case f.Arg < 0:
		return "the interpreter"
	case f.Arg == 0:
		return "the program"
	}
	return fmt.Sprintf("argument %d", f.Arg)
}

// refuse makes the event that says so. Only the actor that resolved the job
// can know that it has changed; another one knows that it cannot run it here.
func refuse(j lifecycle.Job, me identity, c change) any {
	if me.actor == j.ResolvedBy && strings.HasSuffix(c.code, "_changed") {
		return &events.JobDeadLettered{Code: c.code, Reason: c.reason}
	}
	return &events.JobDeclined{Code: c.code, Reason: c.reason}
}

// gone turns a failed look-up into a change: what was approved was there, so a
// resolver that no longer finds it has seen it change.
func gone(c change) change {
	switch c.code {
	case proc.CodeNoDir, proc.CodeDirChanged:
		return change{codeCwdChanged, c.reason}
	case proc.CodeNoProgram, proc.CodeNotExecutable:
		return change{codeProgramChanged, c.reason}
	case proc.CodeNoInterpreter:
		return change{codeFileChanged, c.reason}
	}
	return c
}

// bound says how the program will be tied to its digest.
func bound(r *events.JobResolved) string {
	if slices.ContainsFunc(r.Files, func(f events.FileDigest) bool { return f.Arg < 0 }) {
		return proc.BoundChecked
	}
	return proc.BoundFD
}

// claim makes the start of the job's next attempt.
func claim(j lifecycle.Job, policyDigest string, sealed uint64, lease_s int) *events.JobStarted {
	s := &events.JobStarted{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: policyDigest,
		Sealed: sealed, Attempt: len(j.Attempts) + 1, LeaseS: lease_s, Bound: bound(j.Resolution),
	}
	for _, a := range j.Approvals {
		s.Approvals = append(s.Approvals, a.Seq)
	}
	return s
}

// holds returns the attempt that this session started as number n, or nil.
func holds(j lifecycle.Job, actor, session string, n int) *lifecycle.Attempt {
	for i, a := range j.Attempts {
		if a.N == n && a.Worker == actor && a.Session == session {
			return &j.Attempts[i]
		}
	}
	return nil
}

// standing of an attempt whose end is to be published.
type fence int

const (
	fenceOpen   fence = iota // it is ours to end
	fenceLate                // its claim lapsed, one late result is accepted
	fenceStored              // its end is in the log already
	fenceShut                // the log accepts nothing from it any more
)

// fenceOf says what the log still accepts of the attempt with this start.
func fenceOf(j lifecycle.Job, started uint64) fence {
	a := j.Current()
	switch {
	case a == nil || a.StartedSeq != started:
		return fenceShut
	case a.Result != nil || j.Status == lifecycle.Cancelled:
		return fenceStored
	case j.Status == lifecycle.Running:
		return fenceOpen
	case j.Status == lifecycle.Lost:
		return fenceLate
	}
	return fenceShut
}
