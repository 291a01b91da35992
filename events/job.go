package events

import "strings"

var jobKinds = []Def{
	define[JobProposed]("job.proposed", 1, "an agent or a person had asked for a command, and the proposer had checked its form"),
	define[JobResolved]("job.resolved", 1, "a worker of the pool had looked up what would run and taken its digests"),
	define[JobAssessed]("job.assessed", 1, "the gate had found that policy asks for people"),
	define[JobApproved]("job.approved", 1, "a person, or the gate where policy allows, had said yes to exactly these digests"),
	define[JobDenied]("job.denied", 1, "policy or a person had said no, for good"),
	define[JobExpired]("job.expired", 1, "nobody had decided, or nobody had started it, in time"),
	define[JobCancelled]("job.cancelled", 1, "somebody entitled had called it off"),
	define[JobRevoked]("job.revoked", 1, "a person had taken the approval back before the job, or its next attempt, was started"),
	define[JobStarted]("job.started", 1, "a worker had claimed the attempt and was about to execute it"),
	define[JobFinished]("job.finished", 1, "the process tree of the attempt had ended and its output was stored"),
	define[JobLapsed]("job.lapsed", 1, "the attempt's worker had been silent for longer than its lease"),
	define[JobDeclined]("job.declined", 1, "a worker had found that it cannot run the job here"),
	define[JobHandedOver]("job.handed_over", 1, "the proposer had told the caller to execute an approved command itself, once"),
	define[JobReported]("job.reported", 1, "the caller had said what became of a command that it executed itself; nobody has checked that"),
	define[JobDeadLettered]("job.dead_lettered", 1, "the resolving worker had found that what would run is no longer what was approved"),
}

// Proposer is on whose behalf a proposal was made, as its token says.
type Proposer struct {
	// Kind is "agent" or "person".
	Kind string `json:"kind"`
	// ID is the agent's name or the person's actor token.
	ID string `json:"id"`
}

func (p Proposer) String() string { return p.Kind + ":" + p.ID }

// JobProposed is the request, complete: whatever runs is derived from it.
type JobProposed struct {
	// Argv is the argument vector, never a shell string; 1 to 4096 arguments.
	Argv []string `json:"argv"`
	// Cwd is the absolute working directory as the proposer named it.
	Cwd string `json:"cwd"`
	// Env holds the variables that the job sets beside the worker's own.
	Env map[string]string `json:"env,omitempty"`
	// Pool names the workers that may run it.
	Pool string `json:"pool"`
	// Executor is [ExecutorCaller] when whoever proposed it executes it, after a
	// yes; empty when a worker does.
	Executor string `json:"executor,omitempty"`
	// TimeoutS ends the job's tree after so many seconds of run time.
	TimeoutS int `json:"timeout_s"`
	// MaxAttempts is how often it may be started in all; 1 unless asked.
	MaxAttempts int `json:"max_attempts"`
	// RetrySafe says that running it twice does no harm.
	RetrySafe bool `json:"retry_safe,omitzero"`
	// Reason is the proposer's own words for the people who decide.
	Reason string `json:"reason,omitempty"`
	// IdempotencyKey makes a repeated proposal the same job.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Labels are free words to find it by.
	Labels map[string]string `json:"labels,omitempty"`
	// Proposer is on whose behalf it was asked.
	Proposer Proposer `json:"proposer"`
	// ExpiresS ends an undecided request after so many seconds of stream time.
	ExpiresS int `json:"expires_s"`
	// Follows is the job that this one takes the place of.
	Follows Follows `json:"follows,omitzero"`
	// Waived is the sequence of a person's word that what looks like a secret in it
	// is none; 0 when nothing did.
	Waived uint64 `json:"waived,omitzero"`

	Extra Extra `json:",embed"`
}

// ExecutorCaller marks a proposal that no worker ever starts: it is decided as any
// other and then handed over to whoever proposed it.
const ExecutorCaller = "caller"

// Follows links a proposal to an earlier job. Nothing of that job's decisions
// carries over.
type Follows struct {
	// Job is the earlier job.
	Job string `json:"job"`
	// As is "retry" for the same command again, "edit" for a changed one.
	As string `json:"as"`
}

// FileDigest is one file that takes part in a run.
type FileDigest struct {
	// Arg is the argument it came from; 0 is the program, -1 an interpreter
	// that a script names.
	Arg int `json:"arg"`
	// Path is absolute with every symbolic link resolved.
	Path string `json:"path"`
	// SHA256 is the hexadecimal digest of the content.
	SHA256 string `json:"sha256"`
	// SizeBytes is the length of the content.
	SizeBytes int64 `json:"size_bytes"`
}

