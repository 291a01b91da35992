// Package shell says which commands a shell text would start.
//
// A rule speaks of argument vectors, but agents like to propose one string for
// a shell. [Read] turns such a text into its simple commands, wherever they hide:
// in lists, pipes, groups, loops, functions, substitutions, here-documents and
// arithmetic. [TextOf] finds the text in an argument vector (sh -c, eval, watch,
// ssh and their like). The package judges nothing and runs nothing.
//
// # Guarantees
//
//   - Whatever the shell would start by a name that is spelled out in the text is
//     among the Commands, with its quotes and escapes resolved: r”m, \rm and
//     $'\x72m' are all rm.
//   - Whatever the text leaves to the moment it runs is a [Doubt]: a command name
//     that is expanded, a file that is sourced, an assignment to PATH, a redirection
//     that writes, arithmetic, which can run commands out of variables. A text
//     without doubts starts its Commands and nothing else.
//   - A text that cannot be read as a whole (too long, too deep, not the grammar of
//     a shell) is in doubt, and its words are handed out in Rest, so that whoever
//     forbids a name can still find it there.
//   - The work grows with the length of the text. Length and depth are bounded before
//     the parser sees it, and one walk visits each node once. Read never panics.
//
// # What can go wrong
//
// The grammar is that of bash. Other shells differ in corners; for those whose
// grammar is another one (fish, zsh, csh) TextOf says so. Names are words: the
// package does not know which file the shell finds for one, and a function or an
// alias from a start-up file can hide behind any of them.
package shell
