package events

var proposalKinds = []Def{
	define[ProposalRefused]("proposal.refused", 1, "the proposer had refused proposals before storing them"),
}

// ProposalRefused tells of a refusal without repeating what was refused. The
// subject's id is [RefusalID]. Above a rate it stands for several.
type ProposalRefused struct {
	// Proposer is on whose behalf it was asked; empty when the token was
	// unknown.
	Proposer Proposer `json:"proposer,omitzero"`
	// Code is the stable name of the ground, such as "secret" or
	// "rate_limited".
	Code string `json:"code"`
	// Digest is the hexadecimal SHA-256 of the request's bytes as received; the
	// last one's when there were several, empty when they were not read.
	Digest string `json:"digest,omitempty"`
	// Count is for how many refusals of this ground the event stands.
	Count int `json:"count"`
	// Content is the digest that the proposal would have had in the log, for the
	// code "secret"; a person may say of exactly this that it holds none.
	Content string `json:"content,omitempty"`
	// Where says which part was refused by which rule, without repeating it.
	Where string `json:"where,omitempty"`
	// WindowS is over how many seconds they came, 0 for a single one.
	WindowS int `json:"window_s,omitzero"`

	Extra Extra `json:",embed"`
}

// RefusalID is the id under which the refusals of a proposer are stored.
func RefusalID(p Proposer) string {
	if p.Kind == "" {
		return "unknown"
	}
	return p.Kind + "-" + p.ID
}
