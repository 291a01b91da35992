package shell

import (
	"path"
	"strings"
)

// Carried is a text that an argument vector hands to a shell.
type Carried struct {
	// Text is the text; "" when the shell reads its commands elsewhere.
	Text string
	// At is the index of the argument that holds the text, or begins it.
	At int
	// Doubts are what is doubtful about the shell rather than the text.
	Doubts []Kind
	// Input reports that the shell reads its commands from its input.
	Input bool
}

// TextOf finds the text that an argument vector hands to a shell: sh -c, eval, trap,
// su -c, watch, ssh, script -c, flock -c. It reports false when there is none.
func TextOf(argv []string) (Carried, bool) {
	if len(argv) == 0 {
		return Carried{}, false
	}
	switch name := strings.ToLower(path.Base(argv[0])); name {
	case "sh", "bash", "dash", "ash", "rbash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh":
		return shellText(name, argv)
	case "eval":
		return joined(argv, 1, 0, "")
	case "trap":
		if len(argv) < 2 || argv[1] == "-" || strings.HasPrefix(argv[1], "-") && argv[1] != "--" {
			return Carried{}, false
		}
		at := 1
		if argv[1] == "--" {
			at = 2
		}
		return whole(argv, at, Builtin)
	case "watch":
		return joined(argv, operand(argv, "-n -q --interval --equexit"), 0, "")
	case "ssh":
		host := operand(argv, "-b -c -B -D -E -e -F -I -i -J -L -l -m -O -o -p -P -Q -R -S -W -w")
		return joined(argv, host, 1, Remote)
	case "su", "runuser", "script", "flock":
		for i, arg := range argv[1:] {
			if arg == "-c" || arg == "--command" || arg == "--session-command" {
				return whole(argv, i+2, "")
			}
			if text, ok := strings.CutPrefix(arg, "--command="); ok {
				return Carried{Text: text, At: i + 1}, true
			}
			if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.HasSuffix(arg, "c") && name != "flock" {
				return whole(argv, i+2, "")
			}
		}
	}
	return Carried{}, false
}

// shellText reads the arguments of a shell as it does: options first, then the text
// after -c, or a script.
func shellText(name string, argv []string) (Carried, bool) {
	var c Carried
	switch name {
	case "zsh", "fish", "csh", "tcsh", "ksh", "mksh":
		c.Doubts = append(c.Doubts, Foreign)
	}
	text, input := false, false
	i := 1
	for ; i < len(argv); i++ {
		arg := argv[i]
		if arg == "--" || arg == "-" {
			i++
			break
		}
		if len(arg) < 2 || arg[0] != '-' && arg[0] != '+' || !strings.HasPrefix(arg, "--") && !letters(arg[1:]) {
			break
		}
		if strings.HasPrefix(arg, "--") {
			if arg == "--rcfile" || arg == "--init-file" {
				i++
			}
			if arg == "--command" {
				text = true
			} else if arg != "--norc" && arg != "--noprofile" && arg != "--posix" {
				c.Doubts = append(c.Doubts, Startup)
			}
			continue
		}
		for _, letter := range arg[1:] {
			switch letter {
			case 'c':
				text = true
			case 's':
				input = true
			case 'o', 'O':
				i++
			case 'l', 'i', 'a', 'D':
				c.Doubts = append(c.Doubts, Startup)
			}
		}
	}
	switch {
	case text && i < len(argv):
		c.Text, c.At = argv[i], i
		return c, true
	case text:
		// There is none, and the shell fails, unless it reads its options in another way.
		c.Doubts = append(c.Doubts, Sourced)
		c.Text, c.At = strings.Join(argv[1:], "\n"), 1
		return c, true
	case input || i >= len(argv):
		c.Input = true
		return c, true
	}
	return c, false
}

// letters reports whether s could be a group of options. A text that happens to begin
// with a dash holds other signs as well.
func letters(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// operand returns the index of the first word that is no option and no value of one.
func operand(argv []string, valued string) int {
	with := strings.Fields(valued)
	for i := 1; i < len(argv); i++ {
		arg := argv[i]
		if arg == "--" {
			return i + 1
		}
		if len(arg) < 2 || arg[0] != '-' {
			return i
		}
		for _, option := range with {
			if arg == option {
				i++
			}
		}
	}
	return len(argv)
}

// joined returns the words from skip words behind at on as one text, as programs do
// that hand their operands to a shell.
func joined(argv []string, at, skip int, doubt Kind) (Carried, bool) {
	if at+skip >= len(argv) {
		return Carried{}, false
	}
	c := Carried{Text: strings.Join(argv[at+skip:], " "), At: at + skip}
	if doubt != "" {
		c.Doubts = []Kind{doubt}
	}
	return c, true
}

func whole(argv []string, at int, doubt Kind) (Carried, bool) {
	if at >= len(argv) {
		return Carried{}, false
	}
	c := Carried{Text: argv[at], At: at}
	if doubt != "" {
		c.Doubts = []Kind{doubt}
	}
	return c, true
}
