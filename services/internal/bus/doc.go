// Package bus is the client side of the bus, and the only package that talks
// to NATS.
//
// # What it guarantees
//
//   - [Appender.Append] stores an event at most once and knows whether it did.
//     When an answer is lost it sends the same bytes again; the expected
//     sequence makes the server refuse the second copy, and the refusal is
//     then resolved by reading. Events of one appender are numbered without
//     holes.
//   - [Conn.Follow] hands over every stored event once and in order, across
//     reconnects and server restarts, and needs no state on the server.
//   - [Conn.Consume] takes from a queue for ever. Deliveries are hints: they
//     may be repeated, and only the log is true.
//   - A subject that the permissions of the bus do not allow is reported at
//     once as [*Denied], not as a timeout.
//   - Nothing is buffered while the connection is away: what was not sent is
//     not sent later behind the caller's back.
//
// # Who owns the state
//
// The server owns everything stored. A [Conn] owns its connection, an
// [Appender] the number of its last event. A connection is one actor's.
//
// # What can go wrong
//
// The bus may be away for long. Every call takes a context and waits as long
// as that allows, then returns [ErrOutage]. The log-in key may be revoked: the
// server drops the connection, and the client goes on knocking, because the
// key may come back with the next trust file; [Conn.Connected] is false until
// then.
//
// Stored bytes may be anything; this package hands them over as they are and
// leaves reading to events.Open. Of headers it removes only those that the
// server adds.
package bus
