// Package approver is the gate: it applies the policy in force to what agents
// propose and signs what policy alone decides.
//
// # What it guarantees
//
//   - Deny by default. A proposal that no rule names is denied at once, with a
//     reason, also while no worker runs.
//   - It says yes only where a rule says allow for the proposal as given and as
//     resolved by a worker. Where a rule asks, it says that people are needed and
//     how many; their signatures are theirs, not the gate's.
//   - What persons have said in advance counts wherever policy alone would not
//     deny. A denial that sticks denies the same command of the same proposer at
//     once, with the same reason, until it is lifted. A grant stands for one
//     person where policy asks for one: its use is appended first, at the grant's
//     own position, and the approval names it. Nothing that is pending is
//     approved by a grant that came later.
//   - It ends what a person, or the proposer of a job, has asked to end, unless
//     the job runs: that is its worker's to end.
//   - A worker that falls silent for longer than its lease keeps no job, also where
//     its pool has no other worker that could say so.
//   - It decides from the stream alone. A killed gate loses nothing: what was not
//     acknowledged comes again, and a decision that was stored already is not made
//     twice, because each append names the sequence it was based on.
//
// # Who owns what
//
// The gate keeps no state of a job. The durable consumer "gate" remembers what
// it has seen; a proposal that no worker has resolved yet is put back there for
// the time that resolving may take.
//
// # What can go wrong
//
// The policy in force may be unreadable: the gate then decides nothing and says
// so on the board until it can be read again. A worker may report late: the job is listed as unresolved,
// and assessed again when the report comes.
package approver
