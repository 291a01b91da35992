// Package grant is the life of a yes in advance as a pure fold: it is given,
// used a bounded number of times within a bounded time, and may be revoked.
//
// # What it guarantees
//
//   - The table in table.go is the whole truth; a move that is not a row does not
//     exist.
//   - Apply has no clock. A use that comes after the grant has run out, by the
//     stream's time, does not count, whoever says so.
//   - An event counts at the position that its writer signed and nowhere else, so
//     no two uses can take the same place and none counts twice.
//   - A job uses a grant at most once.
//
// # Who owns what
//
// Callers own the values; Apply never changes the one it was given. Only events
// whose signature and role the caller has checked may be applied; the place of
// one that fails is passed over with [Grant.Skip].
//
// # What can go wrong
//
// Events may come in any order from a hostile store. Apply answers with a
// [*Refusal]; it never panics.
package grant
