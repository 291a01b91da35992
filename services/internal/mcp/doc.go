// Package mcp lets an agent reach the proposer's door by the Model Context
// Protocol: propose a command, wait a bounded time for the decision, look at own
// jobs and cancel them, and ask what policy would say.
//
// # What it guarantees
//
//   - Every tool is a question to the proposer's socket with the token of one
//     agent. No tool approves, denies or changes policy, and none could: nothing
//     behind that door decides.
//   - No call lasts longer than a client waits for it. A job that is still
//     undecided is an ordinary answer that says how to ask again.
//   - A refusal is a tool error whose text is the error object with its stable
//     code, never an error of the protocol, so that the model can read it.
//   - Arguments are read strictly: an unknown member, a wrong type or a repeated
//     name is refused before anything is proposed. Output in an answer is bounded.
//   - Over HTTP it listens on loopback only, and each request carries the token.
//
// # Who owns what
//
// A [Server] owns its sessions. Jobs live in the stream; when the server ends,
// they go on.
//
// # What can go wrong
//
// The proposer may be away: each tool then says so with the code proposer_away,
// and the server goes on, because the agent's program does not start it again.
package mcp
