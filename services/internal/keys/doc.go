// Package keys keeps secret key material on disk and lends it out for use.
//
// Four kinds of keys exist, one purpose each, so that a signature made for one
// purpose can never be presented for another:
//
//   - [Signer] signs events (Ed25519, RFC 8032).
//   - [Login] answers the log-in challenge of a NATS server (a user nkey). The
//     server chooses the text that is signed, so this key signs nonces only:
//     [Login.SignNonce] refuses everything that has not the exact shape of one.
//   - [CheckpointKey] signs the auditor's checkpoints (C2SP signed-note).
//   - [CA] signs the certificate of the bus (ECDSA P-256, RFC 5280).
//
// Beside them stand bearer tokens ([NewToken]), of which configuration and logs
// hold only the [TokenDigest].
//
// # Guarantees
//
//   - A secret lies in a file of mode 0600. A folder made for it has mode 0700.
//   - A secret file appears whole or not at all, and is never overwritten: a
//     second writer gets [ErrExists], also when both write at the same moment.
//     Only [MoveSecret] exchanges one, at once, and then wipes the old one's bytes.
//   - A secret that others may read is not loaded ([ErrExposed]): it may have
//     been copied already, and going on would hide that. The check is made on
//     the opened file, so that the file cannot be exchanged in between.
//   - Nothing here prints a secret: formatting a key with any verb, logging it
//     or marshalling it shows its public half at most. Errors hold paths and
//     reasons, never file contents.
//   - A passphrase is asked for only when a file is encrypted, on the terminal
//     and without echo.
//
// # Formats
//
// All files are readable with public tools. A signing key is PKCS #8 in PEM;
// encrypted, it is the same text as an armored age file with a scrypt recipient,
// so that "age -d FILE" recovers it. A log-in key is a plain nkey seed, which the
// nats command line also takes. A checkpoint key is the one-line form of
// golang.org/x/mod/sumdb/note; while it is rotated, the file holds the new one's line
// and then the old one's. A CA file is a certificate followed by its
// private key, in one file because one file can be written atomically.
//
// # Who owns the state
//
// The files belong to the user who runs the process. The package keeps no state
// of its own and starts no goroutine; loaded keys are immutable and may be used
// concurrently.
//
// # What can go wrong
//
//   - The file system has no hard links (FAT, some network mounts). Writing then
//     fails and leaves nothing behind: without them "never overwrite" and
//     "atomic" cannot both be had. Write to another place and move the file.
//   - The process is killed between the two last steps of a write. The secret is
//     then complete, and a second name of it, starting with a dot, stays in the
//     same folder with mode 0600. It may be removed.
//   - The process is killed while it asks for a passphrase. The terminal then
//     stays without echo; "reset" brings it back.
//   - The file system copies on write, was snapshotted or backed up, or the drive keeps
//     old blocks: what [MoveSecret] and [DestroySecret] overwrite is then still there.
//   - Memory is not wiped. A debugger of the same user, or a core dump, can read
//     loaded keys; keeping such processes apart is the task of whoever starts
//     them.
//   - Access lists of darwin, which are independent of the mode bits, are not
//     looked at. POSIX access lists on Linux are.
package keys
