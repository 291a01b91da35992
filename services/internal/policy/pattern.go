package policy

import "strings"

// A pattern stands for one argument, never for several. A star stands for one or
// more characters; `\*` is a star and `\\` a backslash. A pattern that ends in "**",
// alone or behind a slash, takes the slashes in that last part, too.
//
// In a permitting rule the star takes no slash, a value that a star helped to match
// may not climb with "..", and a pattern that begins with a star does not fit an
// option. In a denying rule the star takes anything, nothing included.

// fits reports whether value matches pattern in the narrow sense of permitting rules.
func fits(pattern, value string) bool {
	if words := pieces(pattern); len(words) == 1 {
		return words[0] == value
	}
	if pattern[0] == '*' && strings.HasPrefix(value, "-") {
		return false
	}
	patterns, values := strings.Split(pattern, "/"), strings.Split(value, "/")
	if last := len(patterns) - 1; patterns[last] == "**" && len(values) > last {
		for _, part := range values[last:] {
			if part == ".." {
				return false
			}
		}
		if strings.Join(values[last:], "/") == "" {
			return false
		}
		patterns, values = patterns[:last], values[:last]
	}
	if len(patterns) != len(values) {
		return false
	}
	for i := range values {
		if values[i] == ".." || !glob(pieces(patterns[i]), values[i], 1) {
			return false
		}
	}
	return true
}

// fitsWide reports whether value matches pattern in the generous sense of denying rules.
func fitsWide(pattern, value string) bool { return glob(pieces(pattern), value, 0) }

// pieces splits a pattern at its stars and removes the escapes.
func pieces(pattern string) []string {
	var words []string
	var word strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern) && (pattern[i+1] == '*' || pattern[i+1] == '\\'):
			i++
			word.WriteByte(pattern[i])
		case c == '*':
			words = append(words, word.String())
			word.Reset()
		default:
			word.WriteByte(c)
		}
	}
	return append(words, word.String())
}

// glob reports whether value is the words in order, with at least gap bytes between
// each two. It takes each word at its first place, which leaves the most room for
// the next, so its cost grows with the length of value alone.
func glob(words []string, value string, gap int) bool {
	if len(words) == 1 {
		return words[0] == value
	}
	if !strings.HasPrefix(value, words[0]) {
		return false
	}
	last := words[len(words)-1]
	rest := value[len(words[0]):]
	for _, word := range words[1 : len(words)-1] {
		if len(rest) < gap {
			return false
		}
		at := strings.Index(rest[gap:], word)
		if at < 0 {
			return false
		}
		rest = rest[gap+at+len(word):]
	}
	return len(rest) >= gap+len(last) && strings.HasSuffix(rest, last)
}
