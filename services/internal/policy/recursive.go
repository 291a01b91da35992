package policy

import (
	"fmt"
	"path"
	"strings"
)

// The words of recursive_on besides absolute paths.
const (
	targetAny     = "*"
	targetHome    = "~"
	targetDataDir = "$BANKSMAN_DIR"
)

// guard is what a recursive command must not be aimed at.
type guard struct {
	any   bool     // everything
	home  bool     // what looks like a home directory on any machine, besides paths
	paths []string // these and every folder above them
	trees []string // these, every folder above them and everything inside
}

func (g guard) empty() bool { return !g.any && !g.home && len(g.paths)+len(g.trees) == 0 }

// readGuard reads recursive_on. Its words stand for everything (*), every home
// directory (~) and the data folder ($BANKSMAN_DIR); an absolute path stands for itself.
func readGuard(t *table, env Env) guard {
	var g guard
	targets := t.texts("recursive_on")
	if t.has("recursive_on") && len(targets) == 0 {
		t.problem(ProblemBadValue, "recursive_on", "recursive_on is empty", `write ["/", "~", "$BANKSMAN_DIR"]`)
	}
	for _, target := range targets {
		switch {
		case target == targetAny:
			g.any = true
		case target == targetHome:
			g.home = true
			g.paths = append(g.paths, env.Homes...)
		case target == targetDataDir:
			g.trees = append(g.trees, env.DataDir)
		case path.IsAbs(target) && path.Clean(target) == target:
			g.paths = append(g.paths, target)
		default:
			t.problem(ProblemBadValue, "recursive_on", fmt.Sprintf("recursive_on holds %q", target),
				`write "/", "~", "$BANKSMAN_DIR", "*" or a clean absolute path`)
		}
	}
	return g
}

// hits reports whether args (without the program) ask for recursion on a guarded
// target. Options count wherever they stand before "--", in any spelling getopt_long
// takes.
func (g guard) hits(args, folders []string) bool {
	operands, recursive := splitRecursive(args)
	if !recursive {
		return false
	}
	if g.any {
		return true
	}
	for _, operand := range operands {
		for _, target := range g.targets(operand, folders) {
			if g.covers(target) {
				return true
			}
		}
	}
	return false
}

func splitRecursive(args []string) (operands []string, recursive bool) {
	for i, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return append(operands, args[i+1:]...), recursive
		case !option(arg):
			operands = append(operands, arg)
		case strings.HasPrefix(arg, "--"):
			recursive = recursive || strings.HasPrefix("--recursive", name)
		default:
			recursive = recursive || strings.ContainsAny(arg, "rR")
		}
	}
	return operands, recursive
}

// targets returns the clean absolute paths that operand may stand for. Without a shell
// nothing expands ~ or $HOME; whoever wrote it meant the home directory all the same.
func (g guard) targets(operand string, folders []string) []string {
	if operand == "" {
		return nil
	}
	head, rest, _ := strings.Cut(operand, "/")
	if strings.HasPrefix(head, "~") || head == "$HOME" || head == "${HOME}" {
		return []string{stripStars(path.Join("/root", rest))}
	}
	if path.IsAbs(operand) {
		return []string{stripStars(path.Clean(operand))}
	}
	var all []string
	for _, folder := range folders {
		if folder != "" {
			all = append(all, stripStars(path.Join(folder, operand)))
		}
	}
	return all
}

// stripStars turns "everything in a folder" into the folder.
func stripStars(p string) string {
	for {
		dir, last := path.Split(p)
		if !strings.ContainsAny(last, "*?") || strings.Trim(last, "*?.,{}[]!^") != "" {
			return p
		}
		p = path.Clean(dir)
	}
}

// covers reports whether target is guarded. Letter case is ignored, as some file
// systems do, and a target with wildcards counts for everything it could become.
func (g guard) covers(target string) bool {
	for _, tree := range g.trees {
		if withinFold(tree, target) || withinFold(target, tree) || couldBecome(target, tree) {
			return true
		}
	}
	for _, p := range g.paths {
		if withinFold(p, target) || couldBecome(target, p) {
			return true
		}
	}
	return g.home && looksLikeHome(target)
}

// couldBecome reports whether the wildcards in target could stand for p or for a
// folder above it.
func couldBecome(target, p string) bool {
	if !strings.ContainsAny(target, "*?[") {
		return false
	}
	pattern := strings.ReplaceAll(strings.ToLower(target), "[!", "[^")
	for {
		// A pattern that is malformed stands for itself, as in a shell.
		if ok, err := path.Match(pattern, strings.ToLower(p)); ok && err == nil {
			return true
		}
		if p == "/" {
			return false
		}
		p = path.Dir(p)
	}
}

// looksLikeHome reports whether target is a home directory, or above one, by the
// conventions of Linux and darwin. The machine that decides may be another than the
// one that runs, so it cannot know all of them.
func looksLikeHome(target string) bool {
	for _, home := range []string{"/root", "/var/root"} {
		if withinFold(home, target) || couldBecome(target, home) {
			return true
		}
	}
	for _, parent := range []string{"/home", "/Users"} {
		if withinFold(parent, target) || couldBecome(target, parent) || strings.EqualFold(path.Dir(target), parent) {
			return true
		}
	}
	return false
}
