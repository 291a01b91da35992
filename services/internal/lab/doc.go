// Package lab is the harness of tests that use banksman as its users do: the
// built binaries, real processes, real folders. A story is told with a [Site],
// its roles as processes of a [Fleet], and jobs that work in a [Yard]; whether it
// ended well is decided from outside, by what the stream says ([Observer]) and by
// what the jobs left behind.
//
// # What it guarantees
//
//   - Every process that a test starts is ended when the test ends, and a failed
//     test shows what it printed.
//   - Nothing waits for a clock: a step waits for a process to end, for status to
//     say ready or for the stream to say something, and fails with what was seen
//     when the test's patience is over.
//   - The checker believes nobody: it reads the stored events with the reader's
//     own key, verifies every signature against the pinned root, folds every job
//     anew, and compares that with a file to which each execution appended a line
//     while it held its job's lock.
//
// # Who owns what
//
// A Site owns its folder and processes; a Yard its folder; an Observer its
// connection. The test owns all three.
//
// # What can go wrong
//
// Jobs that outlive a test belong to stewards, which end them within the grace.
// A Yard finds them by the variable that its jobs carry.
package lab
