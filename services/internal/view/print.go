package view

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable makes text safe for a terminal: control, bidirectional and other
// invisible characters appear as escapes, everything else as it is.
func Printable(text string) string {
	if !strings.ContainsFunc(text, hidden) && !strings.Contains(text, "\uFFFD") {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func hidden(r rune) bool { return !unicode.IsPrint(r) }

// Command renders an argument vector so that a person sees where each argument
// begins and ends; it can be pasted into a POSIX shell.
func Command(argv []string) string {
	parts := make([]string, len(argv))
	for i, a := range argv {
		parts[i] = quote(a)
	}
	return strings.Join(parts, " ")
}

func quote(arg string) string {
	plain := arg != "" && !strings.ContainsFunc(arg, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r))
	})
	if plain {
		return arg
	}
	if strings.ContainsFunc(arg, hidden) {
		return "$'" + strings.ReplaceAll(Printable(strings.ReplaceAll(arg, `\`, `\\`)), "'", `\'`) + "'"
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
