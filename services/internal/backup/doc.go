// Package backup puts a site into one file and makes a site from one again.
//
// # What it guarantees
//
//   - A backup is consistent while the site runs: it holds the audit logs up to one signed
//     head, which is written down before anything is read. The audited stream is not in it,
//     because the log holds every event of it, byte for byte.
//   - The file appears whole or not at all, is readable by its owner alone, lies in a folder
//     that nobody else may read, and replaces nothing.
//   - Every file in it has a digest in the manifest, and what has none is refused.
//   - A restored site cannot pass for one that never was restored: the first event of its
//     stream after the backup opens an epoch, says "restored" and names the head of the
//     backup. What the old site did afterwards is missing, and who kept a later head sees
//     how much.
//
// # What is in it
//
// The site's own files, keys among them; the audit log of every epoch; the output of jobs
// and the words of people as the bus holds them. Not in it: sockets, the index, what
// workers and monitor keep for the next restart. Attempts that ran when the backup was made
// end as lost.
//
// # Who owns what
//
// The operator owns the file. It holds keys: whoever reads it can act as the site's
// services. Words of people that are erased later stay in it.
//
// # What can go wrong
//
// The old site must not go on beside the restored one: two sites with the same keys write
// two histories, and every witness tells.
package backup
