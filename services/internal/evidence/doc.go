// Package evidence takes one job out of the log into a folder that a stranger can
// check alone: offline, without the log, with the site's name and the root's public
// key and nothing else.
//
// # What it guarantees
//
//   - Every file of a bundle is under a proof: an entry is included in the tree of the
//     signed head, headers and payload have the digests of their entry, and a file that
//     nothing covers makes [Verify] fail. There is no list of checksums to keep in step.
//   - The list of events is complete as of the head: each names the one before, the
//     first names none, and every entry after the last one is in the bundle, chained
//     from it to the end of the tree. None of those belongs to the job.
//   - Where the log has a state after the job's last event, the newest of them says so,
//     too: its directory names that event as the job's newest. An auditor that leaves an
//     event out of a bundle has to have lied in its log, where anyone finds it.
//   - Each signature is checked against the trust file in force at its leaf. A signature
//     covers digests only, so it is checked also where a payload is withheld.
//   - Words of people are there, erased by a signed order that is there, or reported as
//     withheld; other words in their place are found.
//   - [Verify] changes nothing, follows no link, and answers in the verdicts of a whole
//     log: integrity, authenticity, completeness, freshness.
//
// # The folder
//
//	job               the job's id and a line feed
//	checkpoint        the signed head (C2SP tlog-checkpoint), cosignatures included
//	checkpoint.tsr    a time stamp of the file checkpoint (RFC 3161), where one was made
//	N.entry           leaf N: an event of the job, a trust file that judges it, or the
//	                  order by which a text that the job names was erased
//	N.headers         its stored headers, as the digest in the entry covers them
//	N.payload         its stored payload; may be taken away, and is then withheld
//	N.tlog-proof      its inclusion in the tree (C2SP tlog-proof)
//	DIGEST.text       words of people that an event names: 16 random bytes, then the text
//	N.directory       what state N, the newest after the job's last event, says of the
//	                  job: its line, the line's number, and hashes up to the state's root
//	later.entries     every entry after the job's last event, one after the other
//
// scripts/verify.sh checks the same with sha256sum and openssl, except what it says at
// its top.
//
// # Who owns what
//
// The log owns what is true; a bundle is a copy that its maker hands over.
//
// # What can go wrong
//
// Who makes a bundle may leave out a trust file that lies between two of the job's
// events: the files that are there must be numbered without a hole, and those after
// the job's last event cannot be left out, but one that is newer than the newest in
// the bundle and older than the job's last event can. Who fears that asks for the
// whole log. The part after a job's last event grows with the log; export soon.
package evidence
