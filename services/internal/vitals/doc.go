// Package vitals measures the machine that a role runs on, and says how it
// stands.
//
// # What it guarantees
//
//   - A level rises at its bound and falls only a point below it, so a disk that
//     hovers at the bound does not fill the log.
//   - [Reporter] publishes host.observed when a level has changed, and five minutes
//     after the last time; so who reads the log knows after a few minutes that a
//     machine is not observed any more.
//   - A file system is measured once, however many of the paths lie on it.
//
// # Who owns what
//
// A [Gauge] owns the levels of its last reading, a Reporter its place in the
// log. The kernel owns the numbers.
//
// # What can go wrong
//
// A path may be gone; it is left out, and the error says which. Where the
// system does not tell about memory, its numbers are 0.
package vitals
