// Package grants is the one table of what each role may do on the bus, and the
// server configuration that follows from it.
//
// # What it guarantees
//
//   - Publish rights are derived from events.Rights; nothing here can widen
//     them. [Table] adds what is not an event: which queues a role pulls from,
//     what it reads, hears, asks and answers.
//   - The heads that the auditor may sign lie in an account of their own, HEADS, into
//     which nobody can log in: the auditor reads and swaps them, and CORE, whose
//     administrator may do everything else, can only make the bucket when there is none.
//   - Every role has a NATS account of its own. JetStream lives in CORE, and a
//     role account imports exactly the services that its line of the table
//     names. A right to publish does not bind the reply subject, so inside one
//     account a role could have the server store an answer under another
//     role's subject; across accounts the reply is rewritten and that fails.
//   - A user may publish under its own actor token only, a worker only within
//     its pools, and may subscribe to its own inbox, _IB.<actor>.>, plus what
//     the table says.
//   - The text is a pure function of the trust file and the list of pools, so
//     the embedded server and a stand-alone one enforce the same thing.
//
// The table is about who may try. Whether an event counts is decided by its
// signature and by the fold; this package is the first wall of two.
//
// # Readers and consumers
//
// `nats stream view` creates a consumer, and a consumer's body can name a
// deliver subject, which would let a reader send stored bytes to subjects of
// the CORE account; it could also reconfigure the queues of the roles. No
// permission can look into a body. Readers therefore import the desk
// ([DeskPrefix]), a service of the bus that creates harmless pull consumers
// only, in place of the server's own call.
//
// # What can go wrong
//
// Actors of one account are not walled off from each other: an answer may be
// sent to any subject of the own account, so a worker can make another worker
// hear a heartbeat or a live copy that is none. Neither is proof of anything:
// heartbeats only delay a lapse, and events are read from the stream. Give
// workers that distrust each other sites of their own.
//
// An actor whose roles belong to different accounts cannot be expressed: a
// log-in key has one account. [Config] refuses such a trust file, as it
// refuses names that are no subject tokens and keys that are no NATS user keys.
package grants
