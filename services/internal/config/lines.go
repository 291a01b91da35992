package config

import (
	"fmt"
	"regexp"
	"strings"
)

// The decoder does not tell where an undecoded key stands, so it is looked for
// in the text. Lines count from 1; 0 means that it was not found, as inside of
// an inline table.

// at begins a fault with its line.
func at(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", line)
}

var header = regexp.MustCompile(`^\s*\[+([^\]#]*)\]`)

// headerOf returns the name in a table's header.
func headerOf(line string) (name string, ok bool) {
	m := header.FindStringSubmatch(line)
	if m == nil {
		return "", false
	}
	parts := strings.Split(m[1], ".")
	for i, p := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(p), `"'`)
	}
	return strings.Join(parts, "."), true
}

// tableLine finds the first header of a table or of one below it.
func tableLine(text []byte, table string) int {
	for i, line := range strings.Split(string(text), "\n") {
		if name, ok := headerOf(line); ok && (name == table || strings.HasPrefix(name, table+".")) {
			return i + 1
		}
	}
	return 0
}

// keyLine finds a key of a table; "" is what stands before the first header.
func keyLine(text []byte, table, key string) int {
	in := ""
	for i, line := range strings.Split(string(text), "\n") {
		if name, ok := headerOf(line); ok {
			in = name
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		name, _, _ = strings.Cut(name, ".")
		if ok && in == table && strings.Trim(strings.TrimSpace(name), `"'`) == key {
			return i + 1
		}
	}
	return 0
}
