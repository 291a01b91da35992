package events_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/banksman/banksman/events"
)

// A second opinion on the schemas: a validator that knows nothing of the Go
// types judges the examples, and every way to spoil one.
func TestAnIndependentValidatorAgrees(t *testing.T) {
	for _, d := range events.Catalog() {
		t.Run(schemaName(d), func(t *testing.T) {
			schema, doc := compiled(t, d)
			golden, err := goldenOf(d)
			if err != nil {
				t.Fatal(err)
			}
			accept(t, schema, "the golden file", golden)
			empty, err := events.Encode(reflect.New(d.Type).Interface())
			if err != nil {
				t.Fatal(err)
			}
			accept(t, schema, "the zero value", empty)
			accept(t, schema, "an unknown member", append(golden[:len(golden)-1:len(golden)-1], `,"zz":1}`...))
			n := 0
			for what, bad := range spoiled(instance(t, golden), doc) {
				n++
				if err := schema.Validate(bad); err == nil {
					t.Errorf("%s is accepted", what)
				}
			}
			if n == 0 {
				t.Error("nothing was spoiled")
			}
		})
	}
}

// A member is required exactly when the codec always writes it.
func TestRequiredIsWhatIsAlwaysWritten(t *testing.T) {
	for _, d := range events.Catalog() {
		_, doc := compiled(t, d)
		b, err := events.Encode(reflect.New(d.Type).Interface())
		if err != nil {
			t.Fatal(err)
		}
		written := instance(t, b).(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(doc["properties"].(map[string]any))) {
			_, always := written[name]
			if required := slices.Contains(requiredOf(doc), name); always != required {
				t.Errorf("%s %s: required %v, written by the zero value %v; omitempty is for text, lists and maps, omitzero for the rest", d.Kind, name, required, always)
			}
		}
	}
}

func compiled(t *testing.T, d events.Def) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(schemaFolder, schemaName(d)))
	if err != nil {
		t.Fatal(err)
	}
	doc := instance(t, b).(map[string]any)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	id := doc["$id"].(string)
	if id != events.SchemaURI(d.Kind, d.Version) {
		t.Errorf("$id %q is not the ce-dataschema of %s", id, d.Kind)
	}
	if err := c.AddResource(id, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(id)
	if err != nil {
		t.Fatal(err)
	}
	return schema, doc
}

// instance reads JSON as the validator wants it, numbers exact.
func instance(t *testing.T, b []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func accept(t *testing.T, s *jsonschema.Schema, what string, b []byte) {
	t.Helper()
	if err := s.Validate(instance(t, b)); err != nil {
		t.Errorf("%s is refused: %v", what, err)
	}
}

func requiredOf(schema map[string]any) []string {
	list, _ := schema["required"].([]any)
	out := make([]string, 0, len(list))
	for _, name := range list {
		out = append(out, name.(string))
	}
	return out
}

// wrong lists values that a schema of this type must refuse.
func wrong(schema map[string]any) []any {
	switch schema["type"] {
	case "string":
		return []any{true, 7, nil, []any{}, map[string]any{}}
	case "integer":
		bad := []any{"7", 7.5, nil, true}
		if schema["minimum"] != nil {
			bad = append(bad, -1)
		}
		return bad
	case "boolean":
		return []any{"true", 7, nil}
	case "array":
		return []any{"a", map[string]any{}, nil}
	default:
		return []any{"a", []any{}, nil}
	}
}

// spoiled yields copies of a valid value with one thing wrong each: a required
// member gone, or a member of another type, at any depth.
func spoiled(v any, schema map[string]any) map[string]any {
	out := map[string]any{}
	for i, bad := range wrong(schema) {
		out[fmt.Sprintf("value as %T (%d)", bad, i)] = bad
	}
	within := func(key string, child any, childSchema map[string]any, put func(any) any) {
		for what, bad := range spoiled(child, childSchema) {
			out[key+": "+what] = put(bad)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range requiredOf(schema) {
			without := maps.Clone(v)
			delete(without, name)
			out[name+" missing"] = without
		}
		for name, child := range v {
			within(name, child, memberSchema(schema, name), func(bad any) any {
				with := maps.Clone(v)
				with[name] = bad
				return with
			})
		}
	case []any:
		for i, child := range v {
			within(fmt.Sprint(i), child, schema["items"].(map[string]any), func(bad any) any {
				with := slices.Clone(v)
				with[i] = bad
				return with
			})
		}
	}
	return out
}

// memberSchema is the schema of a member of a struct or of a map.
func memberSchema(schema map[string]any, name string) map[string]any {
	if properties, ok := schema["properties"].(map[string]any); ok {
		return properties[name].(map[string]any)
	}
	return schema["additionalProperties"].(map[string]any)
}
