// Package proc runs one program and ends everything that came out of it.
//
// # Guarantees
//
//   - A [Process.Wait] returns when the direct child has exited and no descendant of it is left. A pipe that closes, or
//     one that a forgotten background process keeps open, neither ends nor delays it.
//   - Whatever way the owner of a [Process] dies, kill -9 included, the tree is ended. A steward process stands between the
//     owner and the program; the owner holds the other end of its socket, and the kernel closes that end for it.
//   - A tree with a [Spec.Until] is gone by then unless its owner has put that off meanwhile ([Process.Extend]). The steward
//     counts, so that an owner that is stopped, starved or cut off cannot keep its tree alive beyond what it was granted.
//   - A descendant cannot leave: the steward is a kernel child subreaper, so that double forks, setsid, nohup and daemons
//     come back to it as children. Where the job's control group is writable its member list is used as well, and a unique
//     value in the environment ([MarkerVariable]) finds what somebody else started on the job's behalf.
//   - A program whose digest is named runs with these bytes or not at all. A binary is opened, hashed and executed by the
//     same descriptor, then looked at once more while the kernel still holds it before its first instruction. A script can
//     only be executed by path, so it is checked immediately before and after, and [Outcome] says which of both it was.
//   - The child gets stdin, stdout, stderr and no other descriptor; the environment it is given and no other variable but
//     the marker; default signal dispositions; no controlling terminal; no way to gain privileges.
//   - Limits, nice value, user and reach are in force before the program's first instruction.
//   - Processor time is summed over every process that the tree has left behind, waited for by its parent or not; a process
//     whose parent ignores SIGCHLD is counted by nobody.
//   - Memory does not grow with the output: bytes go to the caller's writers as they come.
//
// # Who owns what
//
// The caller owns writers and readers. [Process] owns the caller's ends of the pipes and the socket, and every goroutine it
// starts has ended when Wait returns (a Stdin whose Read blocks for ever is the one exception; hand over an *os.File
// instead). The steward owns the tree: time limit, grace and the end of the tree are its business, so they hold even when
// the owner is stopped. A [Crew] owns stewards that wait for their next program.
//
// Every main function and every TestMain calls [StewardMain] first, because the steward is the same binary started again.
//
// # What can go wrong
//
// [Start] fails with a [*StartError] and a code to branch on. The job may kill its steward, as both have one uid: the owner
// notices at once, sweeps by control group and marker, and Wait returns the outcome with [ErrStewardLost]. A process that
// the kernel cannot end (uninterruptible sleep) or that runs under another uid is named in Outcome.Survivors.
//
// # Hidden folders
//
// With [Spec.Hide] the steward lives in a user and mount namespace of its own, where an empty read-only file system covers
// each folder, and the program lives in a second pair below that. The kernel locks mounts that were made in a more privileged
// namespace, so neither root inside the job nor a namespace that the job makes for itself can take the covers off. Uid and
// gid stay what they are. Being in another user namespace also denies the job ptrace, /proc/PID/mem, /proc/PID/environ and
// /proc/PID/root of every process outside, the roles of this product among them. Without Hide that protection is the
// roles' own matter (PR_SET_DUMPABLE). Where the owner is root the job can still open block devices as root: the cover
// protects from a job under an ordinary uid and from mistakes, not from root.
//
// # Reach
//
// With [Spec.Reach] the kernel's Landlock keeps the program to a part of the file system. Its rules bind a thread for ever,
// and what that thread starts, so that the steward starts such a program on a thread that ends afterwards; the steward
// itself, which has to open programs, look over /proc and send signals, is bound by nothing. Where folders are hidden as
// well, there is no second pair of namespaces: a thread behind a wall may not name the ids of a new one. What the second
// pair takes from the program is taken by Landlock, which forbids mounting and tracing in any namespace, and by giving up the
// capabilities for both. A kernel without Landlock, or with one that cannot keep files from being emptied, is refused.
//
// # Known visible differences
//
// A binary that is executed by descriptor shows the descriptor's number as its short command name (/proc/PID/comm);
// argv and /proc/PID/exe are what they always are.
package proc
