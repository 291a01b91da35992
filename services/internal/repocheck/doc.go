// Package repocheck tests the repository itself: which package may import which,
// what a role's binary contains, how source is documented, and that the README
// says what the program does.
//
// # What it guarantees
//
//   - Each rule is a line of one table with its reason, and breaks on a planted
//     example of what it forbids, so that a rule that has gone blind is noticed.
//   - An exception is named and carries its reason; one that excuses nothing any
//     more fails, so the lists only shrink.
//   - The generated regions of the README equal what the code says. With -update
//     the same test writes them, so generator and check are one program.
//
// # Who owns what
//
// The rules are here. The facts are where they always were: the package reads
// source, the Makefile, and what the built binary prints.
//
// # What can go wrong
//
// Imports are read from every file whatever its build constraints. What a binary
// links is asked of the go command, for Linux.
package repocheck
