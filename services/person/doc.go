// Package person is what a human does: look at what waits, and sign a yes or a
// no with a key of one's own.
//
// # What it guarantees
//
//   - What is signed is what was read: the digests of proposal and resolution come
//     from the job that was folded a moment ago, and the append fails if anything
//     about it has moved since.
//   - The signing key is opened for one command only, and a passphrase is asked
//     for only after everything else was found in order. A key that the trust file
//     does not name signs nothing, since that would taint the job for good.
//   - A job that nobody could resolve, that has ended or that the same person
//     proposed is refused before signing, with a code.
//
// # Who owns what
//
// The person owns the key. A Desk owns its connection and nothing else.
//
// # What can go wrong
//
// Somebody else may decide first: the first decision wins, and the second
// person is told which it was. A decision that was stored too late by the
// stream's clock does not count, and the person is told that, too.
package person
