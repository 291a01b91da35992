package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Section binds a table of the file to the struct that holds it, defaults
// filled in. Validator structs are validated after decoding.
type Section struct {
	Name string
	Into any       // pointer to a struct with toml and doc tags, or to a Set of such structs
	With []Section // further tables of the same reader
}

// flat lists sections with their further tables.
func flat(sections []Section) []Section {
	var out []Section
	for _, s := range sections {
		out = append(append(out, s), flat(s.With)...)
	}
	return out
}

// Validator checks a decoded section; the error names the key.
type Validator interface{ Validate() error }

// Names lists every table that a file may have.
var Names = []string{"site", "bus", "proposer", "gate", "worker", "supervisor", "projects", "monitor", "auditor", "person"}

// Error is everything that is wrong with a file.
type Error struct {
	Path   string
	Faults []string
}

func (e *Error) Error() string {
	return fmt.Sprintf("configuration %s: %s", e.Path, strings.Join(e.Faults, "; "))
}

// Load reads the file into the sections.
func Load(path string, sections ...Section) error {
	text, err := os.ReadFile(path)
	if err != nil {
		next := "let this user read it"
		if errors.Is(err, fs.ErrNotExist) {
			next = "'banksman init' makes one"
		}
		return &Error{Path: path, Faults: []string{fmt.Sprintf("it cannot be read: %v; %s", bare(err), next)}}
	}
	return Decode(path, text, sections...)
}

// bare drops the path, which Error names.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Decode reads the text of a file into the sections.
func Decode(path string, text []byte, sections ...Section) error {
	var tables map[string]toml.Primitive
	meta, err := toml.NewDecoder(bytes.NewReader(text)).Decode(&tables)
	if err != nil {
		return &Error{Path: path, Faults: []string{parseFault(err)}}
	}
	sections = flat(sections)
	faults := unknownTables(tables, text)
	var read []string
	for _, s := range sections {
		if table, ok := tables[s.Name]; ok {
			faults = append(faults, decodeTable(meta, s, table)...)
		}
		read = append(read, s.Name)
	}
	for _, key := range meta.Undecoded() {
		if len(key) < 2 || !slices.Contains(read, key[0]) {
			continue
		}
		into := sections[slices.Index(read, key[0])].Into
		known, depth := keysOf(into), 1
		if _, many := into.(family); many {
			depth = 2
		}
		if len(key) > depth && slices.Contains(known, key[depth]) {
			continue // it is known; another key of its table has a fault, so nobody read it
		}
		faults = append(faults, unknownKey(key, known, text))
	}
	decoded := len(faults) == 0
	for _, s := range sections {
		if v, ok := s.Into.(Validator); ok && decoded {
			if err := v.Validate(); err != nil {
				faults = append(faults, fmt.Sprintf("table [%s]: %v", s.Name, err))
			}
		}
	}
	if len(faults) > 0 {
		return &Error{Path: path, Faults: faults}
	}
	return nil
}

// decodeTable reads one table, or each table of a set.
func decodeTable(meta toml.MetaData, s Section, table toml.Primitive) (faults []string) {
	decode := func(name string, table toml.Primitive, into any) {
		if err := meta.PrimitiveDecode(table, into); err != nil {
			faults = append(faults, fmt.Sprintf("table [%s]: %v", name, err))
		}
	}
	set, many := s.Into.(family)
	if !many {
		decode(s.Name, table, s.Into)
		return faults
	}
	var named map[string]toml.Primitive
	decode(s.Name, table, &named)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		into := set.fresh()
		decode(s.Name+"."+name, named[name], into)
		set.put(name, into)
	}
	return faults
}

func parseFault(err error) string {
	var p toml.ParseError
	if errors.As(err, &p) {
		return fmt.Sprintf("line %d: %s", p.Position.Line, p.Message)
	}
	return err.Error()
}

func unknownTables(tables map[string]toml.Primitive, text []byte) []string {
	var faults []string
	for name := range tables {
		if slices.Contains(Names, name) {
			continue
		}
		if line := keyLine(text, "", name); line > 0 {
			faults = append(faults, fmt.Sprintf("line %d: key %q stands outside of any table; known tables are %s", line, name, strings.Join(Names, ", ")))
			continue
		}
		faults = append(faults, fmt.Sprintf("%sno table [%s]%s", at(tableLine(text, name)), name, hint(name, Names)))
	}
	slices.Sort(faults)
	return faults
}

func unknownKey(key toml.Key, known []string, text []byte) string {
	table, name := key[:len(key)-1].String(), key[len(key)-1]
	line := keyLine(text, table, name)
	if line == 0 {
		line = max(tableLine(text, table), keyLine(text, key[0], key[1])) // one of them is 0
	}
	return fmt.Sprintf("%stable [%s] has no key %q%s", at(line), table, name, hint(name, known))
}

func hint(name string, known []string) string {
	best, distance := "", min(4, len(name))
	for _, k := range known {
		if d := editDistance(name, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return "; known are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// editDistance is Levenshtein's, in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

func keysOf(into any) []string {
	var names []string
	for f, _ := range fields(into) {
		names = append(names, f.Tag.Get("toml"))
	}
	return names
}

func fields(into any) func(func(reflect.StructField, reflect.Value) bool) {
	if set, ok := into.(family); ok {
		into = set.fresh()
	}
	v := reflect.ValueOf(into).Elem()
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("toml") != "" && !yield(f, v.Field(i)) {
				return
			}
		}
	}
}

// Render writes sections with their values, each key under its documentation.
// A set that is empty shows what a table of it may hold, commented out.
func Render(sections ...Section) []byte {
	var b strings.Builder
	for i, s := range flat(sections) {
		if i > 0 {
			b.WriteString("\n")
		}
		set, many := s.Into.(family)
		if !many {
			renderTable(&b, s.Name, s.Into, "")
			continue
		}
		for _, name := range set.names() {
			renderTable(&b, s.Name+"."+name, set.get(name), "")
		}
		if len(set.names()) == 0 {
			renderTable(&b, s.Name+".NAME", set.fresh(), "# ")
		}
	}
	return []byte(b.String())
}

// renderTable writes one table; off stands before each line that counts.
func renderTable(b *strings.Builder, name string, into any, off string) {
	fmt.Fprintf(b, "%s[%s]\n", off, name)
	for f, v := range fields(into) {
		for _, line := range wrap(f.Tag.Get("doc"), 90) {
			fmt.Fprintf(b, "# %s%s\n", off, line)
		}
		fmt.Fprintf(b, "%s%s = %s\n", off, f.Tag.Get("toml"), literal(v))
	}
}

func literal(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Slice && v.Len() == 0:
		return "[]"
	case v.Kind() == reflect.Map:
		return inline(v)
	}
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(map[string]any{"v": v.Interface()}); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(v.Interface()))
	}
	_, value, _ := strings.Cut(strings.TrimSpace(b.String()), " = ")
	return value
}

// inline writes a map of texts as an inline table.
func inline(v reflect.Value) string {
	var parts []string
	for _, k := range v.MapKeys() {
		parts = append(parts, literal(k)+" = "+literal(v.MapIndex(k)))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}

func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
