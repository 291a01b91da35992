package view_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/view"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"plain, äöü, 日本 🦺":          "plain, äöü, 日本 🦺",
		"a\nb\tc":                   `a\nb\tc`,
		"\x1b[2J":                   `\x1b[2J`,
		"\u009b2J":                  `\u009b2J`,
		"\x9b2J":                    "\uFFFD2J", // an 8-bit control sequence, no text at all
		"rm \u202efdp.exe":          `rm \u202efdp.exe`,
		"a\u200bb\u00a0c\ufeff":     `a\u200bb\u00a0c\ufeff`,
		"x\u3164y\u2800z\U000e0041": `x\u3164y\u2800z\U000e0041`,
		"back\\slash":               `back\slash`,
	} {
		if got := view.Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestPrintableShowsAllItHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		got := view.Printable(in)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("Printable(%q) = %q", in, got)
		}
		if again := view.Printable(got); again != got {
			t.Fatalf("printed twice %q is %q", got, again)
		}
	})
}

func TestCommand(t *testing.T) {
	for want, argv := range map[string][]string{
		``:                               {},
		`git log -1 --format=%H a/b_c.d`: {"git", "log", "-1", "--format=%H", "a/b_c.d"},
		`'' ''`:                          {"", ""},
		`echo 'a b' '$x' '~' 'it'\''s'`:  {"echo", "a b", "$x", "~", "it's"},
		`echo $'a\nb' $'\e[2J'`:          {"echo", "a\nb", "\x1b[2J"},
		`echo $'\342\200\256x'`:          {"echo", "\u202ex"},
		`'if' if`:                        {"if", "if"},
		`'A=b' A=b`:                      {"A=b", "A=b"},
		`echo '=ls' 'é'`:                 {"echo", "=ls", "é"},
	} {
		if got := view.Command(argv); got != want {
			t.Errorf("Command(%q) = %s, want %s", argv, got, want)
		}
	}
}

// pasted is the vector that a shell makes of a text.
func pasted(t interface{ Fatal(...any) }, sh, text string) []string {
	cmd := exec.Command(sh, "-c", `printf '%s\0' `+text)
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(text, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// tricky are arguments that shells like to read differently.
var tricky = []string{
	"", "\n", "a\n", "\n\n", "\r\n", "'", `\`, `\'`, `\n`, `a\`, `$'x'`, "$(id)", "`id`", "!!", "*", "~", "#", "-n", "%s", "{a,b}", "\x01", "\x7f", "é", "\u00a0", "\u202e1", "\x1b7", "\x80",
}

func argument(visible bool) *rapid.Generator[string] {
	text := rapid.OneOf(rapid.SampledFrom(tricky), rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune(`'"\$ !*?[]{}()<>|&;#~=%`+"`\n\t"))))
	return text.Filter(func(s string) bool {
		return !strings.Contains(s, "\x00") && (!visible || view.Printable(s) == s)
	})
}

func TestCommandPastedIsTheSameVector(t *testing.T) {
	for name, visible := range map[string]bool{"sh": true, "bash": false} {
		t.Run(name, func(t *testing.T) {
			sh := need.Program(t, name)
			rapid.Check(t, func(t *rapid.T) {
				argv := rapid.SliceOfN(argument(visible), 1, 8).Draw(t, "argv")
				text := view.Command(argv)
				if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Fatalf("it shows something invisible: %q", text)
				}
				if got := pasted(t, sh, text); !slices.Equal(got, argv) {
					t.Fatalf("%q pasted as %s is %q", argv, text, got)
				}
			})
		})
	}
}

// The program's name stands first: no keyword, no assignment.
func TestProgramStandsFirst(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"if", "time", "while", "A=b", "case", "ordinary"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nprintf '%s' \"${0##*/} $1\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, sh := range []string{"sh", "bash"} {
			cmd := exec.Command(need.Program(t, sh), "-c", view.Command([]string{name, "x"}))
			cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != name+" x" {
				t.Errorf("%s in %s: %q, %v", name, sh, out, err)
			}
		}
	}
}