// JobResolved is what would run on a worker that sees the files.
type JobResolved struct {
	// Proposal is the digest of the proposal's payload.
	Proposal string `json:"proposal"`
	// Policy is the digest of the policy that said which files count as code.
	Policy string `json:"policy"`
	// Program is the file that the kernel would execute.
	Program FileDigest `json:"program"`
	// Files are the interpreter and the arguments that a rule marks as code.
	Files []FileDigest `json:"files,omitempty"`
	// Cwd is the real working directory.
	Cwd string `json:"cwd"`
	// UnsafeSharedUser says that the job would share the worker's user and could
	// reach banksman's own files.
	UnsafeSharedUser bool `json:"unsafe_shared_user,omitzero"`
	// EnvPass are the names of the worker's own variables that the job would get.
	EnvPass []string `json:"env_pass,omitzero"`
	// SearchPath are the folders in which the worker and the job look for programs.
	SearchPath []string `json:"search_path,omitzero"`

	Extra Extra `json:",embed"`
}

// Ruling is which rule spoke and why, for people and agents.
type Ruling struct {
	// Rule is the rule's id, empty when none matched.
	Rule string `json:"rule,omitempty"`
	// Code is the stable name of the ground, such as "rule" or "unlisted".
	Code string `json:"code"`
	// Reason is the sentence that reaches the agent.
	Reason string `json:"reason"`
	// Instead says what to do instead, when the rule knows.
	Instead string `json:"instead,omitempty"`
	// Broad says that the rule allows arguments which can carry any code.
	Broad bool `json:"broad,omitzero"`
}

// JobAssessed says that people are needed.
type JobAssessed struct {
	// Proposal is the digest of the proposal's payload.
	Proposal string `json:"proposal"`
	// Resolution is the digest of the resolution's payload; empty when no
	// worker reported within the time allowed.
	Resolution string `json:"resolution,omitempty"`
	// Policy is the digest of the policy that was applied.
	Policy string `json:"policy"`
	// Ruling is the rule that asks.
	Ruling Ruling `json:"ruling"`
	// Quorum is how many distinct persons must approve.
	Quorum int `json:"quorum"`
	// Approvers are the actor tokens of the persons who may; empty for
	// everybody with the right.
	Approvers []string `json:"approvers,omitempty"`
	// Confirm is "digest" when each yes has to name the digest of what would run.
	Confirm string `json:"confirm,omitempty"`

	Extra Extra `json:",embed"`
}

// JobApproved is one yes to exactly these digests.
type JobApproved struct {
	// Proposal is the digest of the proposal's payload.
	Proposal string `json:"proposal"`
	// Resolution is the digest of the resolution's payload.
	Resolution string `json:"resolution"`
	// Policy is the digest of the policy in force.
	Policy string `json:"policy"`
	// Basis is "policy" for the gate's own, "grant" for the gate's by a person's
	// yes in advance, "person" for a human's.
	Basis string `json:"basis"`
	// Grant is the id of the grant, for basis "grant".
	Grant string `json:"grant,omitempty"`
	// GrantUsed is the sequence of the use that was taken of it for this job.
	GrantUsed uint64 `json:"grant_used,omitzero"`
	// Ruling is the rule that allows, for basis "policy".
	Ruling Ruling `json:"ruling,omitzero"`
	// ValidS is how many seconds of stream time the approval may be used.
	ValidS int `json:"valid_s"`
	// MaxAttempts bounds the attempts that the approval covers.
	MaxAttempts int `json:"max_attempts"`
	// Confirmed is how the person named the digest of what would run: its first
	// digits, at least [MinDigestDigits]; empty when nobody asked for them.
	Confirmed string `json:"confirmed,omitempty"`
	// UnsafeSharedUser records that agents share the approver's user and
	// could reach its files.
	UnsafeSharedUser bool `json:"unsafe_shared_user,omitzero"`

	Extra Extra `json:",embed"`
}

// MinDigestDigits is how many digits tell digests apart for people.
const MinDigestDigits = 8

// ConfirmDigest is the one form of [JobAssessed.Confirm].
const ConfirmDigest = "digest"

// NamesDigest says whether a prefix that a person gives names a digest.
func NamesDigest(digest, prefix string) bool {
	return len(prefix) >= MinDigestDigits && strings.HasPrefix(digest, strings.ToLower(prefix))
}

