package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// The family "ask" is what persons say about a job beside deciding it. Its
// events lie outside the job's own subjects, so that nobody can hold a job up by
// talking about it. Their id is the job's; that of a bar is [Content], that of a
// waiver the digest of the refused proposal.
var askKinds = []Def{
	define[AskCancelRequested]("ask.cancel_requested", 1, "a person, or the proposer for whoever proposed the job, had asked to call it off"),
	define[AskRevokeRequested]("ask.revoke_requested", 1, "a person had asked to take the approvals of a job back before it starts"),
	define[AskCommented]("ask.commented", 1, "a person had written something about a job for the others"),
	define[AskBarred]("ask.barred", 1, "a person had denied a job and asked that the same command of the same proposer be denied at once from there on"),
	define[AskUnbarred]("ask.unbarred", 1, "a person had lifted such a bar, so that the command may be asked for again"),
	define[AskWaived]("ask.waived", 1, "a person had said that what looked like a secret in a refused proposal is none, so that exactly this proposal may be made once"),
}

// AskCancelRequested asks for the end of a job. A job that does not run is
// cancelled by the gate, one that runs by its worker.
type AskCancelRequested struct {
	// Proposer is on whose behalf the proposer asks; it counts only for the
	// jobs of that one. Empty for a person.
	Proposer Proposer `json:"proposer,omitzero"`
	// Reason is why, for people.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}

// AskRevokeRequested asks that an approved job be never started.
type AskRevokeRequested struct {
	// Reason is why, for people.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}

// AskCommented is a remark.
type AskCommented struct {
	// Text is what was written.
	Text string `json:"text"`

	Extra Extra `json:",embed"`
}

// AskBarred makes a denial stick. The subject's id is the content's digest.
type AskBarred struct {
	// Job is the job that was denied.
	Job string `json:"job"`
	// Denied is the digest of that job's proposal.
	Denied string `json:"denied"`
	// Reason is the reason of the denial; it reaches the agent again.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}

// AskUnbarred lifts a bar.
type AskUnbarred struct {
	// Barred is the sequence of the bar.
	Barred uint64 `json:"barred"`
	// Reason is why, for people.
	Reason string `json:"reason,omitempty"`

	Extra Extra `json:",embed"`
}

// AskWaived lets one proposal pass that was refused because a part of it looked
// like a secret. The subject's id is the digest that the proposal has without
// [JobProposed.Waived].
type AskWaived struct {
	// Refused is the sequence of the refusal on record.
	Refused uint64 `json:"refused"`
	// Proposer is who may make the proposal.
	Proposer Proposer `json:"proposer"`
	// Reason is why it is no secret, for the record.
	Reason string `json:"reason"`
	// ValidS is for how many seconds of stream time it counts.
	ValidS int `json:"valid_s"`

	Extra Extra `json:",embed"`
}

// Content is what makes two proposals the same request: who asks, for which
// arguments, in which folder. It is a hexadecimal SHA-256, which fits a subject
// as an id. Labels, reasons, limits and keys do not make another request.
func Content(proposer Proposer, argv []string, cwd string) string {
	h := sha256.New()
	for _, part := range append([]string{proposer.Kind, proposer.ID, cwd}, argv...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ParseProposer reads what [Proposer.String] wrote.
func ParseProposer(text string) (Proposer, bool) {
	kind, id, ok := strings.Cut(text, ":")
	return Proposer{Kind: kind, ID: id}, ok && kind != "" && id != ""
}
