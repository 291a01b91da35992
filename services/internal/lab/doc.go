// Package lab is the harness of tests that use banksman as its users do: the
// built binary, real processes, real folders.
//
// # What it guarantees
//
//   - Every process that a test starts is ended when the test ends, and a failed
//     test shows what it printed.
//   - Nothing waits for a clock: a step waits for a process to end or for status
//     to say ready, and fails with what was seen when the test's patience is over.
//
// # Who owns what
//
// A Site owns its folder and processes; the test owns the Site.
package lab
