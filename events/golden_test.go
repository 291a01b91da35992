package events_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
)

// goldenOf reads the example of a kind at a version.
func goldenOf(d events.Def) ([]byte, error) {
	return os.ReadFile(filepath.Join(goldenFolder, schemaName(d)))
}

// writeMissingGoldens writes an example for every catalogue line that has none.
// It never touches one that exists: a stored event cannot be rewritten either.
func writeMissingGoldens() error {
	if err := os.MkdirAll(goldenFolder, 0o755); err != nil {
		return err
	}
	for _, d := range events.Catalog() {
		if _, err := goldenOf(d); !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return err
			}
			continue
		}
		b, err := events.Encode(filled(d).Interface())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(goldenFolder, schemaName(d)), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// filled is a payload with every member set, the same on every machine.
func filled(d events.Def) reflect.Value {
	p := reflect.New(d.Type)
	fill(p.Elem(), string(d.Kind))
	return p
}

// fill sets a value from the path that leads to it.
func fill(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if options != "embed" {
				fill(v.Field(i), path+"/"+name)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), fmt.Sprintf("%s/%d", path, i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"KEY_A", "KEY_B"} {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(value, path+"/"+key)
			v.SetMapIndex(reflect.ValueOf(key), value)
		}
	case reflect.String:
		v.SetString(textFor(path))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint64:
		v.SetUint(numberFor(path))
	default:
		v.SetInt(int64(numberFor(path)))
	}
}

// textFor is a digest where the member's name says so, otherwise words with
// the characters that JSON writers disagree about.
func textFor(path string) string {
	switch filepath.Base(path) {
	case "proposal", "resolution", "policy", "digest", "sha256":
		return events.Digest([]byte(path))
	}
	return filepath.Base(path) + " \"é\" <&>\n"
}

func numberFor(path string) uint64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(path))
	return uint64(h.Sum32()%9999) + 1
}

// Every example that was ever written decodes, and encodes to the same bytes.
func TestGoldenFilesDecodeForEver(t *testing.T) {
	known := map[string]bool{}
	for _, d := range events.Catalog() {
		known[schemaName(d)] = true
		want, err := goldenOf(d)
		if err != nil {
			t.Errorf("%s v%d has no golden file; run: go test ./events -run TestGolden -update", d.Kind, d.Version)
			continue
		}
		checkRoundTrip(t, d, want)
		if _, err := events.DecodeCanonical(d, want); err != nil {
			t.Error(err)
		}
	}
	files, err := filepath.Glob(goldenFolder + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[filepath.Base(f)] {
			t.Errorf("%s belongs to no catalogue line; a stored kind must stay readable, restore the line", f)
		}
	}
}

func checkRoundTrip(t *testing.T, d events.Def, want []byte) {
	t.Helper()
	p, err := events.Decode(d, want)
	if err != nil {
		t.Error(err)
		return
	}
	got, err := events.Encode(p)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s v%d:\n got %s (%v)\nwant %s", d.Kind, d.Version, got, err, want)
	}
}

// A newer writer's members survive an older reader, and no writer of this
// version may publish them.
func TestUnknownMembersAreKept(t *testing.T) {
	for _, d := range events.Catalog() {
		golden, err := goldenOf(d)
		if err != nil {
			t.Fatal(err)
		}
		newer := append(golden[:len(golden)-1:len(golden)-1], `,"zz_later":{"b":[1,2.50,null],"a":"<é>"},"aa_later":true}`...)
		checkRoundTrip(t, d, newer)
		if _, err := events.DecodeCanonical(d, newer); err == nil {
			t.Errorf("%s v%d: a writer may publish members that nobody defined", d.Kind, d.Version)
		}
	}
}

// What can be read in two ways is not read at all.
func TestDecodeRefusesAmbiguousBytes(t *testing.T) {
	d, _ := events.Find("job.expired", 1)
	for name, text := range map[string]string{
		"twice":          `{"proposal":"a","proposal":"b","what":"request"}`,
		"twice, unknown": `{"proposal":"a","what":"request","x":1,"x":2}`,
		"trailing":       `{"proposal":"a","what":"request"}{}`,
		"invalid UTF-8":  "{\"proposal\":\"\xff\",\"what\":\"request\"}",
		"not an object":  `["proposal"]`,
		"empty":          ``,
		"wrong type":     `{"proposal":7,"what":"request"}`,
	} {
		if _, err := events.Decode(d, []byte(text)); err == nil {
			t.Errorf("%s: decoded %q", name, text)
		}
	}
	for name, text := range map[string]string{
		"space":   `{"proposal":"a", "what":"request"}`,
		"order":   `{"what":"request","proposal":"a"}`,
		"escape":  `{"proposal":"\u0061","what":"request"}`,
		"missing": `{"what":"request"}`,
	} {
		if _, err := events.Decode(d, []byte(text)); err != nil {
			t.Errorf("%s: a stored event must stay readable: %v", name, err)
		}
		if _, err := events.DecodeCanonical(d, []byte(text)); err == nil {
			t.Errorf("%s: a writer may publish %q", name, text)
		}
	}
}
