package repocheck

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// module is the path that imports of the project begin with.
const module = "github.com/banksman/banksman"

// tree is the project as its files show it.
type tree struct {
	fset  *token.FileSet
	files []*source
	texts []text
}

// source is one Go file. Paths are relative to the project, with slashes.
type source struct {
	path  string
	dir   string
	test  bool
	ast   *ast.File
	lines int
}

// text is one file that people can read, Go or not.
type text struct {
	path    string
	content string
}

// fault is one place that breaks a rule.
type fault struct {
	where string // a path, or a path and a name in it
	what  string
}

// root is the project's folder: tests run in their package's own.
func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readTree reads a project; folders whose name begins with a dot are read too,
// except git's own.
func readTree(project fs.FS) (*tree, error) {
	r := &tree{fset: token.NewFileSet()}
	err := fs.WalkDir(project, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git" && !d.IsDir(): // of a linked work tree
			return nil
		case d.IsDir() && (name == ".git" || name == "bin"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		content, err := fs.ReadFile(project, name)
		if err != nil || bytes.IndexByte(content, 0) >= 0 {
			return err
		}
		r.texts = append(r.texts, text{name, string(content)})
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") {
			return nil
		}
		f, err := parser.ParseFile(r.fset, name, content, parser.ParseComments)
		if err != nil {
			return err
		}
		r.files = append(r.files, &source{
			path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			ast: f, lines: bytes.Count(content, []byte("\n")),
		})
		return nil
	})
	return r, err
}

// code are the files that end up in a binary.
func (r *tree) code() []*source {
	var list []*source
	for _, s := range r.files {
		if !s.test {
			list = append(list, s)
		}
	}
	return list
}

// in are the files below one of the folders.
func in(list []*source, folders ...string) []*source {
	var found []*source
	for _, s := range list {
		for _, folder := range folders {
			if s.dir == folder || strings.HasPrefix(s.dir, folder+"/") {
				found = append(found, s)
				break
			}
		}
	}
	return found
}

// packages groups files by folder.
func packages(list []*source) map[string][]*source {
	by := map[string][]*source{}
	for _, s := range list {
		by[s.dir] = append(by[s.dir], s)
	}
	return by
}

// imports are the import paths of a file.
func (s *source) imports() []string {
	var list []string
	for _, i := range s.ast.Imports {
		list = append(list, strings.Trim(i.Path.Value, `"`))
	}
	return list
}

// uses finds names of an imported package, such as Sleep of "time", under whatever name the file imports it.
func (s *source) uses(importPath string, names ...string) []string {
	local := path.Base(importPath)
	found := false
	for _, i := range s.ast.Imports {
		if strings.Trim(i.Path.Value, `"`) == importPath {
			found = true
			if i.Name != nil {
				local = i.Name.Name
			}
		}
	}
	if !found {
		return nil
	}
	var used []string
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok || x.Name != local {
			return true
		}
		for _, name := range names {
			if sel.Sel.Name == name {
				used = append(used, importPath+"."+name)
			}
		}
		return true
	})
	return used
}
