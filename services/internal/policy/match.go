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
func (p *Policy) consider(r *rule, q Request, all plan) miss {
	if r.decision == Deny {
		return r.denies(q, all)
	}
	return p.permits(r, q)
}

// permits returns the nearest miss over the programs of the rule.
func (p *Policy) permits(r *rule, q Request) miss {
	nearest := r.otherProgram()
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
	if !r.window.covers(q, true) {
		return missed(missScope, "it is outside the hours of the rule")
	}
	if m := r.takesArgs(q.Argv[1:]); m.rank != matched {
		return m
	}
	if m := r.confines(q); m.rank != matched {
		return m
	}
	if m := r.takesEnv(q); m.rank != matched {
		return m
	}
	if m := p.trustsPlace(r, program, q); m.rank != matched {
		return m
	}
	if len(r.roots) > 0 && q.RealCwd != "" && !withinAny(q.RealCwd, r.roots) {
		return missed(missRoots, "the working folder lies outside the roots %s", strings.Join(r.roots, ", "))
	}
	return miss{}
}

// otherProgram is the miss of a request for another program. Most rules miss most
// requests in this way, so its words are chosen when the policy is read.
func (r *rule) otherProgram() miss { return miss{rank: missProgram, text: r.notThese} }

func (r *rule) inScope(q Request) miss {
	if len(r.pools) > 0 && !contains(r.pools, q.Pool) {
		return missed(missScope, "the pool is not among %s", strings.Join(r.pools, ", "))
	}
	if len(r.proposers) > 0 && !proposedBy(r.proposers, q.Proposer) {
		return missed(missScope, "the proposer is not among %s", strings.Join(r.proposers, ", "))
	}
	return miss{}
}

// proposedBy reports whether proposer, which may say "agent:" or "person:" before the
// name, is among list, which may say so too.
func proposedBy(list []string, proposer string) bool {
	_, name, kinded := strings.Cut(proposer, ":")
	return contains(list, proposer) || kinded && contains(list, name)
}

// takesEnv compares the environment values in the narrow sense of allow rules; under
// ask a person sees each of them.
func (r *rule) takesEnv(q Request) miss {
	if r.decision != Allow {
		return miss{}
	}
	for _, name := range q.EnvNames {
		value, known := q.Env[name]
		if !r.envTakes(name, value, known, !resolved(q)) {
			return missed(missEnv, "the proposal sets environment values that are not in env")
		}
	}
	return miss{}
}

// envTakes reports whether env lists the name, and the value where it names one. A
// value that nobody has told yet counts as listed only while the decision is provisional.
func (r *rule) envTakes(name, value string, known, provisional bool) bool {
	for _, entry := range r.env {
		want, pattern, valued := strings.Cut(entry, "=")
		if want != name {
			continue
		}
		if !valued || known && fits(pattern, value) || !known && provisional {
			return true
		}
	}
	return false
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
func (p *Policy) trustsPlace(r *rule, program string, q Request) miss {
	decision := r.decision
	argv0, real, absolute := q.Argv[0], q.ResolvedPath, path.IsAbs(program)
	if len(r.resolved) > 0 && real != "" && !contains(r.resolved, real) {
		return missed(missPlace, "the program that would run is none of %s", strings.Join(r.resolved, ", "))
	}
	if absolute && len(r.resolved) == 0 && real != "" && real != program {
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
	if q.settled && real == "" && (absolute && argv0 != program || len(r.resolved) > 0) {
		return missed(missPlace, "nobody says which file the name stands for inside another command")
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
func (r *rule) denies(q Request, p plan) miss {
	if m := r.inScope(q); m.rank != matched {
		return m
	}
	if !r.window.covers(q, false) {
		return missed(missScope, "it is outside the hours of the rule")
	}
	nearest := r.otherProgram()
	for _, v := range p.views {
		if len(r.roots) > 0 && !withinAny(q.RealCwd, r.roots) && !withinAny(q.Cwd, r.roots) && !anyWithin(v.folders, r.roots) {
			if nearest.rank < missRoots {
				nearest = missed(missRoots, "the working folder lies outside the roots %s", strings.Join(r.roots, ", "))
			}
			continue
		}
		if v.loose && r.namesAny(v.argv) {
			return miss{}
		}
		if v.loose || len(v.argv) == 0 || !r.namesProgram(v, q.ResolvedPath) {
			continue
		}
		if r.fitsArgs(v) {
			return miss{}
		}
		nearest = missed(missArgs, "the arguments are not those the rule denies")
	}
	return nearest
}

func anyWithin(folders, roots []string) bool {
	for _, folder := range folders {
		if withinAny(folder, roots) {
			return true
		}
	}
	return false
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

// fitsArgs reports whether the arguments of v are those that the rule denies, which
// for a permitting rule are those of deny_args and deny_text.
func (r *rule) fitsArgs(v view) bool {
	args := v.argv[1:]
	if !r.recursiveOn.empty() {
		return r.recursiveOn.hits(args, v.folders)
	}
	if r.exact {
		return len(args) == len(r.args) && r.beginsWith(args) && r.denied(args)
	}
	return r.inOrder(args) && r.denied(args)
}

// denied reports whether an argument is one of those that are denied anywhere; a deny
// rule that names none means every command.
func (r *rule) denied(args []string) bool {
	if r.decision == Deny && len(r.denyArgs)+len(r.denyText) == 0 {
		return true
	}
	return spelled(r.denyArgs, args) || holdsText(r.denyText, args)
}

func (r *rule) beginsWith(args []string) bool {
	if len(args) < len(r.args) {
		return false
	}
	for i, pattern := range r.args {
		if !fitsWide(pattern, args[i]) {
			return false
		}
	}
	return true
}

// inOrder reports whether the words of the rule stand in args in their order, with
// nothing between them but options and their values: the push of git -C dir push. As
// nobody knows which options take a value, the word behind an option may be one.
func (r *rule) inOrder(args []string) bool {
	if len(r.args) == 0 || r.beginsWith(args) {
		return true
	}
	if len(args) < len(r.args) {
		return false
	}
	// here[i] says that the words so far can end just before args[i].
	here := make([]bool, len(args)+1)
	here[0] = true
	for _, pattern := range r.args {
		next := make([]bool, len(args)+1)
		reached, behind := false, false // the word may stand at i; args[i-1] may want a value
		for i, arg := range args {
			reached = reached || here[i]
			if !reached {
				continue
			}
			if fitsWide(pattern, arg) {
				next[i+1] = true
			}
			switch {
			case option(arg):
				behind = !strings.Contains(arg, "=")
			case behind:
				behind = false
			default:
				reached = false
			}
		}
		here = next
	}
	for _, ends := range here {
		if ends {
			return true
		}
	}
	return false
}
