package query

import "github.com/banksman/banksman/events"

// Preview is what one worker of a pool answers on Preview + "." + pool:
// PreviewRequest -> Previewed.
const Preview = "bmq.preview"

// PreviewRequest asks a worker what it would do with a proposal. Nothing is
// started and nothing stored.
type PreviewRequest struct {
	Proposal events.JobProposed `json:"proposal"`
}

// Previewed is what would run on the worker that answers, as it sees its files
// at this moment.
type Previewed struct {
	Worker  string `json:"worker"`
	Session string `json:"session"`
	// Fault is why nothing would run there; what follows is then incomplete.
	Fault *Obstacle `json:"fault,omitempty"`
	// Assessment is what policy says with what the worker has found.
	Assessment Assessment `json:"assessment"`
	// Program, Files and Cwd are what an approval would be bound to.
	Program events.FileDigest   `json:"program"`
	Files   []events.FileDigest `json:"files,omitempty"`
	Cwd     string              `json:"cwd"`
	Bound   string              `json:"bound,omitempty"` // how the program would be tied to its digest
	// Executor is the worker's own command in front of the job's, if it has one.
	Executor []string `json:"executor,omitempty"`
	// Env names every variable that the program would get; values stay with the
	// worker. Secrets are those of them that are filled from secrets.
	Env     []string `json:"env"`
	Secrets []string `json:"secrets,omitempty"`
	Limits  Limits   `json:"limits"`
	// Walls are what would keep it from the rest of the machine, in the words of
	// job.started; ReachRead and ReachWrite what Landlock would let it use.
	Walls      []string `json:"walls,omitempty"`
	ReachRead  []string `json:"reach_read,omitempty"`
	ReachWrite []string `json:"reach_write,omitempty"`
}

// Obstacle is a stable code and a sentence.
type Obstacle struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

// Limits are what would bound an attempt; 0 for what is not bounded.
type Limits struct {
	TimeoutS    int    `json:"timeout_s"`
	GraceS      int    `json:"grace_s"`
	OutputBytes int64  `json:"output_bytes"` // kept of each stream
	CPUS        int64  `json:"cpu_s,omitzero"`
	MemoryBytes int64  `json:"memory_bytes,omitzero"`
	OpenFiles   int64  `json:"open_files,omitzero"`
	Processes   int64  `json:"processes,omitzero"`
	FileBytes   int64  `json:"file_bytes,omitzero"`
	Nice        int    `json:"nice,omitzero"`
	Umask       int    `json:"umask"`
	User        string `json:"user,omitempty"` // whom it would run as, where that is not the worker's own
}

// DryRun is what would become of a proposal: what the gate says, and what a
// worker would do.
type DryRun struct {
	Gate Assessment `json:"gate"`
	// Preview is nil where the gate denies, or no worker of the pool answers.
	Preview *Previewed `json:"preview,omitempty"`
	// NoPreview says why there is none.
	NoPreview string `json:"no_preview,omitempty"`
}

// Verdict is the stricter word of gate and worker: a denial of either, then a
// question of either.
func (d DryRun) Verdict() Assessment {
	if d.Preview == nil || d.Preview.Fault != nil || d.Gate.Verdict == "deny" {
		return d.Gate
	}
	return d.Preview.Assessment // of the same policy, with more to go by
}
