// Package tsa asks time-stamping authorities to witness when a text existed (RFC 3161),
// and checks what they answer.
//
// # What it guarantees
//
//   - [Parse] returns a stamp only if the token in the answer is whole: its signature is by
//     the certificate that the token names and carries, over the attributes that hold the
//     digest of the stamp's content, and that certificate may be used for stamping alone.
//   - [Stamp.Answers] compares the stamped digest and the nonce with the request, so that an
//     old answer cannot stand for a new one.
//   - [Stamp.Trusted] leads the certificate to roots that the caller names, at the time of
//     the stamp. Without such roots a stamp proves nothing about who made it.
//   - A stored stamp is what "openssl ts -verify" takes: the stamped bytes and the answer
//     lie side by side as they were.
//
// # Who owns what
//
// A [Shelf] is a folder with three files for each stamped head; whoever stamps writes
// them, each once. The authority's certificates belong to whoever verifies.
//
// # What can go wrong
//
// Only DER is read, and signatures with RSA, ECDSA and Ed25519 over SHA-2. Revocation of the
// authority's certificate is not looked up: the verifier is offline. Whoever can write the
// shelf can remove stamps, which nothing shows but a copy elsewhere.
package tsa
