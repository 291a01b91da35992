package bus

import (
	"errors"
	"fmt"

	"github.com/banksman/banksman/services/internal/grants"
)

// Errors to branch on.
var (
	// ErrOutage is returned when the caller's patience ended before the bus
	// answered. Whether an append was stored is then settled by the same
	// [Appender] before its next append.
	ErrOutage = errors.New("the bus did not answer in time")
	// ErrNoStream is returned when the bus hosts no audited stream any more.
	ErrNoStream = errors.New("the stream " + grants.Stream + " does not exist; somebody has deleted it, restore a backup")
	// ErrFull is returned when the stream has reached its max_bytes.
	ErrFull = errors.New("the stream is full; raise max_bytes of the bus or close the epoch")
	// ErrNoResponder is returned when nobody serves a query.
	ErrNoResponder = errors.New("nobody answers this query; is the role that serves it running?")
	// ErrClosed is returned after [Conn.Close].
	ErrClosed = errors.New("the connection to the bus is closed")
	// ErrDuplicate is returned when the server claims to have the message
	// already by a message id, although this package sends none.
	ErrDuplicate = errors.New("the server dropped the event as a duplicate message id")
)

// Conflict says that somebody else has written about the same thing first.
// Read it again, fold, and decide anew.
type Conflict struct {
	Filter string
	Expect uint64
	Last   uint64 // 0 when the server did not say
}

func (e *Conflict) Error() string {
	if e.Last == 0 {
		return fmt.Sprintf("append under %s: sequence %d is no longer the last; read again", e.Filter, e.Expect)
	}
	return fmt.Sprintf("append under %s: expected last sequence %d, it is %d; read again", e.Filter, e.Expect, e.Last)
}

// Denied says that the permissions of the bus do not let this actor use a
// subject.
type Denied struct {
	Actor   string
	Subject string
	Reason  string // what the server said
}

func (e *Denied) Error() string {
	return fmt.Sprintf("actor %s may not use %s on the bus: %s; check its roles and pools with `banksman actor ls`",
		e.Actor, e.Subject, e.Reason)
}

// LoginRefused says that the bus does not know the actor's log-in key.
type LoginRefused struct {
	Actor string
	Key   string
	Cause error
}

func (e *LoginRefused) Error() string {
	return fmt.Sprintf("log in to the bus as %s with key %s: %v; the trust file in force must list this key",
		e.Actor, e.Key, e.Cause)
}

// Unwrap returns the client's error.
func (e *LoginRefused) Unwrap() error { return e.Cause }

// Refused is any other answer by which the server declines to store or return
// something.
type Refused struct {
	Subject string
	Status  int // HTTP-like
	Code    int // JetStream's own
	Reason  string
}

func (e *Refused) Error() string {
	return fmt.Sprintf("the bus refused %s: %s (code %d)", e.Subject, e.Reason, e.Code)
}

// RemoteError is the answer of a service that could not do what was asked.
type RemoteError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *RemoteError) Error() string { return e.Message + " (" + e.Code + ")" }

// Reasons why one attempt ended without an answer; never returned to callers.
var (
	errUnsent       = errors.New("not sent")
	errSilent       = errors.New("no answer")
	errCut          = errors.New("connection lost")
	errNoResponders = errors.New("no responders")
)

// outage reports what could not be finished before ctx ended.
func outage(what string, cause error) error {
	return fmt.Errorf("%s: %w: %w", what, ErrOutage, cause)
}
