package events_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
)

// A kind that nobody writes or nobody reads is a word without a use: every one
// is built by some service and taken apart by some service or fold.
func TestVocabularyIsAlive(t *testing.T) {
	written := sourceUnder(t, "../services")
	read := written + sourceUnder(t, "lifecycle")
	for _, d := range events.Catalog() {
		name := d.Type.Name()
		if !strings.Contains(written, "events."+name+"{") {
			t.Errorf("nobody under services/ builds events.%s (%s)", name, d.Kind)
		}
		taken := regexp.MustCompile(`(\.\(|case |, )\*events\.` + name + `\b`)
		if !taken.MatchString(read) && !comparesKind(read, d.Kind) {
			t.Errorf("nobody takes an events.%s (%s) apart", name, d.Kind)
		}
	}
}

// comparesKind says whether some code asks for a kind by its name; naming it
// to publish it does not count.
func comparesKind(source string, k events.Kind) bool {
	return regexp.MustCompile(`(case |[=!]= |, )"` + regexp.QuoteMeta(string(k)) + `"( \{|[:,]|\n)`).MatchString(source)
}

// sourceUnder is all Go code below a folder but tests, line by line.
func sourceUnder(t *testing.T, folder string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		out.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
