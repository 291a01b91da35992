package events

import "slices"

var trustKinds = []Def{
	define[TrustPublished]("trust.published", 1, "the root key had signed who may do what from here on"),
}

// TrustID is the id part of every trust event's subject: a site has one.
const TrustID = "main"

// TrustPublished is the whole trust file; it replaces the one before.
type TrustPublished struct {
	// Version counts from 1.
	Version int `json:"version"`
	// Origin is the site's unique name, the same for ever.
	Origin string `json:"origin"`
	// Actors are all who may log in or sign; who is missing may not.
	Actors []Actor `json:"actors"`
	// CheckpointKeys are the auditor's signed-note verifier keys.
	CheckpointKeys []string `json:"checkpoint_keys"`

	Extra Extra `json:",embed"`
}

// Actor is one line of the trust file.
type Actor struct {
	// Actor is the token that appears in subjects.
	Actor string `json:"actor"`
	// Name is for people and appears nowhere else.
	Name string `json:"name"`
	// Roles are the powers.
	Roles []Role `json:"roles"`
	// Login is the NATS user key, empty for who never logs in.
	Login string `json:"login,omitempty"`
	// Sign is the public key of the actor's signatures, empty for a reader.
	Sign string `json:"sign,omitempty"`
	// OldLogin is the log-in key before this one, which still opens the door until
	// the actor's rotation ends.
	OldLogin string `json:"old_login,omitempty"`
	// OldSign is the signing key before this one, which is still believed until the
	// actor's rotation ends.
	OldSign string `json:"old_sign,omitempty"`
	// Pools bounds a worker; empty means every pool.
	Pools []string `json:"pools,omitempty"`
}

// Has says whether the actor holds a role.
func (a Actor) Has(r Role) bool { return slices.Contains(a.Roles, r) }

// MayPublish says whether one of the actor's roles may publish the kind.
func (a Actor) MayPublish(k Kind) bool {
	return slices.ContainsFunc(a.Roles, func(r Role) bool { return MayPublish(r, k) })
}

// Believes says whether signatures of a key count as the actor's.
func (a Actor) Believes(key string) bool {
	return key != "" && (key == a.Sign || key == a.OldSign)
}

// Find returns an actor of the trust file.
func (t *TrustPublished) Find(actor string) (Actor, bool) {
	for _, a := range t.Actors {
		if a.Actor == actor {
			return a, true
		}
	}
	return Actor{}, false
}
