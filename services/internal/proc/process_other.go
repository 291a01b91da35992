//go:build !linux

package proc

import (
	"context"
	"time"
)

// A Crew runs nothing on this platform.
type Crew struct{}

// A Process does not exist on this platform.
type Process struct{}

func unsupported(path string) error {
	return &StartError{Code: CodeUnsupported, Path: path, Detail: "programs are run on Linux alone; start the worker or supervisor there"}
}

// StewardMain does nothing on this platform.
func StewardMain() {}

// Start refuses.
func Start(_ context.Context, spec Spec) (*Process, error) { return nil, unsupported(spec.Path) }

// Start refuses.
func (*Crew) Start(_ context.Context, spec Spec) (*Process, error) {
	return nil, unsupported(spec.Path)
}

// Close does nothing.
func (*Crew) Close() {}

// Namespaces says that folders cannot be hidden here.
func Namespaces(string) error { return unsupported("") }

// Landlock says that no program can be kept to a reach here.
func Landlock() (int, error) { return 0, unsupported("") }

// SweepMarker refuses.
func SweepMarker(string) ([]int, error) { return nil, unsupported("") }

// Wait refuses.
func (*Process) Wait() (Outcome, error) { return Outcome{ExitCode: -1}, unsupported("") }

// Cancel does nothing.
func (*Process) Cancel(string) {}

// Extend does nothing.
func (*Process) Extend(Moment) {}

// Boottime is the zero moment.
func Boottime() Moment { return 0 }

// Done returns a closed channel.
func (*Process) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// PID is 0.
func (*Process) PID() int { return 0 }

// Marker is empty.
func (*Process) Marker() string { return "" }

// Bound is empty.
func (*Process) Bound() string { return "" }

// StartedAt is the zero time.
func (*Process) StartedAt() time.Time { return time.Time{} }
