package policy

import (
	"bytes"
	"fmt"
	"strings"
)

// Bounds of a policy text. They keep a hostile text from costing more than its
// size: the TOML reader recurses once for each open bracket, and a dotted key,
// which cannot leave its line, costs the square of its parts.
const (
	maxText_bytes = 256 << 10
	maxLine_bytes = 4 << 10
	maxDepth      = 32
)

// places says on which line each key of a policy text stands. The TOML reader
// does not tell positions of keys, and an error without a line is hard to act on.
type places struct {
	top   map[string]int
	rules []rulePlace
}

type rulePlace struct {
	line int
	keys map[string]int
}

// locate finds the statements of text, those of its [[list]] tables apart. On text that is not TOML the lines may be
// wrong, but locate ends and never fails except for the bounds above.
func locate(text []byte, list string) (places, error) {
	s := scanner{text: text, list: list, line: 1, found: places{top: map[string]int{}}}
	if len(text) > maxText_bytes {
		return s.found, fmt.Errorf("the text has %d bytes, more than %d", len(text), maxText_bytes)
	}
	for number, line := range bytes.Split(text, []byte("\n")) {
		if len(line) > maxLine_bytes {
			return s.found, fmt.Errorf("line %d has %d bytes, more than %d", number+1, len(line), maxLine_bytes)
		}
	}
	for s.pos < len(s.text) {
		s.statement()
		if s.depth > maxDepth {
			return s.found, fmt.Errorf("line %d nests more than %d brackets", s.line, maxDepth)
		}
	}
	return s.found, nil
}

type scanner struct {
	text  []byte
	list  string // the name of the tables that are noted one by one
	pos   int
	line  int // line of pos, counted from 1
	depth int // open brackets at pos
	// current receives keys: the last rule's, a throw-away map below another header, or nil for the top.
	current map[string]int
	found   places
}

// statement reads one header, key or blank line and everything that belongs to it.
func (s *scanner) statement() {
	for s.pos < len(s.text) && (s.text[s.pos] == ' ' || s.text[s.pos] == '\t' || s.text[s.pos] == '\r') {
		s.pos++
	}
	if s.pos == len(s.text) {
		return
	}
	switch s.text[s.pos] {
	case '[':
		s.header()
	case '#', '\n':
	default:
		s.key()
	}
	s.skipValue()
}

// header notes a table header and chooses where the keys below it are noted.
func (s *scanner) header() {
	end := s.pos
	for end < len(s.text) && s.text[end] != '\n' && s.text[end] != ']' {
		end++
	}
	name := strings.TrimLeft(string(s.text[s.pos:end]), "[ \t")
	array := bytes.HasPrefix(s.text[s.pos:], []byte("[["))
	first, rest, dotted := strings.Cut(name, ".")
	first = bareKey(first)
	switch {
	case first == s.list && array && !dotted:
		s.current = map[string]int{}
		s.found.rules = append(s.found.rules, rulePlace{line: s.line, keys: s.current})
	case first == s.list && dotted && len(s.found.rules) > 0:
		note(s.found.rules[len(s.found.rules)-1].keys, strings.Split(rest, ".")[0], s.line)
		s.current = map[string]int{}
	default:
		note(s.found.top, first, s.line)
		s.current = map[string]int{}
	}
	for end < len(s.text) && s.text[end] == ']' {
		end++
	}
	s.pos = end
}

// key notes the name before the equals sign.
func (s *scanner) key() {
	end := s.pos
	for end < len(s.text) && s.text[end] != '=' && s.text[end] != '\n' {
		end++
	}
	target := s.current
	if target == nil {
		target = s.found.top
	}
	note(target, strings.Split(string(s.text[s.pos:end]), ".")[0], s.line)
	s.pos = end
}

// skipValue moves to the next line that can begin a statement.
func (s *scanner) skipValue() {
	s.depth = 0
	for s.pos < len(s.text) && s.depth <= maxDepth {
		switch c := s.text[s.pos]; c {
		case '\n':
			s.line++
			if s.depth == 0 {
				s.pos++
				return
			}
		case '#':
			for s.pos < len(s.text) && s.text[s.pos] != '\n' {
				s.pos++
			}
			continue
		case '[', '{':
			s.depth++
		case ']', '}':
			s.depth = max(0, s.depth-1)
		case '"', '\'':
			s.skipString(c)
			continue
		}
		s.pos++
	}
}

// skipString moves behind the string that opens at pos.
func (s *scanner) skipString(quote byte) {
	closing := []byte{quote}
	if long := []byte{quote, quote, quote}; bytes.HasPrefix(s.text[s.pos:], long) {
		closing = long
	}
	s.pos += len(closing)
	for s.pos < len(s.text) {
		switch {
		case bytes.HasPrefix(s.text[s.pos:], closing):
			s.pos += len(closing)
			return
		case s.text[s.pos] == '\\' && quote == '"':
			s.pos++
			if s.pos < len(s.text) && s.text[s.pos] == '\n' {
				s.line++
			}
		case s.text[s.pos] == '\n':
			if len(closing) == 1 {
				return
			}
			s.line++
		}
		s.pos++
	}
}

func note(keys map[string]int, name string, line int) {
	if name = bareKey(name); keys[name] == 0 {
		keys[name] = line
	}
}

func bareKey(name string) string { return strings.Trim(name, " \t\"'") }
