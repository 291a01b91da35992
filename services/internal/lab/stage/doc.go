// Package stage is a site on a real bus in this process, with real keys, on
// which a test plays every role but the one that it is about.
//
// # What it guarantees
//
//   - Everything that is stored was signed by its actor and went through the bus
//     with that actor's own log-in and rights.
//   - Waiting is for an event of the stream; a test fails with what it saw when
//     its patience is over.
//   - What a Stage opened is closed when the test ends.
//
// # Who owns what
//
// A Stage owns its folder, its server and the connections that it hands out.
package stage
