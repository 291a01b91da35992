package jobs

import (
	"errors"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/trust"
)

// Finding is what one event of a job did wrong.
type Finding struct {
	Seq    uint64
	Code   string
	Detail string
	Taints bool
}

// Apply opens a stored event of a job and folds it. The finding is nil for one
// that is in order or that this version cannot read.
func Apply(j lifecycle.Job, book *trust.Book, st events.Stored) (lifecycle.Job, *Finding) {
	e, err := book.Open(st)
	return ApplyOpened(j, e, st.Seq, err)
}

// ApplyOpened folds an event that book.Open returned together with err.
func ApplyOpened(j lifecycle.Job, e events.Event, seq uint64, err error) (lifecycle.Job, *Finding) {
	var unknown *events.UnknownKind
	if errors.As(err, &unknown) {
		j.Unreadable, j.LastSeq, j.UpdatedAt = true, max(j.LastSeq, seq), e.Time
		return j, nil
	}
	var v *trust.Violation
	if errors.As(err, &v) {
		return lifecycle.Taint(j, seq, v.Code), &Finding{Seq: seq, Code: v.Code, Detail: v.Detail, Taints: true}
	}
	if err != nil {
		return lifecycle.Taint(j, seq, trust.CodeMalformed), &Finding{Seq: seq, Code: trust.CodeMalformed, Detail: err.Error(), Taints: true}
	}
	j, err = lifecycle.Apply(j, e)
	var r *lifecycle.Refusal
	if errors.As(err, &r) {
		return j, &Finding{Seq: seq, Code: r.Code, Detail: r.Error(), Taints: r.Taints}
	}
	return j, nil
}

// Fold folds a job's whole history.
func Fold(book *trust.Book, history []events.Stored) (lifecycle.Job, []Finding) {
	var j lifecycle.Job
	var found []Finding
	for _, st := range history {
		var f *Finding
		if j, f = Apply(j, book, st); f != nil {
			found = append(found, *f)
		}
	}
	return j, found
}

// ErrUnknown is a job that the stream does not hold.
var ErrUnknown = errors.New("no such job")
