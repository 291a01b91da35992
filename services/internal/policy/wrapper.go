package policy

import (
	"path"
	"strings"
)

// view is one command that an argument vector plainly shows: the vector itself, or
// what a wrapper at its head would start.
type view struct {
	argv []string
	// folders are the working folders that relative operands may count from.
	folders []string
	// wrapped marks a command behind a wrapper; where its program lies is not known.
	wrapped bool
	// loose marks words too many to try one by one; naming a denied program among them
	// is enough to be denied.
	loose bool
}

// wrapper describes how a program that starts another one reads its arguments.
type wrapper struct {
	// plain and valued list the options without and with a value as a following word.
	plain, valued string
	// operands is how many words stand between the options and the command.
	operands int
}

// wrappers are the programs that views looks through. Options that are not listed
// make it try every later word as the command, so the table only saves false alarms.
func wrappers() map[string]wrapper {
	return map[string]wrapper{
		"busybox":    {},
		"builtin":    {},
		"chroot":     {plain: "--skip-chdir", operands: 1},
		"command":    {plain: "-p"},
		"doas":       {plain: "-n", valued: "-u -C"},
		"env":        {plain: "-i - --ignore-environment -v --debug", valued: "-u --unset -C --chdir"},
		"exec":       {plain: "-c -l", valued: "-a"},
		"ionice":     {plain: "-t", valued: "-c -n --class --classdata"},
		"nice":       {valued: "-n --adjustment"},
		"nohup":      {},
		"setsid":     {plain: "-c -f -w --ctty --fork --wait"},
		"stdbuf":     {valued: "-i -o -e --input --output --error"},
		"sudo":       {plain: "-n -E -H -k -S -b -P", valued: "-u -g -p -D -C -T -R -h --user --group --chdir --chroot"},
		"time":       {plain: "-p -v", valued: "-f -o"},
		"timeout":    {plain: "-v --foreground --preserve-status", valued: "-s -k --signal --kill-after", operands: 1},
		"toybox":     {},
		"xargs":      {plain: "-0 -r -t -x", valued: "-n -P -I -L -s -d -a"},
		"unshare":    {plain: "-r -m -n -p -f -u -i -U"},
		"strace":     {plain: "-f -q", valued: "-e -o -p"},
		"watch":      {plain: "-t -x", valued: "-n"},
		"caffeinate": {plain: "-d -i -m -s -u", valued: "-t -w"},
	}
}

const maxWrapping = 8

// views returns every command that argv plainly shows, argv itself first.
func views(argv, folders []string) []view {
	table := wrappers()
	all := []view{{argv: argv, folders: folders}}
	for depth := 0; depth < maxWrapping; depth++ {
		outer := all[len(all)-1]
		if len(outer.argv) < 2 {
			return all
		}
		w, known := table[strings.ToLower(path.Base(outer.argv[0]))]
		if !known {
			return all
		}
		start, sure := w.command(outer.argv)
		reached := reachable(outer.argv[1:start], outer.folders)
		if !sure {
			return append(all, suffixes(outer.argv, reached)...)
		}
		if start >= len(outer.argv) {
			return all
		}
		all = append(all, view{argv: outer.argv[start:], folders: reached, wrapped: true})
	}
	last := all[len(all)-1]
	return append(all, suffixes(last.argv, last.folders)...)
}

// command returns where in argv the wrapped command begins, and whether every word
// before it was understood.
func (w wrapper) command(argv []string) (start int, sure bool) {
	plain, valued := strings.Fields(w.plain), strings.Fields(w.valued)
	i := 1
	for ; i < len(argv); i++ {
		arg := argv[i]
		name, _, joined := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			i++
			return min(i+w.operands, len(argv)), true
		case contains(plain, arg), joined && contains(valued, name):
		case contains(valued, arg):
			i++
		case joinedShort(arg, valued):
		case assignment(arg):
		case strings.HasPrefix(arg, "-"):
			return len(argv), false
		default:
			return min(i+w.operands, len(argv)), true
		}
	}
	return len(argv), true
}

// joinedShort reports whether arg is a short option with its value in the same word,
// such as -n5 or -oL, or the bare number that nice takes.
func joinedShort(arg string, valued []string) bool {
	if len(arg) < 3 || arg[0] != '-' || arg[1] == '-' {
		return false
	}
	return contains(valued, arg[:2]) || contains(valued, "-n") && strings.Trim(arg[1:], "0123456789") == ""
}

// assignment reports whether arg sets a variable, as env and sudo take it.
func assignment(arg string) bool {
	name, _, ok := strings.Cut(arg, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/-")
}

// maxSuffixes bounds the words that are tried one by one, since the work grows with
// their square and whoever proposes chooses how many there are.
const maxSuffixes = 64

// suffixes returns every later word of argv as if a command began there. A word with
// blanks may itself hold a command (env -S), so its fields are tried as well.
func suffixes(argv, folders []string) []view {
	if len(argv) > maxSuffixes {
		return []view{{argv: argv[1:], wrapped: true, loose: true}}
	}
	folders = reachable(argv[1:], folders)
	var all []view
	for i := 1; i < len(argv); i++ {
		all = append(all, view{argv: argv[i:], folders: folders, wrapped: true})
		fields := splitWord(argv[i])
		if len(fields) > maxSuffixes {
			all = append(all, view{argv: fields, wrapped: true, loose: true})
			continue
		}
		if len(fields) == 1 && fields[0] == argv[i] {
			continue
		}
		whole := append(fields, argv[i+1:]...)
		for j := range fields {
			all = append(all, view{argv: whole[j:], folders: folders, wrapped: true})
		}
	}
	return all
}

// splitWord returns what env -S would make of a word, as far as no quotes are involved.
func splitWord(word string) []string {
	return strings.Fields(strings.TrimPrefix(strings.TrimPrefix(word, "--split-string="), "-S"))
}

// maxFolders bounds the work for one wrapper; it is far above what a person writes.
const maxFolders = 32

// reachable adds to folders those outside the working folder that the words of a
// wrapper may change to (env -C, sudo --chdir, chroot).
func reachable(words, folders []string) []string {
	all := append([]string(nil), folders...)
	for _, word := range words {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		} else if len(word) > 2 && word[0] == '-' && word[1] != '-' {
			word = word[2:]
		}
		switch {
		case len(all) >= maxFolders:
			return all
		case path.IsAbs(word):
			all = append(all, path.Clean(word))
		case strings.HasPrefix(word, ".."):
			for _, folder := range folders {
				all = append(all, path.Join("/", folder, word))
			}
		}
	}
	return all
}
