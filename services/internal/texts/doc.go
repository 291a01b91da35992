// Package texts keeps the words of people beside the stream and puts them back where
// they are shown: events hold references, see [events.Text].
//
// # What it guarantees
//
//   - A text is stored before the event that names it, so that a reference never waits
//     for its text.
//   - Whoever reads meets the text that the event's author has named, or a word in
//     parentheses: "(erased)" where an admin has ordered it, "(withheld)" where the text
//     is missing without such an order, "(altered)" where something else is stored.
//   - A reference is replaced only where people's words stand. The same characters in an
//     argument of a command stay as they are.
//
// # Who owns what
//
// The stream BANKSMAN_BLOBS owns the texts. The auditor deletes them, once the order is
// under a signed head.
//
// # What can go wrong
//
// The event may be refused after its text was stored. The text then stays without
// anybody naming it. The store may be full: a proposal with a
// reason and a comment are refused then; a no, a cancellation and a revocation are said
// without their words.
package texts
