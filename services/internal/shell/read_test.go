package shell

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTexts reads testdata/texts.txt: a line with a text (\n stands for a line end),
// then lines that begin with ">" for its commands in order and with "?" for its doubts.
func TestTexts(t *testing.T) {
	file, err := os.Open("testdata/texts.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, number, first := "", 0, 0
	var want []string
	check := func() {
		if first == 0 {
			return
		}
		if got := rendered(Read(text)); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("line %d: %q\n got %q\nwant %q", first, text, got, want)
		}
	}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		number++
		line := lines.Text()
		switch {
		case line == "", strings.HasPrefix(line, "## "):
		case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "? "):
			want = append(want, line)
		default:
			check()
			text, first, want = strings.ReplaceAll(line, "␤", "\n"), number, nil
		}
	}
	check()
}

// rendered shows a script in the format of the file: plain words quoted where needed,
// open ones in braces, harmless builtins in brackets.
func rendered(s Script) []string {
	var lines []string
	for _, c := range s.Commands {
		var words []string
		for i, w := range c.Argv {
			switch {
			case c.open(i):
				w = "{" + w + "}"
			case w == "" || strings.ContainsAny(w, " \n"):
				w = fmt.Sprintf("%q", w)
			}
			words = append(words, w)
		}
		line := strings.Join(words, " ")
		if c.Harmless() {
			line = "[" + line + "]"
		}
		if len(c.Env) > 0 {
			line += " env=" + strings.Join(c.Env, ",")
		}
		if len(c.Folders) > 0 {
			line += " in=" + strings.Join(c.Folders, ",")
		}
		lines = append(lines, "> "+line)
	}
	for _, d := range s.Doubts {
		lines = append(lines, "? "+string(d.Kind))
	}
	return lines
}

func TestTextOf(t *testing.T) {
	for line, want := range map[string]string{
		"sh|-c|ls":                    "ls",
		"/bin/bash|-lc|ls":            "ls (start-up)",
		"bash|-e|-o|pipefail|-c|ls|x": "ls",
		"bash|-ceo|pipefail|ls":       "ls",
		"bash|-c|-e|ls":               "ls",
		"bash|--rcfile|f|-c|ls":       "ls (start-up)",
		"bash|--norc|-c|ls":           "ls",
		"zsh|-c|ls":                   "ls (grammar)",
		"sh|-c":                       "-c",
		"sh|x.sh|-c|ls":               "none",
		"sh|--|x.sh":                  "none",
		"sh":                          "input",
		"sh|-s|a":                     "input",
		"eval|rm|a":                   "rm a",
		"trap|rm a|EXIT":              "rm a (builtin)",
		"trap|-|EXIT":                 "none",
		"watch|-n|2|git|push":         "git push",
		"ssh|-p|22|host|git|push":     "git push (remote)",
		"ssh|host":                    "none",
		"su|-c|rm a|root":             "rm a",
		"su|root|--command=rm a":      "rm a",
		"script|-qc|rm a|/dev/null":   "rm a",
		"flock|/tmp/l|-c|rm a":        "rm a",
		"python3|-c|print()":          "none",
		"":                            "none",
		"bash|-O|extglob|-c|ls":       "ls",
		"bash|+x|-c|ls":               "ls",
		"dash|-c|ls|--login":          "ls",
		"fish|--command|ls":           "ls (grammar)",
		"ssh|-o|ProxyCommand=x|h|ls":  "ls (remote)",
		"watch|-x|ls":                 "ls",
		"eval|":                       "",
		"runuser|-u|x|-c|ls":          "ls",
		"flock|-n|/tmp/l|git|push":    "none",
		"bash|--init-file|f|--posix|-c|echo a; ls": "echo a; ls (start-up)",
	} {
		argv := strings.Split(line, "|")
		if line == "" {
			argv = nil
		}
		c, ok := TextOf(argv)
		got := c.Text
		switch {
		case !ok:
			got = "none"
		case c.Input:
			got = "input"
		}
		for _, d := range c.Doubts {
			got += map[Kind]string{Startup: " (start-up)", Foreign: " (grammar)", Builtin: " (builtin)", Remote: " (remote)"}[d]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", argv, got, want)
		}
	}
}

func TestBoundsAreKeptBeforeTheParser(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		kind Kind
	}{
		"long":        {"rm a #" + strings.Repeat("x", MaxText_bytes), TooLong},
		"deep":        {strings.Repeat("$(", 20000) + "rm a", TooDeep},
		"deep enough": {strings.Repeat("( ", MaxDepth+1) + "rm a" + strings.Repeat(" )", MaxDepth+1), TooDeep},
		"deep ifs":    {strings.Repeat("if ", 10000) + "rm a", TooDeep},
		"NUL":         {"ls\x00rm a", Hidden},
		"return":      {"ls \\\r\nrm a", Hidden},
		"bidi":        {"ls \u202e rm a", Hidden},
		"no UTF-8":    {"rm a \xff", Hidden},
		"escape":      {"rm a \x1b[2K", Hidden},
		"two groups":  {"((rm -a))", Arithmetic}, // dash reads two groups there
		"grammar":     {"rm a\n((", Grammar},
		"grammar 2":   {"rm a; if", Grammar},
	} {
		s := Read(c.text)
		if !s.Doubtful(c.kind) {
			t.Errorf("%s: doubts %v, want %s", name, s.Doubts, c.kind)
		}
		if !names(s, "rm") {
			t.Errorf("%s: rm is nowhere", name)
		}
	}
}

// names reports whether a word that could be a command is name.
func names(s Script, name string) bool {
	for _, c := range s.Commands {
		if c.Argv[0] == name {
			return true
		}
	}
	for _, words := range s.Rest {
		for _, w := range words {
			if strings.HasSuffix(w, name) {
				return true
			}
		}
	}
	return false
}

// TestTheWorkGrowsWithTheLength reads the texts that cost most. With one walk for each
// word of a nest this takes minutes.
func TestTheWorkGrowsWithTheLength(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("a&&", 20000) + "a",
		strings.Repeat("a|", 30000) + "a",
		strings.Repeat("$(", 2000) + "a" + strings.Repeat(")", 2000),
		strings.Repeat("\"$(", 2000) + "a" + strings.Repeat(")\"", 2000),
		strings.Repeat("${x:-", 4000) + strings.Repeat("}", 4000),
		strings.Repeat("A=1 x;", 10000),
		strings.Repeat("A=1;", 16000),
		strings.Repeat("cd a;", 12000),
		"echo " + strings.Repeat("a ", 30000),
		"echo " + strings.Repeat("\\a", 30000),
		strings.Repeat("cat <<E\n$x\nE\n", 4000),
		"echo $((" + strings.Repeat("-", 60000) + "1))",
		"[[ " + strings.Repeat("! ", 3000) + "a ]]",
		strings.Repeat("! ", 4000) + "a",
		strings.Repeat("f(){ ", 2000) + strings.Repeat("}", 2000),
	} {
		Read(text)
	}
}
