// Package loop is the life of a project as a pure fold: who runs its agent,
// what became of its newest round, and whether an order to stop is in force.
//
// # What it guarantees
//
//   - The table in table.go is the whole truth about the three machines of a
//     project, its loop, its newest round and its stop order; a move that is not
//     a row does not exist, and [Diagram] draws the rows.
//   - Apply has no clock and does no I/O. What it says follows from the events
//     alone, so a supervisor that starts again knows what the one before it knew:
//     who holds the project, how many rounds it has had, and that it is stopped.
//   - An event counts at the position that its writer signed and nowhere else.
//   - The claim is the fence. What a holder says of rounds and orders counts only
//     while it is the last claimant; a refused event changes nothing but the
//     position.
//   - A stop order stays in force until it is lifted, whatever else happens.
//
// # Who owns what
//
// Callers own the values; Apply never changes the one it was given. Only events
// whose signature and role the caller has checked may be applied; the place of
// one that fails is passed over with [Project.Skip].
//
// # What can go wrong
//
// Events may come in any order from a hostile store. Apply answers with a
// [*Refusal] that names the state, the kind and a stable code; it never panics.
// A reader that starts at a later round than the first knows the newest round
// only; numbers before it are taken as read.
package loop
