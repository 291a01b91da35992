// Package redact keeps secrets out of what is stored and shown: it replaces
// them in streams of output, and finds them in proposals.
//
// # What it guarantees
//
//   - A value that was given to New never leaves a Stream whole, however the
//     output is split into writes: neither as it is, nor in base64 (each of the
//     three ways it can lie in a longer text, both alphabets), nor escaped for a
//     URL or for JSON, nor wrapped over lines. Of a value of several lines each
//     line of 16 bytes and more is looked for by itself, of a JSON document each
//     text that is a secret by its name or by its look.
//   - Tokens that say by their form what they are, private keys, passwords in
//     URLs, credentials in headers and fields with telling names are replaced too,
//     after the known values. That is a net, not a wall: a secret that nobody
//     declared and that looks like nothing passes.
//   - What replaces a secret names the rule: "[redacted: github-token]".
//   - The result does not depend on how the output was split, except where Idle
//     was called.
//   - Memory is bounded by the longest form of the longest value, time by a
//     constant for each byte. When a text takes more than its share of looking
//     ahead, the rest of the stream is withheld and the stream says so. The share
//     is counted in bytes looked at and not in seconds: a machine that was
//     suspended for a night has not searched any longer.
//
// # How it finds them
//
// Two stages follow each other, known values first. A stage slides a window of a
// few bytes over the text and asks a small table whether anything begins so; only
// there a rule looks ahead, at most as far as its reach. Nothing is held back but
// what may be the beginning of something.
//
// # Who owns what
//
// Rules are immutable and may be shared; a Stream belongs to one writer. The
// sink of a stream is called on the writer's goroutine and must not keep the
// bytes.
//
// # What can go wrong
//
// A value shorter than 8 bytes or of fewer than four different bytes would shred
// every log and reveal itself by its absence; it is not looked for, and Weak names
// it so that somebody is told. A program that cuts a secret into pieces of its own
// making, as streamed JSON does with text, gets the pieces through; whoever puts
// such pieces together again must redact what comes out.
package redact
