package events

var grantKinds = []Def{
	define[GrantGiven]("grant.given", 1, "a person had said yes in advance, to a bounded kind of command for a bounded time"),
	define[GrantUsed]("grant.used", 1, "the gate had taken one use of a grant for exactly these digests, and was about to approve the job with it"),
	define[GrantRevoked]("grant.revoked", 1, "a person had taken a grant back; no job starts by it from there on"),
}

// MaxGrantS is the longest time in seconds for which a yes may be given in
// advance; the configuration may set less.
const MaxGrantS = 7 * 24 * 3600

// MaxGrantUses bounds how often one grant may be used.
const MaxGrantUses = 1000

// GrantScope is which commands a grant covers. It is read like a rule of the
// policy that allows: the program by name or path, arguments by prefix, no
// option that is not listed.
type GrantScope struct {
	// Program is a bare name or an absolute path.
	Program string `json:"program"`
	// Args are patterns of the first arguments, in order.
	Args []string `json:"args,omitempty"`
	// Exact takes no argument beyond those.
	Exact bool `json:"exact,omitzero"`
	// Flags are patterns of options that may follow.
	Flags []string `json:"flags,omitempty"`
	// Roots are the folders that the working folder must lie in.
	Roots []string `json:"roots"`
	// Pool is the only pool, empty for every one.
	Pool string `json:"pool,omitempty"`
	// Proposer is the only proposer, as "agent:claude"; empty for every one.
	Proposer string `json:"proposer,omitempty"`
	// Project covers the rounds of one project only.
	Project string `json:"project,omitempty"`
}

// GrantGiven is a yes in advance. It counts where policy asks for one person,
// never where it denies or asks for more, and never for its giver's own
// proposals.
type GrantGiven struct {
	// Scope is what it covers.
	Scope GrantScope `json:"scope"`
	// ValidS is for how many seconds of stream time it may be used.
	ValidS int `json:"valid_s"`
	// Uses is how many jobs it may approve.
	Uses int `json:"uses"`
	// Reason is why, for people.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}

// GrantUsed takes one use.
type GrantUsed struct {
	// Given is the sequence of the grant.
	Given uint64 `json:"given"`
	// Use counts from 1.
	Use int `json:"use"`
	// Job is the job that it is used for.
	Job string `json:"job"`
	// Proposal is the digest of that job's proposal.
	Proposal string `json:"proposal"`
	// Resolution is the digest of that job's resolution.
	Resolution string `json:"resolution"`

	Extra Extra `json:",embed"`
}

// GrantRevoked ends a grant.
type GrantRevoked struct {
	// Reason is why, for people.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}
