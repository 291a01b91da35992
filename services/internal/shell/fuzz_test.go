package shell

import (
	"strings"
	"testing"
	"time"
)

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"git add a && git push", "()0", "f(){ rm a; }", "${x:=$(rm y)}", "cat <<E\n$(a)\nE\n", "$'\\x72m\\0'", "((a[$(rm x)]))",
		"coproc x { a; }", "{a,b}{1..3}", "a() b() c", "for ((;;)) do a; done", "case in in in) esac", "[[ a =~ ( ]]", "echo ${a[@]/x/y} ${!a*}",
		"A=(1 2) B[0]=3 x", "select x in a; do b; done", "<<<'x' cat", "exec {fd}>a", "\\\n", "a &>> b |& c", "declare -A x=([a]=b)", "0\\\r", "! time -p !",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		begin := time.Now()
		s := Read(text)
		if took := time.Since(begin); took > 20*time.Second {
			t.Fatalf("%d bytes took %s", len(text), took)
		}
		for _, c := range s.Commands {
			if len(c.Argv) == 0 || c.Open != nil && len(c.Open) != len(c.Argv) {
				t.Fatalf("%q: a command has %d words and %d marks", text, len(c.Argv), len(c.Open))
			}
			c.Harmless()
			TextOf(c.Argv)
		}
		for _, words := range s.Rest {
			if len(words) == 0 {
				t.Fatalf("%q: a stretch without words", text)
			}
		}
		// A command of its own line is found whatever stands above it, as long as that
		// is whole.
		if len(s.Doubts) == 0 && len(text) < MaxText_bytes-100 && !strings.HasSuffix(text, "\\") && !strings.Contains(text, "<<") {
			if more := Read(text + "\nfrobnicate a"); !names(more, "frobnicate") {
				t.Fatalf("%q: a command below it is not found: %+v", text, more)
			}
		}
	})
}

// FuzzQuotes writes words in ways that mean the same to a shell.
func FuzzQuotes(f *testing.F) {
	f.Add("rm", "-rf", byte(0))
	f.Add("a b", "$HOME", byte(3))
	f.Add("it's", "\"", byte(7))
	f.Add("é*?", "\\", byte(5))
	f.Add("±", ",w{", byte(62))
	f.Fuzz(func(t *testing.T, first, second string, way byte) {
		if hidden(first) || hidden(second) || hidden(first+" "+second) || first == "" || strings.ContainsAny(first+second, "\n\r") || len(first)+len(second) > 4000 {
			t.Skip()
		}
		text := quote(first, way&3) + " " + quote(second, way>>2&3)
		s := Read(text)
		if len(s.Commands) != 1 || !s.Commands[0].Plain() || len(s.Commands[0].Argv) != 2 || s.Commands[0].Argv[0] != first || s.Commands[0].Argv[1] != second {
			t.Fatalf("%s: %+v", text, s)
		}
	})
}

// quote writes a word for a shell in one of four ways.
func quote(word string, way byte) string {
	switch way {
	case 0:
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	case 1:
		return `"` + strings.NewReplacer("\\", "\\\\", `"`, `\"`, "$", "\\$", "`", "\\`").Replace(word) + `"`
	case 2:
		return "$'" + strings.NewReplacer("\\", "\\\\", "'", "\\'").Replace(word) + "'"
	}
	if word == "" {
		return "''"
	}
	var b strings.Builder
	for _, r := range word {
		b.WriteString("\\" + string(r))
	}
	return b.String()
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		Read("cd sub && go test ./... 2>&1 | tail -n 20")
	}
}
