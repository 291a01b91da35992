package repocheck

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// longest is how many lines a file may have.
const longest = 500

// vague are words that hide what a thing is.
var vague = regexp.MustCompile(`(Man` + `ager|Hel` + `per|Ut` + `il|Com` + `mon)s?([A-Z_]|$)`)

func sourceRules() []rule {
	return []rule{
		{
			name:    "files are short",
			why:     "a file of more than 500 lines has a second promise in it",
			find:    short,
			planted: map[string]string{"events/x.go": "package events\n" + strings.Repeat("// more\n", longest)},
		},
		{
			name: "main is a sentence",
			why:  "a program is its package comment and one call; what it does is tested as a package",
			find: mains,
			planted: map[string]string{
				"cmd/a/main.go": "package main\nfunc main() { println(); println() }\n",
				"cmd/b/main.go": "package main\nfunc main() {}\n" + strings.Repeat("// more\n", 15),
				"cmd/c/main.go": "package main\nfunc main() {}\nfunc more() {}\n",
			},
		},
		{
			name:    "no init functions",
			why:     "an import must not do anything: what runs is started by name, in an order that can be read",
			find:    inits,
			planted: map[string]string{"events/x.go": "package events\nfunc init() {}\n"},
		},
		{
			name: "no mutable package state",
			why:  "state has an owner that was handed it; two of anything fit into one process and into one test",
			find: mutable,
			planted: map[string]string{
				"services/a/x.go": "package a\nvar n int\nfunc count() { n++ }\n",
				"services/b/x.go": "package b\nvar table = map[string]int{}\nfunc put() { table[\"a\"] = 1 }\n",
				"services/c/x.go": "package c\nimport \"sync\"\nvar lock sync.Mutex\n",
				"services/d/x.go": "package d\nvar a struct{ n int }\nfunc set() { a.n = 1 }\n",
			},
		},
		{
			name: "nothing sleeps",
			why:  "a sleep is too short on a busy machine and too long on an idle one; wait for the moment itself",
			find: sleeps,
			except: map[string]string{
				"services/internal/tlog/disk.go": "the kernel does not say when a file lock is free, except by waiting for as long as it is held",
				"services/internal/proc/":        "the kernel tells only a parent that a process has ended, and proc looks for others too",
			},
			planted: map[string]string{"events/x_test.go": "package events\nimport \"time\"\nfunc wait() { time.Sleep(1) }\n"},
		},
		{
			name:    "names say what a thing is",
			why:     "Man" + "ager, Hel" + "per, Ut" + "il and Com" + "mon fit everything and tell nothing; the field has nouns",
			find:    vaguely,
			planted: map[string]string{"events/x.go": "package events\ntype jobMan" + "ager struct{}\n", "events/y.go": "package ut" + "il\n"},
		},
	}
}

func short(r *tree) (faults []fault) {
	for _, s := range r.code() {
		if s.lines > longest {
			faults = append(faults, fault{s.path, fmt.Sprintf("has %d lines, %d are allowed", s.lines, longest)})
		}
	}
	return faults
}

func mains(r *tree) (faults []fault) {
	for _, s := range in(r.code(), "cmd") {
		if path.Base(s.path) != "main.go" {
			faults = append(faults, fault{s.path, "stands beside main.go; a program is one file"})
			continue
		}
		functions, statements := 0, 0
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				functions++
				statements += len(f.Body.List)
			}
		}
		lines := s.lines - r.fset.Position(s.ast.Package).Line + 1
		if functions != 1 || statements > 1 || lines > 15 {
			faults = append(faults, fault{s.path, fmt.Sprintf("has %d functions, %d statements and %d lines below its comment; want 1, 1 and at most 15", functions, statements, lines)})
		}
	}
	return faults
}

func inits(r *tree) (faults []fault) {
	for _, s := range r.files {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				faults = append(faults, fault{s.path, "has an init function"})
			}
		}
	}
	return faults
}

func sleeps(r *tree) (faults []fault) {
	for _, s := range r.files {
		for _, use := range s.uses("time", "Sleep") {
			faults = append(faults, fault{s.path, "uses " + use})
		}
	}
	return faults
}

func vaguely(r *tree) (faults []fault) {
	for _, s := range r.files {
		if vague.MatchString(strings.ToUpper(s.ast.Name.Name[:1]) + s.ast.Name.Name[1:]) {
			faults = append(faults, fault{s.path, "package " + s.ast.Name.Name})
		}
		for _, name := range declared(s.ast) {
			if vague.MatchString(strings.ToUpper(name[:1]) + name[1:]) {
				faults = append(faults, fault{s.path, "declares " + name})
			}
		}
	}
	return faults
}

// declared are the names that a file gives to things outside function bodies,
// methods among them.
func declared(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// mutable finds package variables that a function changes, and those whose type
// is made to be changed. A test may keep flags and counters.
func mutable(r *tree) (faults []fault) {
	for _, list := range packages(r.code()) {
		state := variables(list)
		for _, s := range list {
			for name, spec := range state {
				if spec.file == s && changing(spec.spec) {
					faults = append(faults, fault{s.path + ":" + name, "is made to be changed"})
				}
			}
			for _, name := range assigned(s.ast) {
				if _, ok := state[name.Name]; ok && global(name, state) {
					faults = append(faults, fault{s.path + ":" + name.Name, "a function changes it"})
				}
			}
		}
	}
	return faults
}

type variable struct {
	file *source
	spec *ast.ValueSpec
}

func variables(list []*source) map[string]variable {
	state := map[string]variable{}
	for _, s := range list {
		for _, d := range s.ast.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, spec := range g.Specs {
					for _, n := range spec.(*ast.ValueSpec).Names {
						state[n.Name] = variable{s, spec.(*ast.ValueSpec)}
					}
				}
			}
		}
	}
	delete(state, "_")
	return state
}

// changing says that a variable has a type of sync or is a channel.
func changing(spec *ast.ValueSpec) bool {
	switch t := spec.Type.(type) {
	case *ast.ChanType:
		return true
	case *ast.SelectorExpr:
		x, ok := t.X.(*ast.Ident)
		return ok && slices.Contains([]string{"sync", "atomic"}, x.Name)
	}
	return false
}

// assigned are the variables at the root of what a file's functions assign to.
func assigned(f *ast.File) []*ast.Ident {
	var names []*ast.Ident
	add := func(e ast.Expr) {
		if n := rootOf(e); n != nil {
			names = append(names, n)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.IncDecStmt:
			add(n.X)
		}
		return true
	})
	return names
}

func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// global says that a name is the package's and no local one: the parser has
// resolved it to the package's declaration, or to nothing in its file.
func global(n *ast.Ident, state map[string]variable) bool {
	return n.Obj == nil || n.Obj.Decl == state[n.Name].spec
}
