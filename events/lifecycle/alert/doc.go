// Package alert is the life of an alert as a pure fold: an episode is raised,
// updated as it gets worse or better, acknowledged, and cleared; then the next
// one may begin under the same id.
//
// # What it guarantees
//
//   - The table in table.go is the whole truth; a move that is not a row does not
//     exist. An id has one open episode at most, however many monitors watch and
//     however often they start again.
//   - Apply has no clock and does no I/O. What it says follows from the events
//     alone.
//   - An event counts at the position that its writer signed and nowhere else,
//     and only for the episode that it names.
//   - An acknowledged alert that becomes more severe is open again: what was
//     acknowledged was something less.
//
// # Who owns what
//
// Callers own the values; Apply never changes the one it was given. Only events
// whose signature and role the caller has checked may be applied; the place of
// one that fails is passed over with [Alert.Skip].
//
// # What can go wrong
//
// Events may come in any order from a hostile store. Apply answers with a
// [*Refusal] that names the state, the kind and a stable code; it never panics.
package alert
