package alerts

import (
	"context"
	"errors"
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/alert"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/trust"
)

// Bus is the part of the bus that is asked.
type Bus interface {
	Read(ctx context.Context, from uint64, filter string, limit int) ([]events.Stored, error)
}

const pageEvents = 256

// Read folds an alert by its id. One that the stream does not know is the zero
// alert. The book must be current.
func Read(ctx context.Context, bus Bus, book *trust.Book, id string) (alert.Alert, error) {
	var a alert.Alert
	for next := uint64(1); ; {
		page, err := bus.Read(ctx, next, events.Filter("alert", id), pageEvents)
		if err != nil {
			return a, fmt.Errorf("read alert %s: %w", id, err)
		}
		if len(page) == 0 {
			return a, nil
		}
		for _, st := range page {
			e, err := book.Open(st)
			a, _ = Apply(a, e, err)
			next = st.Seq + 1
		}
	}
}

// Apply folds an event that the trust book has opened with an error or
// without; the error returned says why it changed nothing.
func Apply(a alert.Alert, e events.Event, opened error) (alert.Alert, error) {
	var unknown *events.UnknownKind
	if errors.As(opened, &unknown) {
		a.Unreadable = true
	}
	if opened != nil {
		return a.Skip(e.Subject, e.Seq), opened
	}
	return alert.Apply(a, e)
}

// ErrNotOpen is an alert that nobody can acknowledge.
var ErrNotOpen = errors.New("no such alert is open; 'banksman alert ls' lists those that are")

// Acknowledge makes a person's word that they know of an open alert, to be
// appended behind the alert's last event.
func Acknowledge(a alert.Alert, reason string) (*events.AlertAcknowledged, error) {
	switch {
	case !a.Open():
		return nil, fmt.Errorf("acknowledge alert %q: %w", a.ID, ErrNotOpen)
	case a.Status == alert.Acknowledged:
		return nil, fmt.Errorf("acknowledge alert %s: %s has done so already", a.ID, a.AckBy)
	}
	return &events.AlertAcknowledged{Raised: a.RaisedSeq, Reason: reason}, nil
}

// View shows an alert.
func View(a alert.Alert) query.AlertView {
	v := query.AlertView{
		Alert: a.ID, Detector: a.Raise.Detector, About: a.Raise.About, Severity: a.Severity, State: string(a.Status), Summary: a.Summary,
		Raised: a.RaisedSeq, RaisedAt: a.RaisedAt, UpdatedAt: a.UpdatedAt, Episodes: a.Episodes, AckBy: a.AckBy,
	}
	if a.Scope != events.SiteScope {
		v.Project = a.Scope
	}
	if a.Status == alert.Cleared {
		v.ClearedAt, v.Reason = a.ClearedAt, a.Reason
	}
	return v
}
