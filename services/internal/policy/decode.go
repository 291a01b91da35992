package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
)

// The keys of the language.
var (
	topKeys  = []string{"version", "mode", "rule"}
	ruleKeys = []string{
		"id", "program", "args", "exact", "flags", "env", "roots", "pools", "proposers", "code_args",
		"decision", "reason", "instead", "quorum", "max_timeout_s", "max_attempts", "recursive_on",
		"deny_args", "deny_text", "paths_under", "resolved", "days_utc", "hours_utc", "approvers", "confirm", "max_output_bytes",
		"match", "not_match",
	}
)

// decodeText reads text as TOML and returns its rule tables, and whether its mode is
// shadow. Faults go to found.
func decodeText(text []byte, found *findings) (tables []*table, shadow bool) {
	top, tables := decodeList(text, "rule", topKeys, ruleKeys, found)
	return tables, top != nil && top.checkMode()
}

// decodeList reads text as TOML and returns its top and its [[list]] tables, nil when
// it is no TOML.
func decodeList(text []byte, list string, topKeys, keys []string, found *findings) (*table, []*table) {
	where, err := locate(text, list)
	if err != nil {
		found.add(Problem{Code: ProblemSyntax, Message: err.Error(), Next: "shorten it"})
		return nil, nil
	}
	var root map[string]any
	if _, err := toml.Decode(string(text), &root); err != nil {
		found.add(syntaxProblem(err))
		return nil, nil
	}
	top := &table{values: root, lines: where.top, found: found}
	top.refuseUnknown(topKeys)
	top.checkVersion()
	items, ok := root[list].([]map[string]any)
	if _, given := root[list]; given && !ok {
		top.wrongType(list, "a series of [["+list+"]] tables")
	}
	tables := make([]*table, 0, len(items))
	for i, values := range items {
		t := &table{values: values, name: "#" + strconv.Itoa(i+1), line: where.top[list], found: found}
		if i < len(where.rules) {
			t.line, t.lines = where.rules[i].line, where.rules[i].keys
		}
		t.refuseUnknown(keys)
		tables = append(tables, t)
	}
	return top, tables
}

// checkMode reads mode and reports whether the policy only shadows.
func (t *table) checkMode() bool {
	mode := t.text("mode")
	if t.has("mode") && mode != "enforce" && mode != "shadow" {
		t.problem(ProblemBadValue, "mode", fmt.Sprintf("mode is %q", mode), `write "enforce" or "shadow"`)
	}
	return mode == "shadow"
}

func syntaxProblem(err error) Problem {
	p := Problem{Code: ProblemSyntax, Message: "the text is not TOML: " + err.Error()}
	var at toml.ParseError
	if errors.As(err, &at) {
		p.Line, p.Message = at.Position.Line, "the text is not TOML: "+at.Message
	}
	return p
}

// table reads one TOML table and reports what does not fit.
type table struct {
	values map[string]any
	lines  map[string]int
	line   int
	name   string // the rule in problems, "" for the top
	found  *findings
}

// problem reports a fault of key, or of the whole table when key is "".
func (t *table) problem(code ProblemCode, key, message, next string) {
	line := t.line
	if at := t.lines[key]; key != "" && at > 0 {
		line = at
	}
	t.found.add(Problem{Code: code, Line: line, Rule: t.name, Key: key, Message: message, Next: next})
}

func (t *table) wrongType(key, want string) {
	t.problem(ProblemWrongType, key, key+" is not "+want, "write "+want)
}

func (t *table) has(key string) bool {
	_, ok := t.values[key]
	return ok
}

func (t *table) refuseUnknown(known []string) {
	for key := range t.values {
		if contains(known, key) {
			continue
		}
		next := "the keys are " + strings.Join(known, ", ")
		if near := nearest(key, known); near != "" {
			next = fmt.Sprintf("did you mean %q?", near)
		}
		t.problem(ProblemUnknownKey, key, fmt.Sprintf("unknown key %q", key), next)
	}
}

func (t *table) checkVersion() {
	version, ok := t.values["version"].(int64)
	switch {
	case !t.has("version"):
		t.problem(ProblemBadVersion, "version", "version is missing", "write version = 1 at the top")
	case !ok:
		t.wrongType("version", "the whole number 1")
	case version != 1:
		t.problem(ProblemBadVersion, "version", fmt.Sprintf("version %d is not known", version), "this program reads version 1")
	}
}

// text returns a string value, "" when it is missing.
func (t *table) text(key string) string {
	s, ok := t.values[key].(string)
	if !ok {
		if t.has(key) {
			t.wrongType(key, "a string")
		}
		return ""
	}
	t.checkText(key, s)
	return s
}

// texts returns a list of strings, nil when it is missing.
func (t *table) texts(key string) []string {
	if !t.has(key) {
		return nil
	}
	list, ok := stringsOf(t.values[key])
	if !ok {
		t.wrongType(key, "a list of strings")
		return nil
	}
	for _, s := range list {
		t.checkText(key, s)
	}
	return list
}

// vectors returns a list of argument vectors, nil when it is missing.
func (t *table) vectors(key string) [][]string {
	if !t.has(key) {
		return nil
	}
	list, ok := t.values[key].([]any)
	var vectors [][]string
	for _, item := range list {
		vector, fits := stringsOf(item)
		ok = ok && fits && len(vector) > 0
		vectors = append(vectors, vector)
	}
	if !ok {
		t.wrongType(key, `a list of argument vectors, such as [["git", "status"]]`)
		return nil
	}
	return vectors
}

func (t *table) truth(key string) bool {
	b, ok := t.values[key].(bool)
	if !ok && t.has(key) {
		t.wrongType(key, "true or false")
	}
	return b
}

// number returns a whole number from low to high, 0 when it is missing.
func (t *table) number(key string, low, high int64) int {
	n, ok := t.values[key].(int64)
	switch {
	case !t.has(key):
		return 0
	case !ok:
		t.wrongType(key, "a whole number")
		return 0
	case n < low || n > high:
		t.problem(ProblemBadValue, key, fmt.Sprintf("%s is %d", key, n), fmt.Sprintf("it goes from %d to %d", low, high))
		return 0
	}
	return int(n)
}

// checkText refuses characters that make a reviewer see another text than the one
// that is compared.
func (t *table) checkText(key, s string) {
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			t.problem(ProblemBadText, key, fmt.Sprintf("%s holds the invisible character %U", key, r), "remove it")
			return
		}
	}
}

func stringsOf(v any) ([]string, bool) {
	items, ok := v.([]any)
	if !ok {
		return nil, false
	}
	list := make([]string, 0, len(items))
	for _, item := range items {
		s, ok := item.(string)
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}
