// Package front is the command line: the one place that knows every role.
//
// # What it guarantees
//
//   - Data goes to standard output, talk to standard error with the prefix
//     "banksman:". With --json every reading verb prints one object, and an error
//     is one object on standard error.
//   - Exit codes are part of the contract, see exit.go; under run a failure of
//     banksman itself is 125, so that it is never taken for the command's own.
//   - No verb asks anything without a terminal.
//
// # Who owns what
//
// The package keeps no state. Each verb opens what it needs and closes it.
//
// # What can go wrong
//
// Every error says what was tried, on what, why it failed, and what to do.
package front
