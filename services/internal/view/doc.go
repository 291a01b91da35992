// Package view is how a job looks to people and programs: one object, the same
// wherever it is shown.
//
// # What it guarantees
//
// propose, ls, inbox, show, the proposer's socket and the query service all
// write this shape. Members are only ever added.
//
// # What can go wrong
//
// Text in a job comes from agents. The JSON form escapes it; whoever prints it
// on a terminal uses [Printable].
package view
