// Package policy decides from a policy text whether a proposed command may run.
//
// TOML text goes in, decisions come out. The package has no clock, starts no
// goroutine, opens no file and keeps no state besides the parsed text, so the
// approver, the worker and the dry run of a person reach the same decision from
// the same bytes. A [Policy] never changes after [Parse] and may be shared.
//
// # Guarantees
//
//   - Deny by default. What no rule lists is denied with [CodeUnlisted]; so is
//     everything under a nil or zero Policy.
//   - A matching deny rule wins wherever it stands in the file. Otherwise the
//     first matching rule in file order decides. Adding a deny rule therefore
//     never makes anything more permitted.
//   - A working folder inside the data folder is always denied, and a text that
//     names a root which contains, or lies in, the data folder is refused.
//   - What [Policy.Static] denies before the worker has looked, [Policy.Assess]
//     denies as well. Everything else that Static says is provisional.
//   - Parse refuses unknown keys, wrong types, contradictions and failing
//     examples, all in one [ParseError], so a typing error cannot widen a rule.
//
// # How a rule matches
//
// Rules that permit (allow, ask) and rules that forbid (deny) read the same words
// in opposite spirits, because a mistake costs differently on each side.
//
// A permitting rule is narrow. It must fit what was proposed and what the worker
// resolved. A bare program name fits only an argv[0] of exactly that base name,
// and never a relative path such as ./git; under allow an argv[0] with slashes
// has to lie directly in one of [SystemFolders]. The resolved real path must not
// lie inside the working folder or inside a root that any rule names, because the
// proposer can write there; under allow it must lie below one of [SystemTrees].
// The real path may have another base name (sh is often dash), since only the
// administrator of the machine places links in those folders. An absolute program
// fits that real path exactly, with an argv[0] of the same base name. The ask
// side drops the system folders, because a person is shown the real path; it
// never drops anything that allow does not, so an ask rule that stands above an
// allow rule for the same program cannot be slipped past.
//
// An allow rule takes no option (an argument that begins with "-") beyond those
// in its args and flags, since options add authority: find -delete, git
// --exec-path, sort -o. Operands stay free unless exact is set, so allow only
// programs whose operands are data. It takes no environment value besides those
// it lists in env, since PATH or LD_PRELOAD change what a name means.
//
// A deny rule is generous. It fits the base name of argv[0] or of the real path,
// in any letter case, and looks through the wrappers that are plain to see in the
// argument vector (env, sudo, nice, timeout, busybox and their like). Where it
// cannot tell the options of a wrapper from the wrapped command it tries every
// word as the command, and where those are too many it denies as soon as one names the
// program, so the cost stays bounded. A deny rule is a rail, not a wall: an interpreter or an
// unknown wrapper can hide any command, and what stops those is that they are
// unlisted or asked about.
//
// # What can go wrong
//
// Paths are compared as text, component by component. The caller passes real
// paths in RealCwd and ResolvedPath, and the writer of a policy names real paths
// in roots and program; a symlink there never matches a permitting rule. A
// symlink among the operands is not followed at all. Shell text ("sh -c ...") is
// one opaque argument here.
package policy
