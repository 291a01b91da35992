// Package trust decides whether a stored event may be believed.
//
// # What it guarantees
//
//   - Nothing but the root's public key is taken on faith. Trust files are events
//     signed by it, and each event is judged by the file in force at its own
//     sequence: a key revoked today does not unmake what it signed yesterday.
//   - An actor that changes its key has two for a while, and both count. A key that a
//     trust file took away is a [CodeRetiredKey] from there on, not merely a wrong one.
//   - [Book.Open] answers in one step: readable, signed by the key that the trust
//     file gives to the actor of the subject, by an actor whose roles may publish
//     the kind, in a pool that is the actor's. Everything else is a [*Violation]
//     with a stable code.
//
// # Who owns what
//
// A Book owns the trust files it was shown. It is fed by its reader, in order of
// sequence, and is safe for concurrent use.
//
// # What can go wrong
//
// A Book that lags behind the stream judges by an old file. Readers therefore
// feed every trust.published they see before they judge what follows it.
//
// A newer banksman may publish a trust file that this one cannot interpret. What
// follows it cannot be judged here, and is unreadable rather than believed by the
// file before.
package trust
