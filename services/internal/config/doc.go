// Package config reads and writes the one TOML file of a site, a table per
// role.
//
// # What it guarantees
//
//   - Nothing is ignored: an unknown table or key is refused with its line and the
//     nearest known name. All unknown names and wrong types are reported at once,
//     and when there are none, one useless value of every table.
//   - The struct is the manual. Meaning, unit and range stand in a field's doc
//     tag; [Render] writes them as comments above each key, with the default, so
//     the file that init writes and the reference in the README cannot drift.
//   - A role reads its own tables only. Tables of other roles are skipped, but
//     their names must be known.
//
// # What can go wrong
//
// A value may be well-formed and still useless; each section's Validate says
// so, naming the key.
package config
