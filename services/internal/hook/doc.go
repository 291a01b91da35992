// Package hook decides what an agent's program is told before it uses a tool,
// and writes the entry into that program's settings that makes it ask.
//
// # What it guarantees
//
//   - It is pure: bytes and a job's state in, an answer out. Who reads standard
//     input, asks the proposer and ends with the blocking status is the caller.
//   - A tool that runs commands never passes unseen: a shell command becomes a
//     proposal and, once allowed, the command that follows its job, so that a
//     worker runs what was approved and nothing runs twice. Tools that run code
//     in a way that cannot be handed to a worker are denied.
//   - The one shell command that passes without a proposal is exactly the one
//     that follows a job, letter for letter; anything added makes it a proposal.
//   - What cannot be read is an error, and the caller blocks on every error.
//   - Settings of others are kept: names, order, values. Installing twice changes
//     nothing, and uninstalling removes what was installed.
//
// # Who owns what
//
// The settings file belongs to the person; this package owns one entry in it.
//
// # What can go wrong
//
// A hook guards an agent that keeps to its program. One that edits its settings
// or the start-up files of its shell gets around the hook, and then still finds
// neither keys nor tokens of a person: who approves is decided elsewhere.
// A program that times a hook out, or cannot start it, may run the tool; the
// entry therefore ends in "|| exit 2", names the blocking failure mode, and the
// hook ends itself before its time is over.
package hook
