package auditor

import (
	"context"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
)

// Stream is the part of the bus that the auditor reads.
type Stream interface {
	Follow(ctx context.Context, from uint64, filter string, handle func(events.Stored) error) error
	Read(ctx context.Context, from uint64, filter string, limit int) ([]events.Stored, error)
	Last(ctx context.Context, filter string) (events.Stored, bool, error)
	LastSeq(ctx context.Context) (uint64, error)
	StreamState(ctx context.Context) (bus.State, error)
	Notify(f func(connected bool)) (stop func())
}

// Appender appends the auditor's own events.
type Appender interface {
	Append(ctx context.Context, s events.Subject, expect uint64, payload any) (uint64, error)
}

// View is the key-value view of jobs.
type View interface {
	Put(ctx context.Context, job string, value []byte) error
	Delete(ctx context.Context, job string) error
}

// everything is the filter of the whole stream.
const everything = events.PrefixStored + ".>"
