package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Read reads a text in the grammar of bash.
func Read(text string) Script {
	var s Script
	switch {
	case hidden(text):
		s.doubt(Hidden, 0)
	case len(text) > MaxText_bytes:
		s.doubt(TooLong, 0)
	case openers(text) > maxOpeners:
		s.doubt(TooDeep, 0)
	default:
		stmts, err := parse(text)
		r := reader{script: &s}
		for _, stmt := range stmts {
			r.walk(stmt)
		}
		if err != nil {
			// A shell runs the lines before the one that it cannot read.
			s.doubt(Grammar, 0)
		} else if !r.groups {
			return s
		}
	}
	s.Rest = stretches(text)
	return s
}

// parse returns the statements before the first one that does not follow the
// grammar.
func parse(text string) (stmts []*syntax.Stmt, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			// The text comes from whoever proposes; a fault of the parser must not
			// end the process that decides.
			err = errParser
		}
	}()
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	for stmt, err := range parser.StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			return stmts, err
		}
		stmts = append(stmts, stmt)
	}
	return stmts, nil
}

type parserFault string

func (e parserFault) Error() string { return string(e) }

const errParser = parserFault("the parser failed")

// hidden reports whether a person, or the parser, would see another text than the
// shell reads: to a shell a carriage return is part of a word and ends no line.
func hidden(text string) bool {
	for i, r := range text {
		switch {
		case r == '\n', r == '\t':
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return true
		case r == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(text[i:]); size <= 1 {
				return true
			}
		}
	}
	return false
}

// openers counts the signs and words that can begin something nested. It knows no
// quotes and never counts too few, so it bounds how deep the parser can go.
func openers(text string) int {
	count := strings.Count(text, "(") + strings.Count(text, "{") + strings.Count(text, "`")
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\n;&|(){}", r) }) {
		switch word {
		case "if", "elif", "while", "until", "for", "case", "select", "!", "time", "coproc", "function":
			count++
		}
	}
	return count
}

// stretches returns the words of a text that no parser understands, without quotes
// and escapes.
func stretches(text string) [][]string {
	text = strings.NewReplacer("'", "", `"`, "", "\\", "").Replace(text)
	var all [][]string
	for stretch := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\n;&|(){}`<>", r) }) {
		if words := strings.FieldsFunc(stretch, func(r rune) bool { return unicode.IsSpace(r) || r == 0 || r == '$' }); len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}
