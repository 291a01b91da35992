package events_test

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
)

const (
	schemaFolder = "../schemas"
	goldenFolder = "testdata/golden"
)

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSONTo writes the members in their order.
func (o object) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range o {
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, m.value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// schemaName is a kind at a version as a file name.
func schemaName(d events.Def) string { return fmt.Sprintf("%s.v%d.json", d.Kind, d.Version) }

// schemaOf draws the schema of one catalogue line.
func schemaOf(d events.Def, src map[string]structSource) ([]byte, error) {
	shape, err := shapeOf(d.Type, src)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", d.Kind, err)
	}
	doc := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", events.SchemaURI(d.Kind, d.Version)},
		{"title", d.Kind},
		{"description", rename(src[d.Type.Name()].doc, d.Type.Name(), string(d.Kind))},
		{"$comment", "When it was stored, " + d.When + "."},
	}
	doc = append(doc, shape...)
	doc = append(doc, member{"additionalProperties", true})
	b, err := json.Marshal(doc, jsontext.WithIndent("  "), json.Deterministic(true))
	return append(b, '\n'), err
}

// shapeOf draws a Go type as the codec writes it.
func shapeOf(t reflect.Type, src map[string]structSource) (object, error) {
	switch t.Kind() {
	case reflect.Struct:
		return structShape(t, src)
	case reflect.Slice:
		items, err := shapeOf(t.Elem(), src)
		return object{{"type", "array"}, {"items", items}}, err
	case reflect.Map:
		values, err := shapeOf(t.Elem(), src)
		return object{{"type", "object"}, {"additionalProperties", values}}, err
	case reflect.String:
		return object{{"type", "string"}}, nil
	case reflect.Bool:
		return object{{"type", "boolean"}}, nil
	case reflect.Int, reflect.Int64:
		return object{{"type", "integer"}}, nil
	case reflect.Uint64:
		return object{{"type", "integer"}, {"minimum", 0}}, nil
	}
	return nil, fmt.Errorf("%s has no schema; use a string, bool, int, int64, uint64, slice, map or struct", t)
}

func structShape(t reflect.Type, src map[string]structSource) (object, error) {
	properties, required := object{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options == "embed" {
			continue
		}
		shape, err := shapeOf(f.Type, src)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.Name(), f.Name, err)
		}
		doc := rename(src[t.Name()].fields[f.Name].doc, f.Name, name)
		properties = append(properties, member{name, append(object{{"description", doc}}, shape...)})
		if options == "" {
			required = append(required, name)
		}
	}
	return object{{"type", "object"}, {"properties", properties}, {"required", required}}, nil
}

// rename lets a comment begin with the stored name, as its reader knows it.
func rename(doc, goName, stored string) string {
	if rest, ok := strings.CutPrefix(doc, goName+" "); ok {
		return stored + " " + rest
	}
	return doc
}

// writeSchemas makes every schema file anew.
func writeSchemas() error {
	src, err := readStructs()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(schemaFolder, 0o755); err != nil {
		return err
	}
	for _, d := range events.Catalog() {
		b, err := schemaOf(d, src)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(schemaFolder, schemaName(d)), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// The committed schemas are what the types and their comments say today.
func TestSchemas(t *testing.T) {
	src := mustStructs(t)
	known := map[string]bool{}
	for _, d := range events.Catalog() {
		known[schemaName(d)] = true
		want, err := schemaOf(d, src)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(schemaFolder, schemaName(d))
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is missing or stale; run: go test ./events -run TestSchemas -update", path)
		}
	}
	files, err := filepath.Glob(schemaFolder + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[filepath.Base(f)] {
			t.Errorf("%s belongs to no catalogue line; restore the line or delete the file", f)
		}
	}
}
