// Package witness lets somebody else remember the heads of a log (C2SP tlog-witness,
// tlog-cosignature and tlog-policy).
//
// # What it guarantees
//
//   - A [Server] cosigns a head only after it has checked that the head grew out of
//     the one that it cosigned before, and after it has made the new one durable. It
//     never cosigns two histories of one log, whatever the log's key signs.
//   - It keeps the whole signed checkpoint, not only the root, so that two of them can
//     accuse a log. A checkpoint that a known key signed and that does not fit is kept
//     beside it.
//   - [Client.Cosign] returns only lines that verify by the key it was given.
//   - A [Policy] says how many cosignatures are enough, and [Policy.Judge] as of when.
//
// # Who owns what
//
// A Server owns its folder: one checkpoint for each origin. The auditor owns the
// checkpoint of its log and adds cosignatures to it.
//
// # What can go wrong
//
// A witness that is away or refuses cosigns nothing; the log goes on, and verifiers
// that ask for a quorum see an old one. A witness that loses its folder must be given
// a new key: the old key's cosignatures would no longer mean anything.
package witness
