package policy

import (
	"fmt"
	"time"
)

// Verdict is what the policy says about a request. The zero value denies, and a
// greater value permits more.
type Verdict uint8

// The verdicts, from the least to the most permitted.
const (
	// Deny forbids the request; no person can approve it.
	Deny Verdict = iota
	// Ask leaves the request to persons.
	Ask
	// Allow lets the request run without a person.
	Allow
)

// String returns the word that stands for v in a policy text.
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	default:
		return "deny"
	}
}

// MarshalText writes the word of v.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads one of the words allow, ask and deny.
func (v *Verdict) UnmarshalText(text []byte) error {
	got, ok := verdictOf(string(text))
	if !ok {
		return fmt.Errorf("read a verdict: %q is none of allow, ask, deny", text)
	}
	*v = got
	return nil
}

func verdictOf(word string) (Verdict, bool) {
	switch word {
	case "allow":
		return Allow, true
	case "ask":
		return Ask, true
	case "deny":
		return Deny, true
	}
	return Deny, false
}

// Request is one proposed command as far as a policy looks at it.
type Request struct {
	// Argv is the argument vector, program name first.
	Argv []string
	// Cwd is the absolute working folder as proposed.
	Cwd string
	// RealCwd is Cwd without symlinks as the worker sees it, "" before resolution.
	RealCwd string
	// ResolvedPath is the real path of the program, "" before resolution.
	ResolvedPath string
	// EnvNames are the names of the environment values that the proposal sets.
	EnvNames []string
	// Env holds those values, as far as they are known. Rules that name a value in env
	// look at it.
	Env map[string]string
	// At is the moment at which the request is judged. The policy has no clock; it is
	// the caller's, or the stream's.
	At time.Time
	// Pool is the worker pool that would run the command.
	Pool string
	// Proposer is who proposed it: "agent:NAME", "person:TOKEN", or the name alone.
	Proposer string
	// Timeout_s is the proposed time limit in seconds, 0 when none was named.
	Timeout_s int
	// MaxAttempts is the proposed number of attempts, 0 when none was named.
	MaxAttempts int

	// settled marks a command that another, resolved one starts: nobody will say more
	// about its program than stands in Argv.
	settled bool
}

// Code names why a decision came out as it did. The strings are stored in events
// and never change.
type Code string

// The codes of decisions.
const (
	// CodeRule means that the rule named in the decision decided.
	CodeRule Code = "rule"
	// CodeUnlisted means that no rule lists the command.
	CodeUnlisted Code = "unlisted"
	// CodeOutsideRoots means that a rule lists the command, but not in this folder.
	CodeOutsideRoots Code = "outside_roots"
	// CodeProgramPlace means that a rule lists the program's name, but what would
	// run lies where that name is not trusted.
	CodeProgramPlace Code = "program_place"
	// CodeEnvironment means that a rule lists the command, but not with the
	// environment values that the proposal sets.
	CodeEnvironment Code = "environment"
	// CodeOverCeiling means that the rule's ceiling on time or attempts is exceeded.
	CodeOverCeiling Code = "over_ceiling"
	// CodeDeniedArg means that deny_args or deny_text of the rule denies an argument.
	CodeDeniedArg Code = "denied_argument"
	// CodeDynamic means that a rule allows the command, but a person has to look at what
	// else it may start.
	CodeDynamic Code = "dynamic"
	// CodeShadow means that the policy is in shadow mode and decides nothing by itself.
	CodeShadow Code = "shadow"
	// CodeInDataDir means that the working folder or the program lies in the data folder.
	CodeInDataDir Code = "in_data_dir"
	// CodeUnresolved means that Assess was asked without a resolution.
	CodeUnresolved Code = "unresolved"
	// CodeBadRequest means that the request is not one that could ever run.
	CodeBadRequest Code = "bad_request"
	// CodeNoPolicy means that there is no policy at all.
	CodeNoPolicy Code = "no_policy"
)

// Decision is the answer to one request. The zero value denies.
type Decision struct {
	// Verdict is allow, ask or deny.
	Verdict Verdict `json:"verdict"`
	// Rule is the id of the rule that decided, "" when none did.
	Rule string `json:"rule,omitempty"`
	// Code says why.
	Code Code `json:"code"`
	// Reason says why in words; it reaches the agent. It never repeats arguments.
	Reason string `json:"reason"`
	// Instead says what to do instead, "" when there is nothing to say.
	Instead string `json:"instead,omitempty"`
	// Quorum is how many persons have to approve; 0 unless Verdict is Ask.
	Quorum int `json:"quorum,omitzero"`
	// Approvers are the persons who may approve; anybody with the right when it is empty.
	Approvers []string `json:"approvers,omitempty"`
	// Confirm says that each yes has to name the digest of what would run.
	Confirm bool `json:"confirm,omitzero"`
	// Shadow is what the policy would decide in enforce mode, "" in that mode. Only what
	// a deny rule denies is decided in shadow mode; everything else asks.
	Shadow string `json:"shadow,omitempty"`
	// MaxOutput_bytes is the rule's ceiling on stored output, 0 for none.
	MaxOutput_bytes int `json:"max_output_bytes,omitzero"`
	// CodeArgs are the indexes into Argv whose files the worker digests, ascending.
	// An argument that names no regular file there has no digest.
	CodeArgs []int `json:"code_args,omitempty"`
	// MaxTimeout_s is the rule's ceiling on the time limit in seconds, 0 for none.
	MaxTimeout_s int `json:"max_timeout_s,omitzero"`
	// MaxAttempts is the rule's ceiling on attempts, 0 for none.
	MaxAttempts int `json:"max_attempts,omitzero"`
	// Broad marks a decision of an allow rule that lets arguments carry code; the
	// record of the job shows it.
	Broad bool `json:"broad,omitzero"`
}
