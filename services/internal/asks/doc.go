// Package asks reads and makes what is said about a job outside its own
// subjects: requests to cancel or revoke it, comments, bars that make a denial
// stick, and waivers for what was refused as a secret and is none.
//
// # What it guarantees
//
// The gate and the worker read requests with this package, so they cannot
// disagree about who may ask what. An event that may not be believed is passed
// over. A bar counts until a person who is not the barred proposer lifts it.
//
// # Who owns what
//
// It keeps no state. The stream owns the events, the caller the result.
//
// # What can go wrong
//
// A request that somebody stores a second time is the same request: it ends a
// job that its writer wanted ended, and no other.
package asks
