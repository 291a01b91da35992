// Package standing answers what is in force on a site at this moment: the
// trust file, the policy, and a job as its believable events make it.
//
// # What it guarantees
//
// Each answer is read from the stream when it is asked for, never from a copy
// that may lag: a revoked key or a stricter policy binds the very next
// decision. What is unchanged since the last question is neither sent nor parsed
// again: one question, about job and trust file or policy and trust file together, asks
// for what is newer. A job that was folded before is folded on from there only where
// each newer event names the one before it, and read whole again otherwise, as after
// every new trust file and wherever the stream ends before what was seen of it.
//
// # Who owns what
//
// A Standing owns its trust book, its parsed policy and the few hundred jobs that it
// was asked for last. It is safe for
// concurrent use.
//
// # What can go wrong
//
// When the bus does not answer there is no answer, and the caller must not
// decide. A policy event that cannot be believed or parsed, or that is an old one
// stored once more, is an error too: it never falls back to an older policy. A
// trust file that root did not sign changes nothing; one of root's that this
// version cannot read, or before which one is missing, ends every answer until a
// reader is started that can.
package standing
