// Package tlog keeps a tamper-evident log of an ordered stream of records in one
// folder on disk, so that an outsider can later check, offline and with the public
// key alone, that nothing was edited, removed, inserted or reordered.
//
// # What it guarantees
//
//   - An entry is a pure function of the records before it and the record itself:
//     no clock, no randomness, no batch boundary enters it. Two logs fed from the
//     same stream hold the same entries.log, byte for byte, and the same root.
//   - A head is signed only after the entries it covers are durable, were read back
//     from the file and hashed from those bytes, and the lock moved to that head.
//     The tree is built from nothing but bytes that were read back.
//   - What lies under the signed head is never cut and never rewritten. A folder
//     that holds less than its lock says is refused ([ErrRollback]), one that holds
//     something else is refused ([ErrFork], [ErrCorrupt]).
//   - Beyond the signed head a crash may leave a torn record. Open cuts it; feeding
//     the same records again leads to the same root.
//   - [Verify] believes no stored hash: it recomputes everything from entry bytes and
//     from the stored headers and payloads.
//
// A log may go on where another one ended ([Continue]): its first leaf names the other's
// last head, and the records that are carried over follow it, with holes between their
// sequences and links of their own. After them every sequence is there again.
//
// At fixed leaf counts ([StateAt]) stands a state: the root of a tree over one line per
// job, which says where its newest event lies ([Directory]). It is written right before
// the event that would have had its number, depends on the entries before it alone, and
// Verify makes the root again. A job's line, its newest event and the links from there
// prove that a list of its events is complete as of that leaf, without the leaves
// between. A log that lacks a state where one is due is refused.
//
// It knows nothing about brokers, event kinds or signatures of actors; the visitor
// of Verify is the place for those. It cannot see that an unsealed tail was cut off
// cleanly: whoever acts on a record seals it first. It cannot see that the folder and
// its lock went back in time together: that takes a lock or a witness elsewhere.
//
// # The folder
//
//	entries.log  truth: uint16 length (big endian) and entry, repeated; any 256 of
//	             them, aligned, are an entry bundle of C2SP tlog-tiles
//	raw.log      truth: per event the stored headers and payload ([AppendFrame])
//	head.lock    the head that may be signed next is compared with this one: origin,
//	             size and root, unsigned, in one of two slots that are written in turn,
//	             so that a torn write leaves the head before. It may live elsewhere,
//	             see [Lock]
//	checkpoint   the signed head, a C2SP tlog-checkpoint
//	hashes       derived: the stored hashes of golang.org/x/mod/sumdb/tlog
//	offsets      derived: per leaf the end of its entry and of its frame
//	jobs         derived: hash table from job to the leaf of its newest event
//
// Entries follow the grammar at [Entry]. A leaf of the RFC 6962 tree is one entry, and
// each entry also names the SHA-256 of the one before, so that the file can be walked
// with sha256sum and the first bad entry has a number. The payload is not in the leaf,
// only its digest is: it can be erased later while every proof stays valid.
//
// Words of people are not even in the payload, which holds a digest of theirs. The order
// to erase such words is an event like any other, and its entry serves as the entry about
// the erasure: its subject ends in the digest, so the entry alone, without a payload, says
// what was erased, by whom and when. No entry of a kind of its own is needed, and two
// auditors cannot disagree about one.
//
// # Who owns what
//
// One [Log] writes a folder; it holds an exclusive flock on entries.log, which the
// kernel drops when the process dies. Any number of [Reader] values and Verify runs
// may look at the same time. The derived files are synced only now and then and are
// replayed from the truth from the last sync on; if one is damaged, Open makes it
// again from the entries, provided that these agree with the lock.
//
// # What can go wrong
//
// After a failed write, sync or lock swap a Log answers every further call with that
// error: what reached the disk is unknown, and only reading it again, by [Open], tells.
// If the lock moved but the checkpoint was not written, or a power cut took it, Open signs
// the same head again, byte for byte: the checkpoint alone is not synced with each seal.
// A second writer on another copy of the folder loses the lock swap ([ErrLockMoved]).
package tlog
