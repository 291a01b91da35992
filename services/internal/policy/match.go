package policy

import (
	"fmt"
	"path"
	"strings"
)

// miss says why a rule does not match: the rank grows with how far the request came,
// so the nearest miss of a whole policy can be told to whoever proposed.
type miss struct {
	rank missRank
	text string
}

type missRank int

const (
	matched missRank = iota
	missProgram
	missScope
	missArgs
	missEnv
	missPlace
	missRoots
)

func missed(rank missRank, format string, args ...any) miss {
	return miss{rank: rank, text: fmt.Sprintf(format, args...)}
}

// code returns the decision code of a request whose nearest miss this is.
func (m miss) code() Code {
	switch m.rank {
	case missEnv:
		return CodeEnvironment
	case missPlace:
		return CodeProgramPlace
	case missRoots:
		return CodeOutsideRoots
	default:
		return CodeUnlisted
	}
}

// consider reports whether r matches q. What q does not know yet (no real path, no
// real folder) counts as matching in a permitting rule and as not matching in a
// denying one, which keeps Static provisional in both directions.
func (p *Policy) consider(r *rule, q Request) miss {
	if r.decision == Deny {
		return r.denies(q)
	}
	return p.permits(r, q)
}

// permits returns the nearest miss over the programs of the rule.
func (p *Policy) permits(r *rule, q Request) miss {
	nearest := missed(missProgram, "the program is not %s", r.named())
	for _, program := range r.programs {
		if path.Base(q.Argv[0]) != path.Base(program) {
			continue
		}
		m := p.permitsAs(r, program, q)
		if m.rank == matched {
			return m
		}
		if m.rank > nearest.rank {
			nearest = m
		}
	}
	return nearest
}

func (p *Policy) permitsAs(r *rule, program string, q Request) miss {
	if m := r.inScope(q); m.rank != matched {
		return m
	}
	if m := r.takesArgs(q.Argv[1:]); m.rank != matched {
		return m
	}
	if r.decision == Allow {
		for _, name := range q.EnvNames {
			if !contains(r.env, name) {
				return missed(missEnv, "the proposal sets environment values that are not in env")
			}
		}
	}
	if m := p.trustsPlace(r.decision, program, q); m.rank != matched {
		return m
	}
	if len(r.roots) > 0 && q.RealCwd != "" && !withinAny(q.RealCwd, r.roots) {
		return missed(missRoots, "the working folder lies outside the roots %s", strings.Join(r.roots, ", "))
	}
	return miss{}
}

func (r *rule) inScope(q Request) miss {
	if len(r.pools) > 0 && !contains(r.pools, q.Pool) {
		return missed(missScope, "the pool is not among %s", strings.Join(r.pools, ", "))
	}
	if len(r.proposers) > 0 && !contains(r.proposers, q.Proposer) {
		return missed(missScope, "the proposer is not among %s", strings.Join(r.proposers, ", "))
	}
	return miss{}
}

// takesArgs compares the arguments in the narrow sense.
func (r *rule) takesArgs(args []string) miss {
	if len(args) < len(r.args) {
		return missed(missArgs, "the arguments do not begin with those of the rule")
	}
	for i, pattern := range r.args {
		if !fits(pattern, args[i]) {
			return missed(missArgs, "the arguments do not begin with those of the rule")
		}
	}
	rest := args[len(r.args):]
	if r.exact && len(rest) > 0 {
		return missed(missArgs, "exact takes no argument beyond those of the rule")
	}
	if r.decision != Allow && r.flags == nil {
		return miss{}
	}
	for i, arg := range rest {
		if option(arg) && !fitsOne(r.flags, arg) {
			return missed(missArgs, "argument %d is an option that flags does not list", len(r.args)+i+1)
		}
	}
	return miss{}
}

func fitsOne(patterns []string, arg string) bool {
	for _, pattern := range patterns {
		if fits(pattern, arg) {
			return true
		}
	}
	return false
}

// trustsPlace compares where the program lies, as proposed and as resolved.
func (p *Policy) trustsPlace(decision Verdict, program string, q Request) miss {
	argv0, real, absolute := q.Argv[0], q.ResolvedPath, path.IsAbs(program)
	if absolute && real != "" && real != program {
		return missed(missPlace, "the program that would run is not %s", program)
	}
	if !absolute && strings.Contains(argv0, "/") {
		if !path.IsAbs(argv0) || path.Clean(argv0) != argv0 {
			return missed(missPlace, "a bare name does not stand for a relative path")
		}
		if decision == Allow && !contains(SystemFolders(), path.Dir(argv0)) {
			return missed(missPlace, "the program as proposed lies in no system folder")
		}
	}
	if real == "" || absolute && decision == Ask {
		return miss{}
	}
	if withinAny(real, p.roots) || ownedByJob(real, q.RealCwd) || ownedByJob(real, q.Cwd) {
		return missed(missPlace, "the program that would run lies where jobs can write")
	}
	if decision == Allow && !absolute && !withinAny(real, SystemTrees()) {
		return missed(missPlace, "the program that would run lies below no system tree")
	}
	return miss{}
}

// denies compares in the generous sense, for each command that argv plainly shows.
func (r *rule) denies(q Request) miss {
	if m := r.inScope(q); m.rank != matched {
		return m
	}
	if len(r.roots) > 0 && !withinAny(q.RealCwd, r.roots) && !withinAny(q.Cwd, r.roots) {
		return missed(missRoots, "the working folder lies outside the roots %s", strings.Join(r.roots, ", "))
	}
	nearest := missed(missProgram, "the program is not %s", r.named())
	for _, v := range views(q.Argv, []string{q.Cwd, q.RealCwd}) {
		if v.loose && r.namesAny(v.argv) {
			return miss{}
		}
		if v.loose || !r.namesProgram(v, q.ResolvedPath) {
			continue
		}
		if r.fitsArgs(v) {
			return miss{}
		}
		nearest = missed(missArgs, "the arguments are not those the rule denies")
	}
	return nearest
}

// namesProgram reports whether the rule means the program of v. A bare name means
// every program of that base name. An absolute path means that file; behind a wrapper
// nobody has resolved the name, so the base name has to do.
func (r *rule) namesProgram(v view, real string) bool {
	name := v.argv[0]
	for _, program := range r.programs {
		same := false
		switch {
		case v.wrapped:
			same = strings.EqualFold(path.Base(name), path.Base(program))
		case path.IsAbs(program):
			same = strings.EqualFold(path.Clean(name), program) || strings.EqualFold(real, program)
		default:
			same = strings.EqualFold(path.Base(name), program) || strings.EqualFold(path.Base(real), program)
		}
		if same {
			return true
		}
	}
	return false
}

// namesAny reports whether a program of the rule is among words, or among their parts.
func (r *rule) namesAny(words []string) bool {
	for _, word := range words {
		for _, part := range append(splitWord(word), word) {
			if r.namesProgram(view{argv: []string{part}, wrapped: true}, "") {
				return true
			}
		}
	}
	return false
}

func (r *rule) fitsArgs(v view) bool {
	args := v.argv[1:]
	if !r.recursiveOn.empty() {
		return r.recursiveOn.hits(args, v.folders)
	}
	if len(args) < len(r.args) || r.exact && len(args) != len(r.args) {
		return false
	}
	for i, pattern := range r.args {
		if !fitsWide(pattern, args[i]) {
			return false
		}
	}
	return true
}
