// Package worker is the role that runs what was decided, exactly as it was
// decided, and says what became of it.
//
// # What it guarantees
//
//   - Nothing is executed unless the job's own history, folded here and now with
//     verified signatures, says approved; the audit log is sealed through the
//     last approval; the policy in force still permits it; what would run has the
//     approved digests; and this worker's job.started was accepted by the fold.
//     The sequence of job.started is the attempt's fence.
//   - An attempt is on disk before its claim is published and leaves the disk
//     after its end is stored. So a worker that died says at its next start what
//     it can: the result, or that the attempt lapsed, after it has ended whatever
//     of the attempt was still alive.
//   - A result is never given up because the bus is away. It waits in the
//     attempt's file, and output waits in memory and then in a file beside it; the
//     child never waits for the bus.
//   - A process runs at most Slots jobs, and one job at most once at a time,
//     whichever way it learned of it. A free slot is taken at once; where several
//     jobs wait for one, the proposer that holds the fewest is served first.
//   - Another attempt is made only where the approval covers it and the rules of
//     the configuration name how the last one ended. Its due time is in the event
//     and on the stream's clock: neither a restart nor a machine whose clock is off
//     or steps shortens the pause.
//   - A proposal that a worker declines, or that somebody took who died, is looked
//     at by the others of the pool without waiting for the queue.
//   - A dry run goes the way of a job up to its start and stores and starts nothing.
//   - A drained worker takes nothing new and waits for its jobs however long they
//     take; a signal bounds that by drain_s. What it ends then is made again elsewhere
//     where the approval covers another attempt; a second signal cancels it.
//   - A worker that sees a peer's session silent for longer than the lease, while
//     it was itself connected the whole time, lets the peer's attempts lapse.
//
// # What it does not promise
//
// A start happens at most once for a claim; a job that is not marked retry-safe
// is therefore run at most once for an attempt. Nobody can promise that a command
// had its effect exactly once. A retry-safe attempt is ended when its heartbeats go
// unconfirmed, by its steward and on a clock that goes on through suspension, so
// also while this process is stopped or hangs: it is asked to end after two thirds
// of the lease and is gone after the whole, and peers wait for a third more. Yet a
// virtual machine that was paused as a whole may overlap with its successor for the
// moment in which it wakes, and a worker whose member of a cluster is cut off from
// the others may take that member's word for theirs; the log shows it and the late
// result is refused. A
// program that cannot be started within the lease is not started.
//
// # Who owns what
//
// The stream owns the job. The worker owns the process tree (through package
// proc), the attempt files below state/worker/<actor>, and its session's
// heartbeats. decide.go is pure: it is given a job and what was found, and returns
// what to say; everything else only fetches and carries out.
//
// # Replicas
//
// Workers of one actor are told apart by their sessions, on the bus and in the
// log. What one of them resolved, each of them may declare changed, so replicas
// must see the same files; workers that do not get an actor each. Two of them
// never share a banksman folder.
//
// # What can go wrong
//
// The bus may be away for hours: nothing new starts, what runs goes on, results
// wait. The seal may not come: the board says since when. Output beyond
// max_output_bytes of a stream loses its middle, and the result says how much. A
// program may change between the last check and its execution: then it is not
// executed and the attempt has failed with status 126. The disk of the attempts'
// folder may be full: nothing new starts and the board says so, what runs keeps its
// result and up to a mebibyte of its output in memory until the bus has them, and
// output beyond that is cut.
//
// # Confinement
//
// An attempt may get folders of its own (scratch), limits, another user where the
// worker is root's, and a container (exec_prefix). The container is no child of
// what starts it: it is stopped by the id in its cidfile after every attempt and,
// where the worker died, at its next start. One that cannot be stopped counts as a
// survivor. In a container the approved program is checked by its path alone.
package worker
