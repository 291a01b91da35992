// Package bench measures the built programs from outside, as make bench.
//
// # What it guarantees
//
//   - Each figure stands beside a floor that was measured in the same run on the
//     same disk and processors, and what counts is the ratio: a slow machine has a
//     slow floor.
//   - The table is for people; the same figures, one JSON object a line, are written to
//     bench.jsonl beside the programs.
//   - A goal that is missed is printed as missed and fails nothing. The run fails
//     only where something could not be measured.
//
// # Who owns what
//
// A run owns its sites, which lie below the temporary folder. Let TMPDIR name a
// folder on the disk that is to be measured; on a file system in memory an fsync
// costs nothing and its ratios mean nothing.
//
// # What can go wrong
//
// Other work on the machine slows figures and floors, but not always both by the
// same factor.
package bench
