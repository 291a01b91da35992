// Package supervisor is the role that keeps agents running in rounds, each in
// its project, and that ends them when it is told to.
//
// # What it guarantees
//
//   - A project has one supervisor: the session whose loop.claimed was accepted
//     last. A round begins only under that claim and when its own start is the
//     first event about its id, so two supervisors never begin the same round. On
//     one machine a lock on the work folder keeps a second one out whatever the
//     log says.
//   - A round ends with its whole process tree, at its time limit, on an order to
//     kill, when the claim is lost and when the supervisor stops. If the
//     supervisor is killed, the tree is ended with it; its next start sweeps what
//     is left, says that the round was interrupted and goes on.
//   - After every round whose agent ran, changes that no commit holds are kept in
//     a private ref; see package salvage. Git runs behind the same cover as the
//     agent, because an agent may have configured it.
//   - A stop order is answered: seen, then drained or killed, then confirmed once
//     nothing of the project runs. The project stays stopped until the order is
//     lifted, across restarts, because the order is read from the log.
//   - What counts (turns, halts, stops) is folded from events. Only what ran at
//     the moment of death is on disk, in one file of the round.
//   - The agent gets a proposer token that is good for its round only.
//
// # Who owns what
//
// The stream owns projects. The supervisor owns the agents' process trees
// (through package proc), round files and logs below state/supervisor/<actor>/,
// and the tokens of running rounds. decide.go is pure: it is given the project
// and what is known here, and returns what to do next.
//
// # What can go wrong
//
// The bus may be away: a running round goes on and its end waits on disk; nothing
// new begins. A project whose folder, prompt or program is missing waits and says
// why. A claim of a supervisor on another machine is taken over only after its
// lease of silence; if both see the same folder over a network, the two agents
// may overlap until the old one has heard of it.
package supervisor
