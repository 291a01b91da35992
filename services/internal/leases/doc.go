// Package leases tells which running attempts have been silent for longer than
// they were granted.
//
// # Guarantees
//
// Silence is counted on the listener's own monotonic clock, from when a heartbeat
// was heard: no host's wall clock takes part, neither the worker's nor the
// listener's, so that one that is wrong or steps lapses nothing and saves nothing.
// It counts only while the listener itself was connected without a break and
// knew of the attempt; what it could not have heard is no silence. An attempt is
// overdue after its lease and a third more, which is later than its worker, which
// counts from when it spoke, has ended a job that may be run again.
//
// # Who owns what
//
// An [Ear] belongs to whoever lets attempts lapse: each worker for its pool, and
// the gate for pools without a worker. It decides nothing; a lapse counts when the
// fold accepts it.
//
// # What can go wrong
//
// Heartbeats are not stored and prove nothing. Who can forge one can keep an
// attempt from lapsing; nobody can make one lapse that way.
package leases
