package evidence

import "strings"

// Verdict is one of the four answers about a log or a part of it. Reason says why
// not, or what a reader of an ok should know.
type Verdict struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
}

// UnknownFreshness begins the reason when nothing tells how fresh a head is.
const UnknownFreshness = "unknown: "

// Report is what [Verify] found. The verdicts do not imply each other.
type Report struct {
	// Integrity: every file is what the signed head covers, and the head is signed
	// by a key that the newest trust file lists.
	Integrity Verdict `json:"integrity"`
	// Authenticity: every event is signed by whom the trust file lets publish it.
	Authenticity Verdict `json:"authenticity"`
	// Completeness: no event of the job is missing as of the head, and no text that was
	// not erased by order.
	Completeness Verdict `json:"completeness"`
	// Freshness: the head is young.
	Freshness Verdict `json:"freshness"`

	Job      string `json:"job"`
	Origin   string `json:"origin"`
	Size     int64  `json:"size"`      // leaves under the signed head
	Root     string `json:"root"`      // of the signed head, base64
	HeadTime string `json:"head_time"` // stream time of the last event under the head
	Events   int    `json:"events"`    // of the job

	Stamp *Stamped `json:"stamp,omitempty"` // of the head

	FirstBadLeaf *int64  `json:"first_bad_leaf,omitempty"`
	Withheld     []int64 `json:"withheld,omitempty"` // leaves whose headers or payload are not in the bundle
	// Words of people that the job's events name.
	Texts         int     `json:"texts,omitzero"`           // that are in the bundle
	Erased        []int64 `json:"erased,omitempty"`         // leaves whose text was erased by an order that is in the bundle
	WithheldTexts []int64 `json:"withheld_texts,omitempty"` // leaves whose text is missing without one
}

// OK says whether every verdict is.
func (r *Report) OK() bool {
	return r.Integrity.OK && r.Authenticity.OK && r.Completeness.OK && r.Freshness.OK
}

// ExitCode is 0 when every verdict is ok, 3 when only freshness is not known, else 1.
func (r *Report) ExitCode() int {
	return ExitCode(r.Integrity, r.Authenticity, r.Completeness, r.Freshness)
}

// ExitCode is 0 when every verdict is ok, 3 when only freshness is not known, else 1.
func ExitCode(integrity, authenticity, completeness, freshness Verdict) int {
	switch {
	case !integrity.OK || !authenticity.OK || !completeness.OK:
		return 1
	case freshness.OK:
		return 0
	case strings.HasPrefix(freshness.Reason, UnknownFreshness):
		return 3
	}
	return 1
}

// Reasons collects the grounds of a verdict and keeps the text bounded.
type Reasons struct {
	list []string
	more bool
}

const maxReasons = 10

// Add notes one ground against.
func (r *Reasons) Add(text string) {
	if len(r.list) == maxReasons {
		r.more = true
		return
	}
	r.list = append(r.list, text)
}

// Verdict is ok, with the text given, when nothing was added.
func (r *Reasons) Verdict(good string) Verdict {
	if len(r.list) == 0 {
		return Verdict{OK: true, Reason: good}
	}
	text := strings.Join(r.list, "; ")
	if r.more {
		text += "; and more"
	}
	return Verdict{Reason: text}
}
