package policy

import (
	"path"
	"strings"
)

// wrapper describes how a program that starts another one reads its arguments.
type wrapper struct {
	// plain and valued list the options without and with a value as a following word.
	plain, valued string
	// operands is how many words stand between the options and the command.
	operands int
	// clear marks a wrapper that changes nothing about the command besides time,
	// priority or terminal; inside a shell text it needs no rule of its own.
	clear bool
	// feeds marks a wrapper that adds arguments of its own.
	feeds bool
}

// wrapperOf describes the wrapper of that base name. Options that are not listed make
// unfold try every later word as the command, so the table only saves false alarms.
func wrapperOf(name string) (wrapper, bool) {
	switch name {
	case "busybox", "toybox":
		return wrapper{}, true
	case "builtin":
		return wrapper{clear: true}, true
	case "chroot":
		return wrapper{plain: "--skip-chdir", operands: 1}, true
	case "command":
		return wrapper{plain: "-p", clear: true}, true
	case "doas":
		return wrapper{plain: "-n", valued: "-u -C"}, true
	case "env":
		return wrapper{plain: "-i - --ignore-environment -v --debug", valued: "-u --unset -C --chdir", clear: true}, true
	case "exec":
		return wrapper{plain: "-c -l", valued: "-a", clear: true}, true
	case "flock":
		return wrapper{plain: "-n -x -s -e -u -o -F --nb --nonblock --exclusive --shared", valued: "-w -E --timeout --wait", operands: 1}, true
	case "ionice":
		return wrapper{plain: "-t", valued: "-c -n --class --classdata", clear: true}, true
	case "nice":
		return wrapper{valued: "-n --adjustment", clear: true}, true
	case "nohup":
		return wrapper{clear: true}, true
	case "setsid":
		return wrapper{plain: "-c -f -w --ctty --fork --wait", clear: true}, true
	case "stdbuf":
		return wrapper{valued: "-i -o -e --input --output --error", clear: true}, true
	case "sudo":
		return wrapper{plain: "-n -E -H -k -S -b -P", valued: "-u -g -p -D -C -T -R -h --user --group --chdir --chroot"}, true
	case "time":
		return wrapper{plain: "-p -v", valued: "-f -o", clear: true}, true
	case "timeout":
		return wrapper{plain: "-v --foreground --preserve-status", valued: "-s -k --signal --kill-after", operands: 1, clear: true}, true
	case "xargs":
		return wrapper{plain: "-0 -r -t -x --null --no-run-if-empty", valued: "-n -P -I -L -s -d -a", feeds: true}, true
	case "unshare":
		return wrapper{plain: "-r -m -n -p -f -u -i -U"}, true
	case "strace", "ltrace":
		return wrapper{plain: "-f -q", valued: "-e -o -p"}, true
	case "watch":
		return wrapper{plain: "-t -x -d -b -e -g -c", valued: "-n"}, true
	case "caffeinate":
		return wrapper{plain: "-d -i -m -s -u", valued: "-t -w"}, true
	case "parallel", "nsenter", "runuser", "firejail", "bwrap", "gdb", "perf", "entr", "dbus-run-session", "systemd-run", "chrt", "taskset", "prlimit", "fakeroot", "unbuffer", "catchsegv", "numactl":
		// Their options are too many to list, so every word may begin the command.
		return wrapper{operands: -1}, true
	}
	return wrapper{}, false
}

// command returns where in argv the wrapped command begins, and whether every word
// before it was understood.
func (w wrapper) command(argv []string) (start int, sure bool) {
	if w.operands < 0 {
		return len(argv), false
	}
	for i := 1; i < len(argv); i++ {
		arg := argv[i]
		name, _, joined := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return min(i+1+w.operands, len(argv)), true
		case word(w.plain, arg), joined && word(w.valued, name):
		case word(w.valued, arg):
			i++
		case w.joinedShort(arg):
		case assignment(arg):
		case strings.HasPrefix(arg, "-"):
			return len(argv), false
		default:
			return min(i+w.operands, len(argv)), true
		}
	}
	return len(argv), true
}

// word reports whether s is one of the words of list, which blanks separate.
func word(list, s string) bool {
	if s == "" || strings.Contains(s, " ") {
		return false
	}
	for have := range strings.SplitSeq(list, " ") {
		if have == s {
			return true
		}
	}
	return false
}

// joinedShort reports whether arg is a short option with its value in the same word,
// such as -n5 or -oL, or the bare number that nice takes.
func (w wrapper) joinedShort(arg string) bool {
	if len(arg) < 3 || arg[0] != '-' || arg[1] == '-' {
		return len(arg) == 2 && arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9' && word(w.valued, "-n")
	}
	return word(w.valued, arg[:2]) || word(w.valued, "-n") && strings.Trim(arg[1:], "0123456789") == ""
}

// assignment reports whether arg sets a variable, as env and sudo take it.
func assignment(arg string) bool {
	name, _, ok := strings.Cut(arg, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/-")
}

// findCommands returns the commands that find would start for its files.
func findCommands(argv []string) [][]string {
	var all [][]string
	for i := 1; i < len(argv); i++ {
		switch argv[i] {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(argv) && argv[end] != ";" && !(argv[end] == "+" && argv[end-1] == "{}") {
				end++
			}
			if end > i+1 {
				all = append(all, argv[i+1:end])
			}
			i = end
		}
	}
	return all
}

// baseName returns the base name of a program in lower-case letters.
func baseName(program string) string { return strings.ToLower(path.Base(program)) }
