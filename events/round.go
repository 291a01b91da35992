package events

var roundKinds = []Def{
	define[RoundStarted]("round.started", 1, "the holder of a project had begun a round and was about to execute the agent"),
	define[RoundEnded]("round.ended", 1, "the agent's whole process tree had ended, or the round was found without one"),
}

// RoundStarted begins one run of an agent.
type RoundStarted struct {
	// Claim is the sequence of the holder's claim.
	Claim uint64 `json:"claim"`
	// Number counts the project's rounds from 1, for ever.
	Number int `json:"number"`
	// Turn counts from 1 since the loop was first claimed or last asked to
	// start; it is what max_rounds bounds.
	Turn int `json:"turn"`
	// Program is the base name of what is executed. Arguments are left out:
	// they may hold the prompt.
	Program string `json:"program"`
	// PromptSHA256 is the digest of the prompt.
	PromptSHA256 string `json:"prompt_sha256"`
	// PromptBytes is the length of the prompt.
	PromptBytes int64 `json:"prompt_bytes"`
	// TimeLimitS ends the round's tree after so many seconds.
	TimeLimitS int `json:"time_limit_s"`
	// UnsafeSharedUser records that the agent could reach banksman's own
	// files.
	UnsafeSharedUser bool `json:"unsafe_shared_user,omitzero"`

	Extra Extra `json:",embed"`
}

// RoundEnded is what became of a round.
type RoundEnded struct {
	// Started is the sequence of the round's start.
	Started uint64 `json:"started"`
	// Outcome is "succeeded", "failed", "timed_out", "stopped" when banksman
	// ended it before its limit, or "interrupted" when its supervisor died.
	Outcome string `json:"outcome"`
	// Reason says why it was stopped or interrupted.
	Reason string `json:"reason,omitempty"`
	// Failure classifies what the agent itself reported: "auth" when its
	// provider refused its log-in, empty for none that is known.
	Failure string `json:"failure,omitempty"`
	// ExitCode is the agent's status; -1 when a signal ended it or nobody
	// could learn it.
	ExitCode int `json:"exit_code"`
	// Signal is the name of the signal that ended it, such as "SIGKILL".
	Signal string `json:"signal,omitempty"`
	// Error says why the agent could not be executed at all.
	Error string `json:"error,omitempty"`
	// DurationMS is the run time on the supervisor's monotonic clock.
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
	// LeftBehind counts processes that outlived the agent and were ended.
	LeftBehind int `json:"left_behind,omitzero"`
	// Survivors counts processes that could not be ended.
	Survivors int `json:"survivors,omitzero"`

	Extra Extra `json:",embed"`
}
