// Package logbook remembers on disk what a role has under way, one file a record,
// so that its next life can say what became of it.
//
// # Guarantees
//
//   - A record is there whole or not at all; a new one replaces an older one in
//     one step.
//   - What [Book.Put] has written outlives the death of the process, and with sync
//     a power cut. After a power cut a record's first version may be missing where
//     nothing else was put: nothing of what it stood for is left to be ended by
//     then.
//   - [Book.Leftovers] returns every record that can be read. What cannot be read is
//     named and stays where it is.
//
// # Who owns what
//
// A folder belongs to one process at a time; a Book keeps no state of its own.
// Files beside the records, such as output that waits, are the caller's.
//
// # What can go wrong
//
// A full or read-only disk is an error of Put, and what was put before stays. A
// folder that somebody has tidied away is made again.
package logbook
