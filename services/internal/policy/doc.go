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
// argument vector (env, sudo, nice, timeout, xargs, find -exec, busybox and their
// like) and into texts for a shell. Its args may have options of the program and their
// values between them, so that args = ["push"] fits git -C dir push. Where it
// cannot tell the options of a wrapper from the wrapped command it tries every
// word as the command, and where those are too many it denies as soon as one names the
// program, so the cost stays bounded. A deny rule is a rail, not a wall: an interpreter or an
// unknown wrapper can hide any command, and what stops those is that they are
// unlisted or asked about.
//
// # What a command starts
//
// A command that starts others is judged together with them: a text for a shell
// (sh -c, eval, trap, ssh, watch, a here-document or an echo into a shell), and what
// stands behind a wrapper. Every simple command in it is judged by the same rules, and
// the strictest answer counts:
//
//   - A denied command denies, wherever it hides.
//   - A command that asks makes the whole ask, with its quorum, its approvers and its
//     ceilings where they are stricter.
//   - A command that no rule lists leaves the whole at asking where the rule for the
//     shell asks, and denies it where that rule allows.
//   - Builtins that start nothing (echo, cd, test, exit, set -e ...) need no rule, and
//     inside a text neither do wrappers that change nothing but time, priority or
//     terminal (env, timeout, nice, nohup, time ...).
//   - What is only known when it runs makes an allowed command ask, with [CodeDynamic]:
//     expansions and wildcards among the arguments of anything but echo, a command name
//     that is expanded, sourced files, functions, arithmetic, redirections that write,
//     variables such as PATH, start-up files (bash -lc), another machine, another shell.
//
// So a rule program = ["sh", "bash"], args = ["-c"], decision = "allow" allows exactly
// those texts whose every command is allowed by itself: sh -c 'go test ./...' is then
// treated like go test ./... . The names in a text are found by the shell of the
// worker, and no digest pins what they stand for; a policy that needs that lets texts ask.
// What a variable sets for a command counts as an environment value of the proposal.
//
// # The keys of a rule
//
//   - program: bare names or absolute paths; resolved: what the real path has to be,
//     where it has another name (xzcat, which is /usr/bin/xz).
//   - args: patterns for the first arguments; exact: nothing follows them; flags: the
//     options that may follow.
//   - deny_args: what may stand nowhere among the arguments, in every spelling: "--force"
//     is also --forc and --force=x, "-f" is also -xf, "-rf" is also -r -f. In a rule that
//     denies they are what it denies; in another rule they deny with [CodeDeniedArg],
//     which no other rule can undo. deny_text does the same for a text inside any
//     argument, in any letter case.
//   - paths_under: folders below which every argument has to lie that may be a path,
//     the values of options and of a=b, @b and file:b included; "." is the working folder.
//   - roots, pools, proposers, env ("NAME" or "NAME=pattern"): where, for whom and with
//     what the rule applies.
//   - days_utc, hours_utc: when it applies. The moment comes with the request, and the
//     worker asks again at the start.
//   - quorum, approvers: how many persons, and which; confirm = "digest": each of them
//     names the digest of what would run, so that nobody says yes to a job unread.
//   - max_timeout_s, max_attempts: above them the proposal is denied. max_output_bytes is
//     handed to the worker with the decision.
//   - code_args, recursive_on, reason, instead, match, not_match: see the starter policy.
//
// # Shadow mode
//
// With mode = "shadow" at the top a new policy can be watched before it decides. What
// its deny rules deny stays denied, and so does what could never run. Everything else
// asks one person at least, with [CodeShadow]; [Decision].Shadow and the reason say what
// would have happened.
//
// # What can go wrong
//
// Paths are compared as text, component by component. The caller passes real
// paths in RealCwd and ResolvedPath, and the writer of a policy names real paths
// in roots and program; a symlink there never matches a permitting rule. A
// symlink among the operands is not followed at all, so paths_under does not hold a
// program that follows one which a job has made. A script that a command names is opaque
// unless code_args pins it.
package policy
