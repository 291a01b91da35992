// Package index keeps the jobs of a site on disk, folded, so that a question
// about them costs what its answer is long, whatever number of jobs ended
// before.
//
// # What it guarantees
//
//   - It is derived: everything in it can be made again from the audit log, and
//     [Open] starts from nothing rather than trust what may be damaged.
//   - One [Batch] is one transaction, and the position in the log that it leads to
//     is stored in the same transaction. The index is never ahead of what it says.
//   - The inbox, the jobs that are ready and the newest jobs are range scans over
//     keys that hold open jobs apart from ended ones.
//   - Each stored value carries a checksum. A value that does not match is
//     [ErrDamaged], never a wrong answer.
//
// # How it stays fast without lying
//
// Commits are not synced. A process that is killed loses nothing by that, since
// the kernel holds the written pages; a power cut may lose any of them. A file
// beside the database therefore names the boot of the machine during which it was
// written. Open believes the database if that boot still lasts, or if [Index.Close]
// has synced it, and begins anew otherwise.
//
// # Who owns what
//
// One Index owns its file, with a lock that the kernel drops when the process
// dies. One goroutine applies batches; any number may ask.
//
// # What can go wrong
//
// After [ErrDamaged] the caller calls [Index.Reset] and feeds the log again. A full
// disk fails Apply and leaves the position where it was.
package index
