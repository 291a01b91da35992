// Package jobs turns the stored events of a job into the job, believing only
// what the trust file allows.
//
// # What it guarantees
//
// Every reader that decides something — gate, worker, person, auditor — folds
// with this package, so they cannot disagree: a forged event taints the job, a
// refused one changes nothing, one of a newer version makes the job unreadable.
//
// # Who owns what
//
// It keeps no state. The stream owns the events, the caller the result.
package jobs