// JobDenied is a no.
type JobDenied struct {
	// Proposal is the digest of the proposal's payload.
	Proposal string `json:"proposal"`
	// Policy is the digest of the policy, for a denial by policy.
	Policy string `json:"policy,omitempty"`
	// Basis is "policy" or "person".
	Basis string `json:"basis"`
	// Ruling is why; a person's reason has the code "person".
	Ruling Ruling `json:"ruling"`

	Extra Extra `json:",embed"`
}

// JobExpired ends a request that nobody decided or an approval nobody used.
type JobExpired struct {
	// Proposal is the digest of the proposal's payload.
	Proposal string `json:"proposal"`
	// What is "request" or "approval".
	What string `json:"what"`

	Extra Extra `json:",embed"`
}

// JobCancelled calls a job off.
type JobCancelled struct {
	// Started is the sequence of the attempt's start, 0 when not running.
	Started uint64 `json:"started,omitzero"`
	// By is the actor token of the person who asked, the proposer as
	// "agent:claude", or the worker that stops.
	By string `json:"by"`
	// Reason is why.
	Reason string `json:"reason"`
	// Request is the sequence of the request that it answers, 0 when nobody had
	// to ask.
	Request uint64 `json:"request,omitzero"`
	// Receipt is what became of a running attempt.
	Receipt Receipt `json:"receipt,omitzero"`

	Extra Extra `json:",embed"`
}

// Receipt says how a cancelled attempt was brought to its end.
type Receipt struct {
	// ExitCode is the child's status; -1 when a signal ended it.
	ExitCode int `json:"exit_code"`
	// Signal is the name of the signal that ended it.
	Signal string `json:"signal,omitempty"`
	// DurationMS is the run time on the worker's monotonic clock.
	DurationMS int64 `json:"duration_ms"`
	// Means are how the tree was ended, in the order used.
	Means []string `json:"means,omitempty"`
	// LeftBehind counts processes that were still there when the program itself had
	// ended.
	LeftBehind int `json:"left_behind,omitzero"`
	// Killed counts processes that did not go when they were asked to.
	Killed int `json:"killed,omitzero"`
	// Survivors counts processes that could not be ended.
	Survivors int `json:"survivors,omitzero"`
	// SurvivorPIDs are the first of them, by their ids on the worker's machine.
	SurvivorPIDs []int `json:"survivor_pids,omitempty"`
	// Stdout describes standard output.
	Stdout Output `json:"stdout"`
	// Stderr describes standard error.
	Stderr Output `json:"stderr"`
}

// JobRevoked takes the approvals of a job back that does not run.
type JobRevoked struct {
	// Proposal is the digest of the proposal's payload.
	Proposal string `json:"proposal"`
	// By is the actor token of the person who asked.
	By string `json:"by"`
	// Reason is why.
	Reason string `json:"reason"`
	// Request is the sequence of the request that it answers.
	Request uint64 `json:"request"`

	Extra Extra `json:",embed"`
}

// JobStarted claims one attempt. Its sequence is the attempt's fence: every
// later event of the attempt names it.
type JobStarted struct {
	// Proposal is the digest of the proposal's payload.
	Proposal string `json:"proposal"`
	// Resolution is the digest of the approved resolution, found again.
	Resolution string `json:"resolution"`
	// Policy is the digest of the policy in force at the start.
	Policy string `json:"policy"`
	// Approvals are the sequences of the approvals that it uses.
	Approvals []uint64 `json:"approvals"`
	// Sealed is the sequence through which the audit log was sealed.
	Sealed uint64 `json:"sealed"`
	// Attempt counts from 1.
	Attempt int `json:"attempt"`
	// LeaseS is how many seconds of silence end the claim.
	LeaseS int `json:"lease_s"`
	// Bound is "fd" when the approved bytes are executed by descriptor,
	// "checked" when a script is read by its interpreter.
	Bound string `json:"bound"`
	// Walls are what keeps the job from the rest of the machine: "hidden" when it
	// cannot see banksman's own files, "landlock" when the kernel keeps it to
	// parts of the file system, "user" when it runs as another user than the
	// worker, "container" when a prefix runs it in one.
	Walls []string `json:"walls,omitempty"`

	Extra Extra `json:",embed"`
}

