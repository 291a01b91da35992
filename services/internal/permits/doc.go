// Package permits judges whether a yes in advance covers a job.
//
// # What it guarantees
//
// The gate, before it uses a grant, and the worker, before it starts what was
// approved by one, judge with this package and from the stream, so neither has
// to believe the other. A grant's scope is read as a rule of the policy that
// allows, with all that such a rule guards against: a program that a job could
// rewrite, an option that nobody listed, another folder. A scope whose arguments
// could carry any code covers nothing.
//
// # Who owns what
//
// A [Keeper] owns the grants that it has folded; it is safe for concurrent use.
//
// # What can go wrong
//
// When the bus does not answer there is no answer, and the caller must not use a
// grant. A grant may be revoked between its use and the start: the worker looks
// again, and the job does not start.
package permits
