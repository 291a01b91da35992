// Package proposer is the door for agents: it takes commands from whoever
// holds a token, checks their form, and stores them as proposals.
//
// # What it guarantees
//
//   - A proposal is an argument vector. Nothing is ever joined, split or expanded.
//   - What could deceive a reader or break a list is refused before it is stored:
//     NUL and other control characters, invalid UTF-8, bidirectional overrides,
//     over-long input, arguments that look like secrets. The refusal names the
//     place, never the content. What looks like a secret and is none passes on the
//     word of a person for exactly this proposal, and makes one job.
//   - The token says on whose behalf: an agent, or a person. Only a token that
//     names a person makes that person the proposer, so whoever typed the command
//     may still approve what an agent's token proposed.
//   - The same idempotency key with the same content is the same job, also for
//     callers at the same moment; other content is a conflict.
//   - Each token, and all together, are bounded in rate and in undecided requests;
//     who has too many is told when to try again. The bound on open requests is
//     counted from the index and may be passed by what is stored within a second.
//   - A refusal is on record by digest and ground, never by content: the first
//     few of a ground in a minute one by one, the others as a sum. A proposer that
//     is killed loses the sums of the last minute.
//   - A caller may call off own jobs; the request names the proposer, and counts
//     for the jobs of that one only.
//   - A caller sees own jobs only. Nothing behind this door decides.
//
// A key names the same job for ever: where an epoch has begun, the auditor is asked whether
// an epoch before knows it, and without its answer nothing is proposed under a key.
//
// # Who owns what
//
// The proposer owns its socket and nothing else: jobs live in the stream.
//
// # What can go wrong
//
// The bus may be away: proposals are refused with a code and may be repeated
// with the same key. The stream may be nearly full: proposals are refused while
// what was begun still ends.
package proposer
