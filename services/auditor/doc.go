// Package auditor folds every event of a site into a log that outsiders can
// verify, says how far that log is signed, and answers questions about jobs.
//
// # What it guarantees
//
//   - Every stored message becomes one entry, in order, believable or not. Two
//     auditors of the same stream hold the same entries and the same root.
//   - A head is shown only after its entries are durable and read back. What was
//     approved is sealed as soon as nothing more waits to be read, so that a worker,
//     which waits for the seal, waits milliseconds. A head that nobody waits for is sealed
//     as soon, and said on the stream a moment later, together with what follows.
//   - Only other roles' events, and gaps, cause a seal. The auditor's own words are
//     sealed with the next of those, so it never talks to itself.
//   - A message that breaks a rule is reported once, as audit.violation_found, whatever
//     is killed and started again in between. Projects and grants are held to their
//     folds as jobs are. A bad event closes nothing.
//   - Sequences that the stream does not hold any more become a gap in the log. The
//     stream's state and settings are looked at after every seal, and all of it is
//     compared with the log, byte for byte, after every start, after every outage and
//     once a day, so that a loss which the server does not count is found, too. A gap, a
//     loss and a weak setting are stated as audit.fault_found or audit.gap_found, close
//     dispatch, and stay open until an admin names them in a gap.acknowledged. The log
//     goes on meanwhile: it holds what the stream has lost.
//   - When the stream is not the one that was sealed, because it went back, was written
//     anew or was made anew, the auditor stops sealing, closes dispatch, says why, and
//     heals nothing; no admin's word does.
//   - Dispatch counts as open only after the stream was looked at on this connection.
//   - Words of people that an admin has ordered to be erased are deleted from the bus once
//     the order is under a signed head, and never before.
//   - Queries are answered from sealed events only, at a cost that does not grow with
//     the jobs that ended.
//
// # Epochs
//
// An epoch ends when enough jobs have ended in it, when the stream has grown, or when an
// admin asks. The auditor then publishes epoch.opened, which lists what is in force as of
// a head that it names. Whoever reads that event ends the log before it and begins another
// one, at the same place: the first leaf names the last head of the log that ended, and
// behind it lie the events that are carried, as they lay there. It all is a function of
// the stored events, so every auditor makes the same logs, and one that was killed half-way
// makes the rest. The log counts from the moment on when its head is written. It is
// complete by itself: trust files and open jobs lie in it from their beginning, so that a
// bundle needs one log, and a verifier of the newest log can judge every signature.
//
// Sequences, positions, sessions, ids of jobs and idempotency keys go on over epochs. The
// design spoke of streams that begin at 1 and of open jobs that are wrapped into new events;
// then everybody who follows, folds or verifies would have had to learn to unwrap them, and
// every position that a signature names would have changed its meaning. So the stream keeps
// its numbers, and an epoch is only where a log begins and what the bus may let go of. What
// the stream has to hold is: its first event, what is carried, and everything after the
// epoch began; the auditor counts what may be missing, and compares what is there.
//
// No attempt has to end for that, and dispatch stays open. Nothing is closed while a fault
// waits for an admin.
//
// [Verify] checks a log with nothing but the root's public key and gives four
// verdicts that do not imply each other: integrity, authenticity, completeness and
// freshness. A forged event fails authenticity also after the auditor has reported
// it, because it is in the log for ever; the reason says whether it was reported.
//
// It also holds the auditor to its own word: each head that was published on the
// stream, or that somebody kept ([Options.Anchor]), must be a head of this log, and
// witnesses are asked what they have seen of it, and heads that a time-stamping
// authority has stamped must be heads of this log. [Drill] attacks a log made for it and
// shows which layer finds what; [DrillCopy] attacks copies of a real one. [Rebuild] makes
// log and index again from the stream, and compares.
//
// # The head outside
//
// The newest head that may be signed lies in the bucket bm_heads of the bus, one value per
// log, in an account into which nobody logs in and only the auditor reaches; and, as a
// second memory, in a file. No head is signed before the bucket has swapped it for the one
// before, by its revision, so that of two auditors one goes on. The bucket moves first and
// the file follows. What the two say tells what happened:
//
//   - the bucket is ahead of the file: a crash between the two if the log leads to the
//     bucket's head; else log and file were put back together, and are refused as rollback;
//   - the file is ahead: the store of the bus went back in time, also refused as rollback;
//   - both are as long and differ: refused as damaged_log;
//   - the bucket holds nothing of a log that has a file: refused as lost_head. A bus that
//     was made anew on purpose gets the file's head after [Relock], which a restore orders
//     by itself and an administrator with 'banksman audit relock'. A head that is in the
//     bucket is never overwritten that way.
//
// The second memory costs nothing that a site had not paid before, and without the bucket
// folder and file can go back together, so both are kept by default; [auditor] head =
// "file" leaves the bucket out. A seal with it takes one fsync of the bus more, four
// instead of three, one exchange over the connection and 0.25 ms of processor time on
// top of 0.7. A log that was put back is made good by moving its folder away and making it
// again with 'banksman audit rebuild --replace': the bucket's head is what it must lead to.
//
// The bucket is where the bus is. It is worth as much as the two are kept apart: roles
// under users of their own, or a nats-server on another host, for which
// deploy/nats/banksman.conf has the account. One host whose whole disk goes back in time
// is seen by a witness alone.
//
// # Who owns what
//
// The auditor owns the log folders, its lock file, the values of the bucket of heads and
// the job index, which is derived from the log and made again when in doubt. The stream
// owns the events.
//
// # What can go wrong
//
// The bus, or its bucket of heads, may be away: nothing is sealed, and the board says so.
// When an answer of the bucket is lost, what the bucket then holds decides: a value names
// the run of the auditor that wrote it. A disk that fails
// under the log ends the role; what is on disk is then read again at the next start.
// A witness may be away: the log goes on, its head is cosigned later, and a verifier
// that asks for a quorum says so. The checkpoint key may be missing from the trust file in force: nothing is signed
// with it then. Where the file lists two keys of this auditor, because one follows the
// other, heads carry a signature of each.
package auditor
