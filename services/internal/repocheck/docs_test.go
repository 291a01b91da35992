package repocheck

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

// wellKnown are methods whose interface says what they do.
var wellKnown = []string{
	"Error", "Unwrap", "Is", "As", "String", "GoString", "Format", "LogValue", "Len", "Less", "Swap", "Write", "Read", "Close",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalJSONTo", "UnmarshalJSONFrom",
}

func docRules() []rule {
	return []rule{
		{
			name: "packages introduce themselves",
			why:  "who opens a folder reads first what the package promises; one comment, which begins as godoc expects",
			find: introductions,
			planted: map[string]string{
				"services/a/x.go":   "package a\n",
				"services/b/x.go":   "// It does things.\npackage b\n",
				"cmd/banksman/x.go": "// Package main does things.\npackage main\n",
			},
		},
		{
			name: "what is exported is explained",
			why:  "an exported name is a promise to other packages, and a promise has words",
			find: explained,
			planted: map[string]string{
				"services/a/x.go": "package a\ntype A struct{}\n",
				"services/b/x.go": "package b\nfunc B() {}\n",
				"services/c/x.go": "package c\n// C is.\ntype C struct{}\nfunc (C) Do() {}\n",
				"services/d/x.go": "package d\nconst D = 1\n",
			},
		},
		{
			name:    "doc links lead somewhere",
			why:     "a link in a comment to a name that is gone misleads whoever follows it",
			find:    docLinks,
			planted: map[string]string{"services/a/x.go": "// Package a is like [Gone].\npackage a\n"},
		},
	}
}

func introductions(r *tree) (faults []fault) {
	for dir, list := range packages(r.code()) {
		var docs []string
		for _, s := range list {
			if s.ast.Doc != nil {
				docs = append(docs, s.ast.Doc.Text())
			}
		}
		want := "Package " + list[0].ast.Name.Name + " "
		if list[0].ast.Name.Name == "main" {
			want = "Command " + path.Base(dir) + " "
		}
		if len(docs) != 1 || !strings.HasPrefix(docs[0], want) {
			faults = append(faults, fault{dir, fmt.Sprintf("has %d package comments; want one that begins with %q", len(docs), want)})
		}
	}
	return faults
}

func explained(r *tree) (faults []fault) {
	for _, s := range r.code() {
		for i, d := range s.ast.Decls {
			if i > 0 && r.shares(s.ast.Decls[i-1], d) {
				continue
			}
			for _, name := range silent(d) {
				faults = append(faults, fault{s.path + ":" + name, "is exported and has no comment"})
			}
		}
	}
	return faults
}

// shares says that a method stands right below a method of one line: such a
// block shares the comment above it, as a block of constants does.
func (r *tree) shares(above, d ast.Decl) bool {
	a, ok := above.(*ast.FuncDecl)
	b, also := d.(*ast.FuncDecl)
	if !ok || !also || a.Recv == nil || b.Recv == nil || b.Doc != nil {
		return false
	}
	begin, end := r.fset.Position(a.Pos()).Line, r.fset.Position(a.End()).Line
	return begin == end && r.fset.Position(b.Pos()).Line == end+1
}

// silent are the exported names of a declaration that nobody explains.
func silent(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Doc != nil {
			return nil
		}
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		on := rootOfType(d.Recv.List[0].Type)
		if !ast.IsExported(on) || slices.Contains(wellKnown, d.Name.Name) {
			return nil
		}
		return []string{on + "." + d.Name.Name}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil {
					names = append(names, spec.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					if n.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
		return names
	}
	return nil
}

func rootOfType(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		default:
			return ""
		}
	}
}

// docLinks follows the links of comments within a package and between packages
// of the project.
func docLinks(r *tree) (faults []fault) {
	by := packages(r.code())
	names := map[string]map[string]bool{}
	for dir, list := range by {
		names[dir] = symbols(list)
	}
	for _, dir := range slices.Sorted(maps.Keys(by)) {
		for _, s := range by[dir] {
			for _, link := range links(s) {
				target := dir
				if link.ImportPath != "" {
					inside, project := ours(link.ImportPath)
					if !project {
						continue
					}
					target = inside
				}
				name := link.Name
				if link.Recv != "" {
					name = link.Recv + "." + link.Name
				}
				if name != "" && !names[target][name] {
					faults = append(faults, fault{s.path, fmt.Sprintf("links to %s, which %s does not have", name, target)})
				}
			}
		}
	}
	return faults
}

// symbols are what links into a package may name: top-level names, methods and
// fields.
func symbols(list []*source) map[string]bool {
	all := map[string]bool{}
	for _, s := range list {
		for _, name := range declared(s.ast) {
			all[name] = true
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				all[rootOfType(f.Recv.List[0].Type)+"."+f.Name.Name] = true
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			t, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			var fields *ast.FieldList
			switch of := t.Type.(type) {
			case *ast.StructType:
				fields = of.Fields
			case *ast.InterfaceType:
				fields = of.Methods
			default:
				return true
			}
			for _, f := range fields.List {
				for _, n := range f.Names {
					all[t.Name.Name+"."+n.Name] = true
				}
			}
			return true
		})
	}
	return all
}

// links are the doc links of a file's comments on declarations.
func links(s *source) []*comment.DocLink {
	imports := map[string]string{}
	for _, i := range s.imports() {
		imports[path.Base(i)] = i
	}
	p := comment.Parser{
		LookupPackage: func(name string) (string, bool) {
			i, ok := imports[name]
			if !ok {
				i, ok = comment.DefaultLookupPackage(name)
			}
			return i, ok
		},
		LookupSym: func(recv, name string) bool { return token.IsExported(name) },
	}
	var found []*comment.DocLink
	for _, group := range docComments(s.ast) {
		for _, block := range p.Parse(group.Text()).Content {
			var texts []comment.Text
			switch b := block.(type) {
			case *comment.Paragraph:
				texts = b.Text
			case *comment.List:
				for _, item := range b.Items {
					for _, c := range item.Content {
						texts = append(texts, c.(*comment.Paragraph).Text...)
					}
				}
			}
			for _, t := range texts {
				if link, ok := t.(*comment.DocLink); ok && !doc.IsPredeclared(link.Name) {
					found = append(found, link)
				}
			}
		}
	}
	return found
}

func docComments(f *ast.File) []*ast.CommentGroup {
	list := []*ast.CommentGroup{f.Doc}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			list = append(list, d.Doc)
		case *ast.GenDecl:
			list = append(list, d.Doc)
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					list = append(list, t.Doc)
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(g *ast.CommentGroup) bool { return g == nil })
}
