package repocheck

import (
	"go/ast"
	"go/doc"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
)

// regions is everything that the README says from the code, by name.
func regions(t *testing.T, b binary) map[string]string {
	t.Helper()
	project, err := readTree(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"roles":     rightsTable(),
		"events":    eventsTable(),
		"lifecycle": "```mermaid\n" + lifecycle.Diagram() + "```\n",
		"config":    "```toml\n" + b.run("config", "reference") + "```\n",
		"make":      targetsTable(t),
		"verbs":     verbsTables(b),
		"exits":     exitsTable(t, project),
		"map":       mapTable(project),
	}
}

// rightsTable says what each role may publish. Rights to kinds that the
// catalogue does not hold yet have a column of their own: nobody uses them.
func rightsTable() string {
	var b strings.Builder
	b.WriteString(head("role", "may publish", "reserved, not used yet"))
	for _, role := range events.Roles {
		kinds := events.Publishes(role)
		var now, later []string
		for _, r := range events.Rights {
			if r.Role != role {
				continue
			}
			cell := code(r.Pattern)
			if r.Only != "" {
				cell += " (" + r.Only + ")"
			}
			if slices.ContainsFunc(kinds, r.Covers) {
				now = append(now, cell)
			} else {
				later = append(later, cell)
			}
		}
		if len(now) == 0 {
			now = []string{"nothing"}
		}
		b.WriteString(row(string(role), strings.Join(now, ", "), strings.Join(later, ", ")))
	}
	return b.String()
}

func eventsTable() string {
	var b strings.Builder
	b.WriteString(head("kind", "version", "stored after"))
	for _, d := range events.Catalog() {
		name := string(d.Kind)
		version := strconv.Itoa(d.Version)
		b.WriteString(row("["+code(name)+"](schemas/"+name+".v"+version+".json)", version, d.When))
	}
	return b.String()
}

// targetsTable reads the Makefile as its help target does.
func targetsTable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(head("target", "does"))
	for _, m := range regexp.MustCompile(`(?m)^([a-z]+):.*## (.*)$`).FindAllStringSubmatch(string(text), -1) {
		b.WriteString(row(code("make "+m[1]), m[2]))
	}
	return b.String()
}

// exitsTable reads the constants of the command line's exit codes, their names
// and comments.
func exitsTable(t *testing.T, project *tree) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(head("code", "name", "when"))
	for _, s := range in(project.code(), "services/front") {
		for _, d := range s.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				name, exits := strings.CutPrefix(v.Names[0].Name, "Exit")
				if !exits || len(v.Values) != 1 {
					continue
				}
				b.WriteString(row(v.Values[0].(*ast.BasicLit).Value, strings.ToLower(name), strings.TrimSpace(v.Comment.Text())))
			}
		}
	}
	return b.String()
}

// mapTable is every package with the first sentence of its comment.
func mapTable(project *tree) string {
	var b strings.Builder
	b.WriteString(head("folder", "what it is or does"))
	by := packages(project.code())
	for _, dir := range slices.SortedFunc(maps.Keys(by), bySteps) {
		for _, s := range by[dir] {
			if s.ast.Doc == nil {
				continue
			}
			sentence := new(doc.Package).Synopsis(s.ast.Doc.Text())
			for _, prefix := range []string{"Package " + s.ast.Name.Name + " ", "Command " + path.Base(dir) + " "} {
				sentence = strings.TrimPrefix(sentence, prefix)
			}
			sentence = strings.TrimSuffix(strings.NewReplacer("[", "", "]", "").Replace(sentence), ".")
			b.WriteString(row("["+code(dir)+"]("+dir+")", sentence))
		}
	}
	return b.String()
}

// bySteps sorts folders so that each stands before what is in it.
func bySteps(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