// Output describes one of the two output streams of an attempt.
type Output struct {
	// Bytes is how many the child wrote.
	Bytes int64 `json:"bytes"`
	// StoredBytes is how many were kept, after redaction and cutting.
	StoredBytes int64 `json:"stored_bytes"`
	// SHA256 is the digest of the kept bytes.
	SHA256 string `json:"sha256"`
	// Chunks is how many chunks hold the kept bytes.
	Chunks int `json:"chunks"`
	// CutBytes is how many were left out between head and tail.
	CutBytes int64 `json:"cut_bytes,omitzero"`
	// Redacted is how many secrets were replaced before anything was kept.
	Redacted int `json:"redacted,omitzero"`
}

// JobFinished is the result of an attempt.
type JobFinished struct {
	// Started is the sequence of the attempt's start.
	Started uint64 `json:"started"`
	// Outcome is "succeeded", "failed" or "timed_out".
	Outcome string `json:"outcome"`
	// ExitCode is the child's status; -1 when a signal ended it.
	ExitCode int `json:"exit_code"`
	// Signal is the name of the signal that ended it, such as "SIGKILL".
	Signal string `json:"signal,omitempty"`
	// Error says why the program could not be executed at all.
	Error string `json:"error,omitempty"`
	// DurationMS is the run time on the worker's monotonic clock.
	DurationMS int64 `json:"duration_ms"`
	// UserMS is the processor time in user mode, of the whole tree.
	UserMS int64 `json:"user_ms"`
	// SystemMS is the processor time in the kernel, of the whole tree.
	SystemMS int64 `json:"system_ms"`
	// MaxRSSBytes is the largest resident size of any one process.
	MaxRSSBytes int64 `json:"max_rss_bytes"`
	// Stdout describes standard output.
	Stdout Output `json:"stdout"`
	// Stderr describes standard error.
	Stderr Output `json:"stderr"`
	// Means are how the tree was ended, in the order used.
	Means []string `json:"means,omitempty"`
	// LeftBehind counts processes that were still there when the program itself had
	// ended.
	LeftBehind int `json:"left_behind,omitzero"`
	// Killed counts processes that did not go when they were asked to.
	Killed int `json:"killed,omitzero"`
	// Survivors counts processes that could not be ended.
	Survivors int `json:"survivors,omitzero"`
	// SurvivorPIDs are the first of them, by their ids on the worker's machine.
	SurvivorPIDs []int `json:"survivor_pids,omitempty"`
	// RetryAtMS, in milliseconds since 1970, asks for another attempt then;
	// 0 asks for none.
	RetryAtMS int64 `json:"retry_at_ms,omitzero"`

	Extra Extra `json:",embed"`
}

// JobLapsed ends a claim whose holder fell silent.
type JobLapsed struct {
	// Started is the sequence of the attempt's start.
	Started uint64 `json:"started"`
	// SilentS is how long the observer heard nothing.
	SilentS int `json:"silent_s"`
	// Why is "lease" for silence, "restart" when the holder itself came back
	// without the attempt.
	Why string `json:"why"`

	Extra Extra `json:",embed"`
}

// JobDeclined leaves a job to other workers.
type JobDeclined struct {
	// Code is the stable name of the ground, such as "no_such_program".
	Code string `json:"code"`
	// Reason is the sentence for people.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}

// JobHandedOver lets the caller execute what was approved. Only a proposal with
// the executor "caller" is handed over, and only once.
type JobHandedOver struct {
	// Proposal is the digest of the proposal's payload.
	Proposal string `json:"proposal"`
	// Resolution is the digest of the approved resolution, found again.
	Resolution string `json:"resolution"`
	// Policy is the digest of the policy in force.
	Policy string `json:"policy"`
	// Approvals are the sequences of the approvals that it uses.
	Approvals []uint64 `json:"approvals"`
	// Sealed is the sequence through which the audit log was sealed.
	Sealed uint64 `json:"sealed"`

	Extra Extra `json:",embed"`
}

// JobReported is the caller's own word on how it went.
type JobReported struct {
	// HandedOver is the sequence of the handing over.
	HandedOver uint64 `json:"handed_over"`
	// ExitCode is the status that the caller saw.
	ExitCode int `json:"exit_code"`

	Extra Extra `json:",embed"`
}

// JobDeadLettered ends a job whose approval no longer fits what would run.
type JobDeadLettered struct {
	// Code is "program_changed", "file_changed", "cwd_changed",
	// "isolation_changed", "environment_changed", "grant_changed" or "policy_changed".
	Code string `json:"code"`
	// Reason names the difference.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}
