package redact

import "strings"

// telling says how much the name of a field gives away.
type telling int8

const (
	silent   telling = iota // the name says nothing
	token                   // what looks random in it is a secret
	password                // nearly anything in it is a secret
)

// words are the parts of names that tell. A longer one goes before its beginning.
var words = [...]struct {
	word string
	says telling
}{
	{"password", password}, {"passphrase", password}, {"passwd", password}, {"pwd", password},
	{"secret", token}, {"token", token}, {"apikey", token}, {"api_key", token}, {"api-key", token},
	{"accesskey", token}, {"access_key", token}, {"access-key", token}, {"accountkey", token}, {"account_key", token},
	{"privatekey", token}, {"private_key", token}, {"private-key", token}, {"signing_key", token}, {"encryption_key", token},
	{"credential", token}, {"_auth", token},
}

// harmless are the ends of names that speak of a secret without holding it.
var harmless = [...]string{
	"name", "file", "path", "dir", "url", "uri", "endpoint", "type", "kind", "class", "format", "version", "expires", "expiry", "expiration",
	"ttl", "age", "at", "count", "limit", "length", "len", "size", "max", "min", "budget", "usage", "used", "policy", "ref", "arn", "scope",
	"id", "env", "var", "stdin", "prompt", "hint", "field", "label", "mode", "store", "manager", "provider", "required", "s",
}

// tells judges a whole name, such as DB_PASSWORD or --github-token.
func tells(name string) telling {
	name = strings.ToLower(name)
	for _, w := range words {
		if i := strings.LastIndex(name, w.word); i >= 0 && !isHarmless(name[i+len(w.word):]) {
			if w.word == "pwd" && strings.Trim(name[:i], "_-") != "" && strings.Trim(name[:i], "old_-") == "" {
				continue // OLDPWD is a folder
			}
			return w.says
		}
	}
	return silent
}

// isHarmless judges what follows a telling word in a name.
func isHarmless(end string) bool {
	end = strings.Trim(strings.ToLower(end), "_-. ")
	if end == "" {
		return false
	}
	for _, h := range harmless {
		if e, ok := strings.CutSuffix(end, h); ok && (e == "" || h != "s" && strings.ContainsAny(e[len(e)-1:], "_-.")) {
			return true
		}
	}
	return false
}

// secretIn says whether the value of a field is a secret. Assigned says that
// the field is no prose: it was written with "=", or both sides are quoted.
func secretIn(says telling, value string, assigned bool) bool {
	switch {
	case says == silent || stands(value) || filePath(value):
		return false
	case says == password && assigned:
		return len(value) >= 5 && !constant(value)
	case says == password:
		return len(value) >= 6 && (mixed(value) || dense(value))
	}
	return dense(value)
}

// stands says that a value only stands for another: a variable, a template, a
// reference, a placeholder.
func stands(value string) bool {
	if value == "" || strings.ContainsRune("$<{%*[(&@", rune(value[0])) || strings.HasPrefix(value, "...") || strings.Contains(value, "${") {
		return true
	}
	for _, scheme := range [...]string{"secret:", "env:", "file:", "cred:", "cmd:", "vault:", "op://", "os.", "process.env", "redacted", "xxxx", "****"} {
		if strings.HasPrefix(strings.ToLower(value), scheme) {
			return true
		}
	}
	return strings.Trim(value, "xX*.-_#") == ""
}

// filePath says that a value is the name of a file.
func filePath(value string) bool {
	for _, start := range [...]string{"/", "./", "../", "~/"} {
		if !strings.HasPrefix(value, start) {
			continue
		}
		for part := range strings.SplitSeq(value, "/") {
			if len(part) >= 24 && dense(part) && !strings.ContainsAny(part, ".-_") {
				return false
			}
		}
		return true
	}
	return false
}

// constant says that a value is a word of a language.
func constant(value string) bool {
	switch strings.ToLower(strings.TrimRight(value, ",;")) {
	case "false", "undefined", "required", "optional", "string", "prompt", "example", "changed", "unknown", "incorrect", "missing", "expired", "password", "passwd", "secret":
		return true
	}
	return false
}

// mixed says that a value has letters and digits, or letters and signs.
func mixed(value string) bool {
	var letter, digit, sign bool
	for i := range len(value) {
		switch b := value[i]; {
		case alpha(b):
			letter = true
		case b >= '0' && b <= '9':
			digit = true
		case b > ' ' && strings.IndexByte("!@#$%^&*+=?~", b) >= 0:
			sign = true
		}
	}
	return letter && digit || letter && sign
}

// dense says that a text looks random: digits among letters, or letters of both
// cases in no order that words have.
func dense(value string) bool {
	if len(value) < 8 || strings.ContainsAny(value, " \t(") {
		return false
	}
	digits, letters, turns := 0, 0, 0
	var seen [256]bool
	kinds := 0
	for i := range len(value) {
		b := value[i]
		if !seen[b] {
			seen[b] = true
			kinds++
		}
		switch {
		case b >= '0' && b <= '9':
			digits++
		case alpha(b):
			letters++
			if i > 0 && alpha(value[i-1]) && upper(b) != upper(value[i-1]) {
				turns++
			}
		}
	}
	switch {
	case kinds < 5:
		return false
	case digits >= 2 && letters >= 3:
		return !dated(value)
	case len(value) >= 20 && kinds >= 12 && !strings.ContainsAny(value, ".:-_"):
		return turns*4 >= len(value) || digits >= 1 && turns*6 >= len(value)
	}
	return false
}

// dated says that a value is a time of RFC 3339.
func dated(value string) bool {
	return len(value) >= 20 && value[4] == '-' && value[7] == '-' && value[10] == 'T' && value[13] == ':'
}

func alpha(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
func upper(b byte) bool { return b >= 'A' && b <= 'Z' }

// Telling says whether a name, such as that of a variable, belongs to a secret.
func Telling(name string) bool { return tells(name) != silent }
