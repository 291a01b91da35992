package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// value returns what a word stands for, and whether the text says all of it. It
// looks at the word's own parts and not into what they substitute, which the walk
// visits by itself.
func value(w *syntax.Word) (text string, plain bool) {
	var b strings.Builder
	plain = true
	brace, comma := false, false
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			s, fixed := unescape(p.Value)
			bare := unmasked(p.Value)
			brace = brace || strings.Contains(bare, "{")
			comma = comma || strings.Contains(bare, ",") || strings.Contains(bare, "..")
			if !fixed || i == 0 && strings.HasPrefix(p.Value, "~") || strings.Contains(p.Value, "=~") || strings.Contains(p.Value, ":~") {
				plain = false
			}
			b.WriteString(s)
		case *syntax.SglQuoted:
			if p.Dollar {
				b.WriteString(ansi(p.Value))
			} else {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			plain = quoted(&b, p) && plain
		default:
			b.WriteString(hint(part))
			plain = false
		}
	}
	return b.String(), plain && !(brace && comma)
}

// quoted writes what stands between double quotes.
func quoted(b *strings.Builder, q *syntax.DblQuoted) bool {
	plain := !q.Dollar // a translated string may become another one
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			b.WriteString(hint(part))
			plain = false
			continue
		}
		s := lit.Value
		for i := 0; i < len(s); i++ {
			if s[i] == '\\' && i+1 < len(s) {
				switch s[i+1] {
				case '\n':
					i++
					continue
				case '$', '`', '"', '\\':
					i++
				}
			}
			b.WriteByte(s[i])
		}
	}
	return plain
}

// hint is what can be told of a part whose value is not in the text.
func hint(part syntax.WordPart) string {
	if p, ok := part.(*syntax.ParamExp); ok && p.Param != nil && p.Exp == nil {
		return "$" + p.Param.Value
	}
	return "$()"
}

// unmasked leaves out of an unquoted word what a backslash takes its meaning from.
func unmasked(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
			b.WriteByte(0)
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unescape resolves the backslashes of an unquoted word. It reports false when a
// character is left that the shell compares with file names.
func unescape(s string) (string, bool) {
	if !strings.ContainsAny(s, `\*?[`) {
		return s, true
	}
	var b strings.Builder
	fixed := true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case '*', '?', '[':
			// A lone [ is the name of a builtin.
			fixed = fixed && s == "["
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), fixed
}

// ansi resolves the escapes of $'...'. A NUL ends the string, as it does in bash.
func ansi(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		base, digits, width := 0, i, 0
		switch c := s[i]; c {
		case 'x':
			base, digits, width = 16, i+1, 2
		case 'u':
			base, digits, width = 16, i+1, 4
		case 'U':
			base, digits, width = 16, i+1, 8
		case '0', '1', '2', '3', '4', '5', '6', '7':
			base, width = 8, 3
		case 'c':
			if i++; i < len(s) {
				b.WriteByte(s[i] & 0x1f)
			}
			continue
		default:
			if at := strings.IndexByte(`abeEfnrtv`, c); at >= 0 {
				b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v"[at])
			} else if strings.IndexByte(`\'"?`, c) >= 0 {
				b.WriteByte(c)
			} else {
				b.WriteByte('\\')
				b.WriteByte(c)
			}
			continue
		}
		end := digits
		for end < len(s) && end < digits+width && isDigit(s[end], base) {
			end++
		}
		n, err := strconv.ParseUint(s[digits:end], base, 32)
		switch {
		case err != nil:
			b.WriteString(s[i-1 : end])
		case n == 0:
			return b.String()
		case s[i] == 'u' || s[i] == 'U':
			b.WriteRune(rune(n))
		default:
			b.WriteByte(byte(n))
		}
		i = end - 1
	}
	return b.String()
}

func isDigit(c byte, base int) bool {
	switch {
	case c >= '0' && c <= '7', base == 16 && (c == '8' || c == '9'):
		return true
	}
	return base == 16 && (c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F')
}
