package auditor

import "github.com/banksman/banksman/services/internal/evidence"

// Verdict is one of the four answers about a log. Reason says why not, or what a
// reader of an ok should know.
type Verdict = evidence.Verdict

// Gap is a hole in the stream that the log states itself.
type Gap struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Acknowledged is the event by which an admin said that it is known, 0 for none.
	Acknowledged uint64 `json:"acknowledged,omitzero"`
}

// StatedFault is what an audit.fault_found says.
type StatedFault struct {
	Seq    uint64 `json:"seq"` // of the event
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Acknowledged is the event by which an admin said that it is known, 0 for none.
	Acknowledged uint64 `json:"acknowledged,omitzero"`
}

// EpochReport says where the log of an epoch ended that is over.
type EpochReport struct {
	Origin     string `json:"origin"`
	Size       int64  `json:"size"` // leaves
	Root       string `json:"root"` // base64
	ThroughSeq uint64 `json:"through_seq"`
	Events     int64  `json:"events"`   // without those that were carried into it
	EndedBy    string `json:"ended_by"` // why the next one began
}

// Report is what [Verify] found. The verdicts do not imply each other.
type Report struct {
	// Integrity: the entries and records lead to the root that is signed, by a key
	// that the trust file in force at the head lists, and the head file agrees.
	Integrity Verdict `json:"integrity"`
	// Authenticity: every event is signed by whom the trust file in force at its
	// leaf lets publish it.
	Authenticity Verdict `json:"authenticity"`
	// Completeness: no sequence of the stream and no number of a session is missing
	// but for what an admin has acknowledged, no fault is open, nothing but audit
	// events lies beyond the head, and no text is missing that was not erased by order.
	Completeness Verdict `json:"completeness"`
	// Freshness: the head covers what the bus holds, or is young.
	Freshness Verdict `json:"freshness"`

	Origin     string `json:"origin"`      // of the log, as its genesis says
	Size       int64  `json:"size"`        // leaves under the signed head
	Root       string `json:"root"`        // of the signed head, base64
	ThroughSeq uint64 `json:"through_seq"` // last sequence under the head
	HeadTime   string `json:"head_time"`   // stream time of the last event under the head
	Unsealed   int64  `json:"unsealed"`    // leaves beyond the head
	Events     int64  `json:"events"`      // in the whole log

	// Epochs are the epochs before, from the first one on, whose logs were verified.
	Epochs []EpochReport `json:"epochs,omitempty"`

	FirstBadLeaf *int64        `json:"first_bad_leaf,omitempty"` // lowest leaf that fails integrity or authenticity
	FirstBadIn   string        `json:"first_bad_in,omitempty"`   // the epoch of that leaf
	Gaps         []Gap         `json:"gaps,omitempty"`
	Faults       []StatedFault `json:"faults,omitempty"`
	// Unbelieved counts events that fail authenticity, Unreported those among them
	// that no audit.violation_found names.
	Unbelieved int64 `json:"unbelieved,omitzero"`
	Unreported int64 `json:"unreported,omitzero"`
	// Stamps are the heads that time-stamping authorities have stamped.
	Stamps []StampedHead `json:"stamps,omitempty"`
	// Texts counts the words of people that are kept as events name them, Erased
	// those that an admin had deleted.
	Texts  int64 `json:"texts,omitzero"`
	Erased int64 `json:"erased,omitzero"`
	// Notes are what a crash explains and the next start of the auditor repairs.
	Notes []string `json:"notes,omitempty"`
}

// unknownFreshness begins the reason when nothing tells how fresh the head is.
const unknownFreshness = evidence.UnknownFreshness

// OK says whether every verdict is.
func (r *Report) OK() bool {
	return r.Integrity.OK && r.Authenticity.OK && r.Completeness.OK && r.Freshness.OK
}

// ExitCode is 0 when every verdict is ok, 3 when only freshness is not known, else 1.
func (r *Report) ExitCode() int {
	return evidence.ExitCode(r.Integrity, r.Authenticity, r.Completeness, r.Freshness)
}

// reasons collects the grounds of a verdict and keeps the text bounded.
type reasons = evidence.Reasons
