// Package host is the composition root: it turns a folder and a list of roles
// into a running process.
//
// # What it guarantees
//
//   - Every role gets the same environment: its own connection, its own signing
//     session, the trust and policy in force, a logger with its name.
//   - Roles are peers in one run group: the first that ends ends the process, a
//     signal drains them all, and [Run] returns after the last one has returned.
//   - What peers depend on, the embedded bus among it, is opened before and closed
//     after them.
//   - A process says what it runs and whether it is ready on a socket below
//     run/status, and only one process at a time runs a role of a folder.
//   - A service manager that listens (sd_notify) is told when every role is ready,
//     what the board says, that the process is alive, and that it drains.
//
// # Who owns what
//
// host owns connections, the lock and the board of readiness. Roles own what
// they start and return after it has ended.
//
// # What can go wrong
//
// A role whose bus is away stays up and says why it is not ready; connections
// are retried for ever. A configuration fault ends the process before anything
// was started.
package host
