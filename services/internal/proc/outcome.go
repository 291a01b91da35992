package proc

import (
	"errors"
	"fmt"
	"time"
)

// How a program was tied to its approved digest.
const (
	BoundFD      = "fd"      // a binary, executed by the descriptor that was hashed
	BoundSealed  = "sealed"  // a binary, executed from a sealed copy in memory
	BoundChecked = "checked" // a script, checked just before exec and after
)

// How the members of a tree were found when it was ended.
const (
	MeansSubreaper = "subreaper" // descendants of the steward
	MeansCgroup    = "cgroup"    // members of the job's control group
	MeansMarker    = "marker"    // carriers of the marker in their environment
)

// An Outcome is what became of a run.
type Outcome struct {
	// ExitCode is the direct child's exit status, or -1 when a signal ended it or nobody could learn it.
	ExitCode int `json:"exit_code"`
	// Signal is the name of the signal that ended the direct child, such as SIGSEGV, or empty.
	Signal string `json:"signal,omitempty"`
	// TimedOut and Cancelled say why the tree was ended while the direct child was running; at most one is true.
	TimedOut  bool `json:"timed_out,omitempty"`
	Cancelled bool `json:"cancelled,omitempty"`
	// Fenced says that the tree was ended because nobody had extended [Spec.Until]; TimedOut and Cancelled are then false.
	Fenced bool `json:"fenced,omitempty"`
	// CancelReason is the reason that Cancel was given.
	CancelReason string `json:"cancel_reason,omitempty"`
	// StartedAt is the wall clock at exec. Wall is the monotonic time from there to the direct child's exit, and Ended the
	// time to the end of the tree.
	StartedAt time.Time     `json:"started_at"`
	Wall      time.Duration `json:"wall_ns"`
	Ended     time.Duration `json:"ended_ns"`
	// User and System are processor time, summed over every process of the tree; MaxRSSBytes is the largest of them.
	User        time.Duration `json:"user_ns"`
	System      time.Duration `json:"system_ns"`
	MaxRSSBytes int64         `json:"max_rss_bytes"`
	// Bound says how the program was tied to its digest; empty when no digest was named.
	Bound string `json:"bound,omitempty"`
	// LeftBehind counts the processes that were still there when the direct child had exited.
	LeftBehind int `json:"left_behind,omitempty"`
	// Killed counts the processes that did not go when they were asked to.
	Killed int `json:"killed,omitempty"`
	// Means lists what found the processes that had to be ended.
	Means []string `json:"means,omitempty"`
	// Survivors lists processes that could not be ended.
	Survivors []int `json:"survivors,omitempty"`
	// PID is the direct child's process id as the owner sees it.
	PID int `json:"pid"`
}

// Codes of a [StartError].
const (
	CodeBadSpec       = "bad_spec"              // the Spec contradicts itself
	CodeNoProgram     = "no_such_program"       // nothing at the program's path
	CodeNotExecutable = "not_executable"        // not a regular file, no permission, or no known format
	CodeNoInterpreter = "no_such_interpreter"   // the script's #! line or the binary's loader names nothing
	CodeDigestChanged = "digest_changed"        // other content than approved
	CodeTooLarge      = "too_large"             // arguments, environment or file above a limit
	CodeNotRegular    = "not_regular"           // a file to hash is a folder, device, pipe or socket
	CodeNoDir         = "no_such_dir"           // the working directory is missing or hidden
	CodeDirChanged    = "dir_changed"           // the working directory's path leads through a symlink
	CodeNoNamespace   = "namespace_unavailable" // folders cannot be hidden on this machine
	CodeNoReach       = "reach_unavailable"     // the program cannot be kept to its reach, or a path of it is missing
	CodeSteward       = "steward_failed"        // the steward could not be started or died; with AllowNewPrivileges the program may have run
	CodeTooLate       = "too_late"              // StartBy or Until was over before the program could be started
	CodeSystem        = "system"                // any other refusal of the kernel
	CodeUnsupported   = "unsupported"           // this platform runs no programs
)

// A StartError says why a program was not started, or that a file could not be resolved or hashed.
type StartError struct {
	Code   string `json:"code"`
	Path   string `json:"path,omitempty"`
	Want   string `json:"want,omitempty"` // the approved digest
	Got    string `json:"got,omitempty"`  // the digest found
	Detail string `json:"detail,omitempty"`
}

// Error describes the refusal in one line.
func (e *StartError) Error() string {
	text := fmt.Sprintf("start %s: %s", e.Path, e.Code)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Want != "" {
		text += fmt.Sprintf(" (approved %s, found %s)", e.Want, e.Got)
	}
	return text
}

// Is makes two StartErrors with the same code equal to errors.Is, so that a caller branches on a code with
// errors.Is(err, &StartError{Code: CodeNoDir}).
func (e *StartError) Is(target error) bool {
	other, ok := target.(*StartError)
	return ok && other.Code == e.Code
}

// ErrStewardLost says that the steward died before it could tell the exit status. The tree has been ended by control group
// and marker; the Outcome holds what is known.
var ErrStewardLost = errors.New("the process that watches the job died before the job's end; its exit status is unknown")
