package repocheck

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated regions of the README")

// region is a part of a document between <!-- gen:NAME --> and <!-- /gen:NAME -->.
var region = regexp.MustCompile(`(?s)<!-- gen:([a-z]+) -->\n(.*?)<!-- /gen:([a-z]+) -->`)

// TestReadme compares each generated region of the README with what the code
// says. With -update it writes them.
func TestReadme(t *testing.T) {
	file := filepath.Join(root(t), "README.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b := newBinary(t)
	t.Run("status", func(t *testing.T) { statusIsHonest(t, string(text), b) })
	says := regions(t, b)
	seen := map[string]bool{}
	fresh := region.ReplaceAllStringFunc(string(text), func(old string) string {
		m := region.FindStringSubmatch(old)
		name, had := m[1], m[2]
		seen[name] = true
		want, ok := says[name]
		switch {
		case m[3] != name:
			t.Errorf("region %s ends as %s", name, m[3])
		case !ok:
			t.Errorf("region %s: nothing generates it", name)
		case had != want && !*update:
			t.Errorf("region %s is not what the code says; run make generate. It should be:\n%s", name, want)
		default:
			return "<!-- gen:" + name + " -->\n" + want + "<!-- /gen:" + name + " -->"
		}
		return old
	})
	for _, name := range slices.Sorted(maps.Keys(says)) {
		if !seen[name] {
			t.Errorf("the README has no region %s", name)
		}
	}
	if *update && !t.Failed() && fresh != string(text) {
		if err := os.WriteFile(file, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// statusIsHonest checks that what the README calls missing is missing: a verb
// that has come must leave the list, or nobody learns of it.
func statusIsHonest(t *testing.T, readme string, b binary) {
	_, status, _ := strings.Cut(readme, "Not there yet:")
	status, _, _ = strings.Cut(status, "\n## ")
	verbs := verbsTables(b)
	for _, m := range regexp.MustCompile("`([a-z ]+)`").FindAllStringSubmatch(status, -1) {
		if strings.Contains(verbs, "`"+m[1]+"`") || strings.Contains(verbs, "`"+m[1]+" ") {
			t.Errorf("the verb %q is there; take it off the list of what is not", m[1])
		}
	}
}

// row is a line of a Markdown table.
func row(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.ReplaceAll(c, "|", `\|`), "\n", " ")
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// head is the first two lines of a Markdown table.
func head(cells ...string) string {
	return row(cells...) + strings.Repeat("|---", len(cells)) + "|\n"
}

// code sets words as they are typed.
func code(words string) string { return "`" + words + "`" }
