package redact

import (
	"path"
	"regexp"
	"strings"
)

// Detector finds secrets in what somebody proposes. It says which rule found
// one and never repeats the text.
type Detector struct {
	shapes *table
	own    []*regexp.Regexp
}

// NewDetector makes a detector that knows further patterns beside its own, as
// regular expressions.
func NewDetector(list ...string) (*Detector, error) {
	own, err := patterns(list)
	if err != nil {
		return nil, err
	}
	return &Detector{shapes: shapeTable(), own: own}, nil
}

// Text says which rule finds a secret in a text, "" when none does.
func (d *Detector) Text(text string) string {
	for _, re := range d.own {
		if re.MatchString(text) {
			return ownName
		}
	}
	first := ""
	s := newStage(d.shapes, false, func([]byte) {})
	s.note = func(name string) {
		if first == "" {
			first = name
		}
	}
	s.write([]byte(text))
	s.close()
	if first == "" && s.closed {
		return "text that takes too long to search"
	}
	return first
}

// Pair judges a value by its name as well, such as those of an environment.
func (d *Detector) Pair(name, value string) string {
	if rule := d.Text(value); rule != "" {
		return rule
	}
	if says := tells(name); secretIn(says, strings.Trim(value, " \t\r\n"), true) {
		return "value behind a telling name"
	}
	return ""
}

// Argv finds the first argument that is a secret, by its form or by the option
// in front of it; the rule is "" when there is none.
func (d *Detector) Argv(argv []string) (i int, rule string) {
	for i, arg := range argv {
		if rule := d.Text(arg); rule != "" {
			return i, rule
		}
	}
	for i := range argv {
		if i > 0 && flagged(argv[i-1], argv[i]) {
			return i, "value behind a telling option"
		}
		if name, value, ok := strings.Cut(argv[i], "="); ok && strings.HasPrefix(name, "-") && secretIn(tells(name), value, true) {
			return i, "value behind a telling option"
		}
	}
	return optionOf(argv)
}

// flagged says that an argument is the secret of the option before it.
func flagged(option, value string) bool {
	return strings.HasPrefix(option, "-") && !strings.Contains(option, "=") && !strings.HasPrefix(value, "-") &&
		!strings.ContainsAny(value, " \t") && secretIn(tells(option), value, true)
}

// option is one that holds a password in programs of that name.
type option struct {
	program, option string
	glued           bool // the value stands in the same argument
	pair            bool // the value is user:password
}

var options = [...]option{
	{"mysql", "-p", true, false}, {"mysqldump", "-p", true, false}, {"mysqladmin", "-p", true, false}, {"mariadb", "-p", true, false},
	{"sshpass", "-p", true, false}, {"sshpass", "-p", false, false}, {"docker", "-p", false, false}, {"podman", "-p", false, false},
	{"helm", "--password", false, false}, {"redis-cli", "-a", false, false}, {"mongo", "-p", false, false}, {"mongosh", "-p", false, false},
	{"ldapsearch", "-w", false, false}, {"ldapmodify", "-w", false, false}, {"sqlcmd", "-P", false, false}, {"zip", "-P", false, false},
	{"unzip", "-P", false, false}, {"7z", "-p", true, false}, {"7za", "-p", true, false}, {"curl", "-u", false, true}, {"curl", "--user", false, true},
	{"curl", "-u", true, true}, {"curl", "--proxy-user", false, true}, {"smbclient", "-U", false, true}, {"ipmitool", "-P", false, false}, {"snmpget", "-A", false, false},
}

// optionOf finds the password of a program that is known to take one.
func optionOf(argv []string) (int, string) {
	const rule = "password option of a known program"
	for p, arg := range argv {
		name := path.Base(arg)
		for _, o := range options {
			if o.program != name || (name == "docker" || name == "podman") && (p+1 >= len(argv) || argv[p+1] != "login") {
				continue
			}
			for i := p + 1; i < len(argv); i++ {
				value, ok := "", false
				if o.glued && len(argv[i]) > len(o.option) {
					value, ok = strings.CutPrefix(argv[i], o.option)
				} else if !o.glued && argv[i-1] == o.option {
					value, ok = argv[i], true
				}
				if ok && o.secret(value) {
					return i, rule
				}
			}
		}
		for i := p + 1; i < len(argv) && name == "openssl"; i++ {
			if word, ok := strings.CutPrefix(argv[i], "pass:"); ok && !stands(word) {
				return i, rule
			}
		}
	}
	return 0, ""
}

func (o option) secret(value string) bool {
	if o.pair {
		_, after, ok := strings.Cut(strings.ReplaceAll(value, "%", ":"), ":")
		return ok && after != "" && !stands(after)
	}
	return value != "" && !stands(value) && !strings.HasPrefix(value, "-")
}
