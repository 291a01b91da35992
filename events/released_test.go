package events_test

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
)

const releasedPath = schemaFolder + "/released.sum"

// pin is one fact about a shipped file that may never change. A golden file is
// pinned whole; a schema member by member, because an optional member may be
// added and a comment put right without a new version.
type pin struct {
	name     string
	sum      string
	required bool
}

// pinsToday lists what the generated files hold now, in catalogue order.
func pinsToday() ([]pin, error) {
	var out []pin
	for _, d := range events.Catalog() {
		b, err := os.ReadFile(filepath.Join(schemaFolder, schemaName(d)))
		if err != nil {
			return nil, err
		}
		var doc map[string]any
		if err := json.Unmarshal(b, &doc); err != nil {
			return nil, err
		}
		out = append(out, pinsOf("schemas/"+schemaName(d)+"#", doc, false)...)
		golden, err := goldenOf(d)
		if err != nil {
			return nil, err
		}
		out = append(out, pin{name: "golden/" + schemaName(d), sum: events.Digest(golden)})
	}
	return out, nil
}

// pinsOf walks a schema: every node by its JSON pointer, with all that a
// reader relies on but the words for people.
func pinsOf(at string, node map[string]any, required bool) []pin {
	need := map[string]bool{}
	if list, ok := node["required"].([]any); ok {
		for _, name := range list {
			need[name.(string)] = true
		}
	}
	own, children := map[string]any{"required": required}, map[string]any{}
	for key, value := range node {
		switch child, nested := value.(map[string]any); {
		case key == "properties":
			for name, p := range child {
				children["properties/"+name] = p
			}
		case nested:
			children[key] = child
		case key != "description" && key != "$comment" && key != "title" && key != "required":
			own[key] = value
		}
	}
	b, err := json.Marshal(own, json.Deterministic(true))
	if err != nil {
		panic(err) // a map that was just read from JSON
	}
	out := []pin{{at, events.Digest(b), required}}
	for _, name := range slices.Sorted(maps.Keys(children)) {
		out = append(out, pinsOf(at+"/"+name, children[name].(map[string]any), need[path.Base(name)])...)
	}
	return out
}

// readReleased reads released.sum: a digest, two spaces, a name.
func readReleased() (map[string]string, error) {
	b, err := os.ReadFile(releasedPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(sum) != 64 || out[name] != "" {
			return nil, fmt.Errorf("%s: bad or repeated line %q", releasedPath, line)
		}
		out[name] = sum
	}
	return out, nil
}

// comparePins returns the pins that are not released yet, and what was changed
// that may not change.
func comparePins(released map[string]string, today []pin) (fresh []pin, broken []string) {
	const rule = "; leave it and give the kind a new version"
	seen := map[string]bool{}
	for _, p := range today {
		seen[p.name] = true
		file, _, _ := strings.Cut(p.name, "#")
		sum, old := released[p.name]
		switch {
		case old && sum != p.sum:
			broken = append(broken, p.name+" has shipped and was changed"+rule)
		case !old && p.required && released[path.Dir(path.Dir(p.name))] != "":
			broken = append(broken, p.name+" is required and new in "+file+", which has shipped"+rule)
		case !old:
			fresh = append(fresh, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(released)) {
		if !seen[name] {
			broken = append(broken, name+" has shipped and is gone"+rule)
		}
	}
	return fresh, broken
}

// appendReleased adds the lines of what is new. It never changes a line.
func appendReleased() error {
	today, err := pinsToday()
	if err != nil {
		return err
	}
	released, err := readReleased()
	if err != nil {
		return err
	}
	fresh, broken := comparePins(released, today)
	if len(broken) > 0 {
		return errors.New(strings.Join(broken, "\n"))
	}
	f, err := os.OpenFile(releasedPath, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, p := range fresh {
		if _, err := fmt.Fprintf(f, "%s  %s\n", p.sum, p.name); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

// Nothing that has shipped was changed, and everything there is is pinned.
func TestReleasedFilesStay(t *testing.T) {
	today, err := pinsToday()
	if err != nil {
		t.Fatal(err)
	}
	released, err := readReleased()
	if err != nil {
		t.Fatal(err)
	}
	fresh, broken := comparePins(released, today)
	for _, b := range broken {
		t.Error(b)
	}
	for _, p := range fresh {
		t.Errorf("%s is not pinned; run: go test ./events -run TestReleased -update", p.name)
	}
}

// The guard itself: what it lets pass and what it holds.
func TestReleasedGuard(t *testing.T) {
	const base = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"object","properties":{"c":{"type":"integer"}},"required":["c"]}},"required":["a"]}`
	released := map[string]string{}
	for _, p := range pinsFrom(t, base) {
		released[p.name] = p.sum
	}
	for name, tc := range map[string]struct {
		replace, with string
		fresh, broken int
	}{
		"unchanged":           {``, ``, 0, 0},
		"words":               {`"a":{`, `"a":{"description":"better words",`, 0, 0},
		"optional member":     {`"a":{`, `"z":{"type":"object","properties":{"y":{"type":"string"}},"required":["y"]},"a":{`, 2, 0},
		"optional, nested":    {`"a":{"type":"string"},"b":{"type":"object","properties":{`, `"a":{"type":"string"},"b":{"type":"object","properties":{"n":{"type":"string"},`, 1, 0},
		"required, nested":    {`"c":{"type":"integer"}},"required":["c"`, `"c":{"type":"integer"},"n":{"type":"string"}},"required":["c","n"`, 0, 1},
		"required, top":       {`"required":["a"]`, `"required":["a","b"]`, 0, 1},
		"no longer required":  {`,"required":["a"]`, ``, 0, 1},
		"other type":          {`"integer"`, `"string"`, 0, 1},
		"other name":          {`"c":{`, `"d":{`, 1, 1},
		"member gone":         {`"c":{"type":"integer"}`, ``, 0, 1},
		"new bound on number": {`"integer"`, `"integer","minimum":0`, 0, 1},
	} {
		fresh, broken := comparePins(released, pinsFrom(t, strings.Replace(base, tc.replace, tc.with, 1)))
		if len(fresh) != tc.fresh || len(broken) != tc.broken {
			t.Errorf("%s: %d new and %q, want %d new and %d broken", name, len(fresh), broken, tc.fresh, tc.broken)
		}
	}
}

func pinsFrom(t *testing.T, schema string) []pin {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(schema), &doc); err != nil {
		t.Fatalf("%v in %s", err, schema)
	}
	return pinsOf("schemas/x#", doc, false)
}
