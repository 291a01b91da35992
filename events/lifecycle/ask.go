package lifecycle

import (
	"time"

	"github.com/banksman/banksman/events"
)

// Request is what somebody entitled wants to become of a job.
type Request struct {
	Kind   events.Kind
	By     string // actor token of the person, or the proposer as "agent:claude"
	Reason string
	Seq    uint64
	At     time.Time
}

// Asked reads a request about a job. It returns false for an event that is
// none, and for one whose writer may not ask this: the proposer speaks for who
// has proposed the job and for nobody else. Only events whose signature and role
// the caller has checked may be shown.
func Asked(j Job, e events.Event) (Request, bool) {
	if e.Subject.ID != j.ID || j.Proposal == nil {
		return Request{}, false
	}
	r := Request{Kind: e.Kind, By: e.Subject.Actor, Seq: e.Seq, At: e.Time}
	switch p := e.Payload.(type) {
	case *events.AskCancelRequested:
		r.Reason = p.Reason
		if p.Proposer != (events.Proposer{}) {
			r.By = p.Proposer.String()
			return r, p.Proposer == j.Proposal.Proposer
		}
		return r, true
	case *events.AskRevokeRequested:
		r.Reason = p.Reason
		return r, true
	}
	return Request{}, false
}
