// Package events is the vocabulary of banksman: every fact that is ever
// stored, how it is named, encoded and signed, and who may say it.
//
// It imports the standard library only and has no clock, no I/O, no goroutine
// and no logger, so that whatever it decides can be decided again by anybody
// who holds the same bytes.
//
// # What it guarantees
//
//   - A fact is named in the past tense and states beside its catalogue line
//     exactly when it happens. Stored names are strings chosen once; they never
//     come from a Go identifier.
//   - A payload has one encoding: [Encode] is deterministic, and [Decode]
//     followed by [Encode] returns the same bytes for everything Encode wrote.
//     Members of a payload that this version does not know are kept, not
//     dropped; inside a nested object they are read past.
//   - The signature text ([SigningText]) binds the site, the subject, all
//     CloudEvents attributes, the position the writer expected and the payload,
//     so an event cannot be moved, replayed or re-dated.
//   - [MayPublish] is the only table of rights. The permissions of the bus, the
//     trust checks of every reader and the README are generated from it.
//
// # Who owns what
//
// The stream owns the facts; this package owns only their meaning. An optional
// member keeps a payload's version; whatever changes what a fold would do is a
// new version. Golden examples under testdata/golden are written once and must
// decode for ever; schemas/released.sum pins every member that has shipped.
// "go test ./events/... -update" writes what is generated and adds what is new.
//
// # What can go wrong
//
// A stored message may be anything at all: headers missing, a payload that is
// not JSON, a kind nobody knows. [Open] returns a typed error ([*Malformed] or
// [*UnknownKind]) and never panics; the reader decides what the job it belongs
// to becomes.
package events
