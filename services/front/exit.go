package front

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/person"
)

// Exit codes of every verb. Run exits with the command's own status where it
// ran.
const (
	ExitOK       = 0
	ExitError    = 1
	ExitUsage    = 2
	ExitUnknown  = 3   // freshness of the log is not known
	ExitPending  = 75  // pending, or try later
	ExitDenied   = 77  // by policy or a person
	ExitConfig   = 78  // the configuration is bad
	ExitTimeout  = 124 // the command ran out of time
	ExitBanksman = 125 // banksman itself failed, under run
)

// exit ends the process with a code. Err may be nil when everything was said.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage is an error in how a verb was called.
func usage(next, format string, args ...any) error {
	return &exit{code: ExitUsage, err: &agentapi.Error{Code: "usage", Message: fmt.Sprintf(format, args...), Next: next}}
}

// codeOf is the exit code of an error.
func codeOf(err error) int {
	var e *exit
	var c *config.Error
	var p *policy.ParseError
	var a *agentapi.Error
	var refusal *person.Refusal
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &c), errors.As(err, &p), errors.Is(err, host.ErrNoSite):
		return ExitConfig
	case errors.As(err, &refusal) && refusal.Code == person.CodeUnresolved:
		return ExitPending
	case errors.Is(err, bus.ErrOutage), errors.Is(err, context.DeadlineExceeded):
		return ExitPending
	case errors.As(err, &a) && (a.Code == "stream_full" || a.Code == "rate_limited" || a.Code == "too_many_open"):
		return ExitPending
	case errors.Is(err, keys.ErrNoTerminal), errors.Is(err, keys.ErrNeedsPassphrase):
		return ExitUsage
	}
	return ExitError
}

// object turns any error into the object that --json prints.
func object(err error) *agentapi.Error {
	var a *agentapi.Error
	var refusal *person.Refusal
	var remote *bus.RemoteError
	var held *host.Held
	next := func(code, next string) *agentapi.Error {
		return &agentapi.Error{Code: code, Message: err.Error(), Next: next}
	}
	var c *config.Error
	var p *policy.ParseError
	switch {
	case errors.As(err, &a):
		return a
	case errors.As(err, &refusal):
		return next(refusal.Code, refusal.Next)
	case errors.As(err, &remote):
		return &agentapi.Error{Code: remote.Code, Message: remote.Message}
	case errors.As(err, &held):
		return next("in_use", "")
	case errors.As(err, &c):
		return next("bad_config", "mend the file; 'banksman config check' reads it again")
	case errors.As(err, &p):
		return next("bad_policy", "mend the policy; 'banksman policy check' reads it again")
	case errors.Is(err, host.ErrNoSite):
		return next("no_site", "")
	case errors.Is(err, jobs.ErrUnknown):
		return next("unknown_job", "list jobs with 'banksman ls'")
	case errors.Is(err, site.ErrExists):
		return next("exists", "choose another --dir; nothing was overwritten")
	case errors.Is(err, keys.ErrNoTerminal):
		return next("no_terminal", "give --passphrase-file FILE or --no-passphrase")
	case errors.Is(err, keys.ErrWrongPassphrase):
		return next("wrong_passphrase", "")
	case errors.Is(err, bus.ErrOutage), errors.Is(err, context.DeadlineExceeded):
		return next("bus_away", "start it with 'banksman up', or look at 'banksman status'")
	}
	return next("failed", "")
}

// report says what went wrong, on standard error.
func report(w io.Writer, asJSON bool, err error) {
	var e *exit
	if err == nil || errors.As(err, &e) && e.err == nil {
		return
	}
	o := object(err)
	if asJSON {
		text, _ := json.Marshal(agentapi.Envelope{Error: o})
		fmt.Fprintf(w, "%s\n", text)
		return
	}
	fmt.Fprintf(w, "banksman: %s\n", o.Message)
	if o.Next != "" {
		fmt.Fprintf(w, "banksman: %s\n", o.Next)
	}
}
