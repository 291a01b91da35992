package policy

import "strings"

// spelled reports whether an argument is one of those that list denies, however it is
// written. An entry is read by its first letters:
//
//   - "--force" is that option in every spelling of getopt_long: abbreviated (--forc),
//     with a value (--force=x), with one dash (-force).
//   - "--mode=x*" is that option with such a value, in the same word or the next.
//   - "-f" is that letter in any group of short options (-xf, -fx); "-rf" is both
//     letters, together or apart; more than three letters are a word ("-delete").
//   - Anything else is a pattern for an argument of any kind or for the value behind
//     its equals sign.
//
// Options end at "--", as they do for the programs that read them.
func spelled(list, args []string) bool {
	for _, entry := range list {
		if spelledOne(entry, args) {
			return true
		}
	}
	return false
}

func spelledOne(entry string, args []string) bool {
	if option(entry) && !strings.HasPrefix(entry, "--") {
		return shortOptions(entry, args)
	}
	name, pattern, valued := strings.Cut(entry, "=")
	for i, arg := range args {
		switch {
		case entry == arg:
			return true
		case !strings.HasPrefix(entry, "-"):
			_, value, _ := strings.Cut(arg, "=")
			if fitsWide(entry, arg) || value != "" && fitsWide(entry, value) {
				return true
			}
		case arg == "--":
			return false
		case option(arg):
			given, value, joined := strings.Cut(arg, "=")
			if !abbreviates(given, name) {
				continue
			}
			if !valued || joined && fitsWide(pattern, value) || !joined && i+1 < len(args) && fitsWide(pattern, args[i+1]) {
				return true
			}
		}
	}
	return false
}

// maxGroup is how many letters an entry such as "-rf" may have to mean a group of
// short options rather than a word of its own, such as "-exec".
const maxGroup = 3

// shortOptions reports whether the options among args hold the letters of entry, in
// one group or in several: -fr, -r -f and -xrf all spell "-rf".
func shortOptions(entry string, args []string) bool {
	missing := entry[1:]
	for _, arg := range args {
		switch {
		case arg == "--":
			return false
		case !option(arg):
		case strings.Contains(entry, "*") && fitsWide(entry, arg), entry == arg:
			return true
		case strings.HasPrefix(arg, "--"):
			if given, _, _ := strings.Cut(arg, "="); len(entry) > 2 && given == "-"+entry {
				return true
			}
		case len(entry) <= maxGroup+1:
			missing = strings.Map(func(letter rune) rune {
				if strings.ContainsRune(arg[1:], letter) {
					return -1
				}
				return letter
			}, missing)
			if missing == "" {
				return true
			}
		}
	}
	return false
}

// abbreviates reports whether given is a spelling of the long option name.
func abbreviates(given, name string) bool {
	if strings.Contains(name, "*") {
		return fitsWide(name, given)
	}
	if !strings.HasPrefix(given, "--") {
		return given == name[1:]
	}
	return len(given) > 2 && strings.HasPrefix(name, given)
}

// holdsText reports whether an argument holds one of the texts, in any letter case.
func holdsText(texts, args []string) bool {
	for _, text := range texts {
		text = strings.ToLower(text)
		for _, arg := range args {
			if strings.Contains(strings.ToLower(arg), text) {
				return true
			}
		}
	}
	return false
}
