package auditor

import "strings"

// Verdict is one of the four answers about a log. Reason says why not, or what a
// reader of an ok should know.
type Verdict struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
}

// Gap is a hole in the stream that the log states itself.
type Gap struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Report is what [Verify] found. The verdicts do not imply each other.
type Report struct {
	// Integrity: the entries and records lead to the root that is signed, by a key
	// that the trust file in force at the head lists, and the head file agrees.
	Integrity Verdict `json:"integrity"`
	// Authenticity: every event is signed by whom the trust file in force at its
	// leaf lets publish it.
	Authenticity Verdict `json:"authenticity"`
	// Completeness: no sequence of the stream and no number of a session is missing,
	// and nothing but audit events lies beyond the head.
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

	FirstBadLeaf *int64 `json:"first_bad_leaf,omitempty"` // lowest leaf that fails integrity or authenticity
	Gaps         []Gap  `json:"gaps,omitempty"`
	// Unbelieved counts events that fail authenticity, Unreported those among them
	// that no audit.violation_found names.
	Unbelieved int64 `json:"unbelieved,omitzero"`
	Unreported int64 `json:"unreported,omitzero"`
	// Notes are what a crash explains and the next start of the auditor repairs.
	Notes []string `json:"notes,omitempty"`
}

// unknownFreshness begins the reason when nothing tells how fresh the head is.
const unknownFreshness = "unknown: "

// OK says whether every verdict is.
func (r *Report) OK() bool {
	return r.Integrity.OK && r.Authenticity.OK && r.Completeness.OK && r.Freshness.OK
}

// ExitCode is 0 when every verdict is ok, 3 when only freshness is not known, else 1.
func (r *Report) ExitCode() int {
	switch {
	case r.OK():
		return 0
	case r.Integrity.OK && r.Authenticity.OK && r.Completeness.OK && strings.HasPrefix(r.Freshness.Reason, unknownFreshness):
		return 3
	}
	return 1
}

// reasons collects the grounds of a verdict and keeps the text bounded.
type reasons struct {
	list []string
	more int
}

const maxReasons = 10

func (r *reasons) add(text string) {
	if len(r.list) == maxReasons {
		r.more++
		return
	}
	r.list = append(r.list, text)
}

func (r *reasons) verdict(good string) Verdict {
	if len(r.list) == 0 {
		return Verdict{OK: true, Reason: good}
	}
	text := strings.Join(r.list, "; ")
	if r.more > 0 {
		text += "; and more"
	}
	return Verdict{Reason: text}
}
