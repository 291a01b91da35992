package events

var policyKinds = []Def{
	define[PolicyPublished]("policy.published", 1, "an admin had put a policy into force"),
}

// PolicyID is the id part of every policy event's subject: a site has one.
const PolicyID = "main"

// SiteScope is the scope of what belongs to the whole site.
const SiteScope = "site"

// PolicyPublished is the whole policy as text.
type PolicyPublished struct {
	// Digest is the hexadecimal SHA-256 of Text; every decision names it.
	Digest string `json:"digest"`
	// Text is the TOML document, byte for byte.
	Text string `json:"text"`

	Extra Extra `json:",embed"`
}
