// Package lifecycle is the life of a job as a pure fold: one table of
// transitions, and [Apply], which takes a job and the next event and returns
// the job after it.
//
// # What it guarantees
//
//   - The table in table.go is the whole truth: a move that is not a row does
//     not exist, and the diagram of the README is drawn from the rows.
//   - Apply has no clock. Time is the stream's time of the event at hand, so an
//     approval that comes too late fails for every reader alike, whether or not
//     anybody published that it had expired.
//   - An event counts at the position that its writer signed and nowhere else,
//     so one that is held back, moved or stored twice changes nothing.
//   - A refused event changes nothing but, where it breaks a rule that no honest
//     writer can break by being slow, the mark Tainted. A tainted job never
//     starts again.
//   - The fold is the fence: an attempt's later events count only while the
//     attempt is the job's last one and its claim has not lapsed.
//
// # Who owns what
//
// Callers own the job value; Apply never changes the one it was given. Only
// events whose signature and role the caller has checked may be applied; for
// one that fails there is [Taint].
//
// # What can go wrong
//
// Events may come in any order from a hostile store. Apply answers with a
// [*Refusal] that names the state, the kind and a stable code; it never panics.
package lifecycle
