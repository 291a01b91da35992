package policy

import (
	"fmt"
	"path"
	"strings"
)

// hereFolder stands in paths_under for the working folder.
const hereFolder = "."

// confines reports whether every path among the arguments lies under paths_under.
//
// Nobody knows which arguments of a program are paths, so each counts as one: every
// operand, the value of every option behind its equals sign or its letter, the value
// of an operand such as if=x, and what follows @ as in curl -d @x.
func (r *rule) confines(q Request) miss {
	if r.pathsUnder == nil {
		return miss{}
	}
	folders := []string{q.Cwd}
	if q.RealCwd != "" {
		folders = []string{q.RealCwd}
	}
	for i, arg := range q.Argv[1:] {
		if i < len(r.args) && pieces(r.args[i])[0] == arg {
			continue // the rule itself names it
		}
		for _, value := range pathsIn(arg) {
			if !r.under(value, folders[0]) {
				return missed(missArgs, "argument %d names a path outside paths_under", i+1)
			}
		}
	}
	return miss{}
}

// under reports whether a path as written, counted from folder, lies below one of the
// folders of paths_under.
func (r *rule) under(value, folder string) bool {
	if strings.HasPrefix(value, "~") || strings.HasPrefix(value, "$") {
		return false
	}
	if !path.IsAbs(value) {
		value = path.Join("/", folder, value)
	}
	value = path.Clean(value)
	for _, root := range r.pathsUnder {
		if root == hereFolder {
			root = folder
		}
		if within(value, root) {
			return true
		}
	}
	return false
}

// pathsIn returns what in an argument may be a path.
func pathsIn(arg string) []string {
	all := []string{arg}
	if option(arg) {
		all = nil
		if !strings.HasPrefix(arg, "--") && len(arg) > 2 {
			all = append(all, arg[2:])
		}
	}
	for rest := arg; ; {
		_, value, ok := strings.Cut(rest, "=")
		if !ok {
			break
		}
		all, rest = append(all, value), value
	}
	for _, value := range all {
		if at := strings.IndexByte(value, '@'); at >= 0 {
			all = append(all, value[at+1:])
		}
		if _, file, ok := strings.Cut(value, "file:"); ok {
			all = append(all, "/"+strings.TrimLeft(file, "/"))
		}
	}
	return all
}

func readPathsUnder(t *table) []string {
	list := t.texts("paths_under")
	if t.has("paths_under") && len(list) == 0 {
		t.problem(ProblemBadValue, "paths_under", "paths_under is empty, so no argument fits", `name folders, or "." for the working folder`)
	}
	for _, folder := range list {
		if folder != hereFolder && (!path.IsAbs(folder) || path.Clean(folder) != folder) {
			t.problem(ProblemBadRoot, "paths_under", fmt.Sprintf("paths_under holds %q", folder), `write a clean absolute path, or "." for the working folder`)
		}
	}
	return list
}
