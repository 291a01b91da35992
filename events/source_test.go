package events_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// structSource is what the source says about one struct of this package.
type structSource struct {
	doc    string
	fields map[string]fieldSource
	order  []string
}

type fieldSource struct {
	doc string
	tag string
}

// readStructs parses this package and returns its structs by name. The schemas
// take their descriptions from here, so the comment is written once.
func readStructs() (map[string]structSource, error) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		return nil, err
	}
	out := map[string]structSource{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			d, ok := n.(*ast.GenDecl)
			if !ok {
				return true
			}
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					if st, ok := t.Type.(*ast.StructType); ok {
						out[t.Name.Name] = readStruct(d, t, st)
					}
				}
			}
			return false
		})
	}
	return out, nil
}

func readStruct(d *ast.GenDecl, t *ast.TypeSpec, st *ast.StructType) structSource {
	doc := t.Doc
	if doc == nil {
		doc = d.Doc
	}
	s := structSource{doc: sentence(doc.Text()), fields: map[string]fieldSource{}}
	for _, f := range st.Fields.List {
		for _, name := range f.Names {
			src := fieldSource{doc: sentence(f.Doc.Text())}
			if f.Tag != nil {
				src.tag = f.Tag.Value
			}
			s.fields[name.Name] = src
			s.order = append(s.order, name.Name)
		}
	}
	return s
}

// sentence puts a comment on one line.
func sentence(comment string) string { return strings.Join(strings.Fields(comment), " ") }

func mustStructs(t *testing.T) map[string]structSource {
	t.Helper()
	s, err := readStructs()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
