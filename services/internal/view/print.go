package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text safe for a terminal: control, bidirectional and other
// invisible characters appear as escapes, bytes that are no text as U+FFFD,
// everything else as it is.
func Printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) {
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

// blankPattern is what Unicode calls printable although nothing is to be seen.
const blankPattern = '\u2800' // BRAILLE PATTERN BLANK

func hidden(r rune) bool {
	return !unicode.IsPrint(r) || r == blankPattern ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Command renders an argument vector so that a person sees where each argument
// begins and ends. It can be pasted into a POSIX shell and is then the same
// vector again; arguments that hold invisible characters are written as $'...',
// which POSIX has since 2024: bash, zsh and ksh know it, dash does not.
func Command(argv []string) string {
	parts := make([]string, len(argv))
	for i, a := range argv {
		parts[i] = quote(a, i == 0)
	}
	return strings.Join(parts, " ")
}

// reserved are the words that are no program when they stand first and bare.
var reserved = [...]string{
	"case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "namespace", "select", "then", "time",
	"until", "while", "coproc", "foreach", "repeat", "nocorrect", "end",
}

// quote writes one argument. In front, "A=b" would be an assignment and "if" a
// keyword.
func quote(arg string, front bool) string {
	switch {
	case !utf8.ValidString(arg) || strings.ContainsFunc(arg, hidden):
		return "$'" + escape(arg) + "'"
	case plain(arg) && !(front && (strings.Contains(arg, "=") || slices.Contains(reserved[:], arg))):
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// plain says that a shell reads the text as it is. A leading "=" means
// something to zsh.
func plain(arg string) bool {
	return arg != "" && arg[0] != '=' && !strings.ContainsFunc(arg, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r))
	})
}

// short are the escapes that people know.
var short = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`, "\r", `\r`, "\x1b", `\e`)

// escape writes the inside of $'...'. Other invisible characters are written
// byte by byte, in octal, whose length is fixed and whose meaning no locale
// changes.
func escape(arg string) string {
	var b strings.Builder
	for i := 0; i < len(arg); {
		r, size := utf8.DecodeRuneInString(arg[i:])
		part := arg[i : i+size]
		i += size
		if known := short.Replace(part); known != part {
			b.WriteString(known)
		} else if hidden(r) || r == utf8.RuneError && size == 1 {
			for _, c := range []byte(part) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		} else {
			b.WriteString(part)
		}
	}
	return b.String()
}
