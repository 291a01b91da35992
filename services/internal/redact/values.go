package redact

import (
	"encoding/base64"
	"encoding/json/v2"
	"net/url"
	"slices"
	"strings"
)

const (
	// MinValueBytes is the shortest value that is looked for.
	MinValueBytes = 8
	// MaxValueBytes is the longest one; of a longer value only its beginning is
	// looked for.
	MaxValueBytes = 64 << 10
	// minLineBytes is the shortest line of a longer value that is looked for by
	// itself.
	minLineBytes = 16
	// minVariety is how many different bytes a value has at least.
	minVariety = 4
)

// Value is a secret that is known.
type Value struct {
	Name string // what stands in its place; no secret
	Text string
}

// Telltales are the values of an environment, given as NAME=VALUE, whose names
// say that they are secrets.
func Telltales(environment []string) (list []Value) {
	for _, v := range environment {
		if name, value, _ := strings.Cut(v, "="); tells(name) != silent && !strings.HasPrefix(value, "/") {
			list = append(list, Value{Name: name, Text: value})
		}
	}
	return list
}

// Weak says whether a value is too short or too plain to be looked for: what
// replaces "test" shreds a log and reveals itself.
func Weak(text string) bool {
	text = strings.Trim(text, " \t\r\n")
	seen := map[byte]bool{}
	for i := range len(text) {
		seen[text[i]] = true
	}
	return len(text) < MinValueBytes || len(seen) < minVariety
}

// value is one form of a known value, without its line breaks.
type value struct {
	name string
	text []byte
}

// look compares what follows with the value, over line breaks.
func (v *value) look(w window) found {
	i, breaks := w.at, 0
	for k := 0; k < len(v.text); i++ {
		if i == len(w.text) {
			if w.eof {
				return found{looked: i - w.at}
			}
			return found{verdict: more, from: w.at, need: i + len(v.text) - k, looked: i - w.at}
		}
		switch b := w.text[i]; {
		case b == v.text[k]:
			k++
			breaks = 0
		case k > 0 && breaks < 2 && breaksLine(b):
			breaks++
		default:
			return found{looked: i - w.at}
		}
	}
	return found{verdict: yes, name: v.name, from: w.at, to: i, looked: i - w.at}
}

// valueTable makes the table of known values; nil when there are none.
func valueTable(values []Value) *table {
	t := newTable(MinValueBytes, false, true)
	seen := map[string]bool{}
	for _, v := range values {
		for _, form := range forms(v.Text) {
			if !seen[form] {
				seen[form] = true
				t.add(form, &value{name: v.Name, text: []byte(form)})
			}
		}
	}
	if len(seen) == 0 {
		return nil
	}
	return t
}

// forms lists every text to look for, without line breaks.
func forms(text string) []string {
	text = strings.Trim(text, " \t\r\n")
	var list []string
	add := func(form string) {
		form = strings.NewReplacer("\r", "", "\n", "").Replace(form)
		if !Weak(form) {
			list = append(list, form[:min(len(form), MaxValueBytes)])
		}
	}
	for _, part := range append(pieces(text), text) {
		if Weak(part) {
			continue
		}
		add(part)
		for _, escaped := range escapes(part) {
			add(escaped)
		}
		for _, coded := range base64s(part) {
			add(coded)
		}
	}
	return list
}

// pieces lists the parts of a value that are secret by themselves: the lines of
// a text, the texts of a JSON document.
func pieces(text string) (list []string) {
	var document any
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &document) == nil {
		return leaves("", document)
	}
	if !strings.Contains(text, "\n") {
		return nil
	}
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \t\r\n")
		if len(line) >= minLineBytes && !strings.HasPrefix(line, "-----") {
			list = append(list, line)
		}
	}
	return list
}

// leaves lists the texts of a document that are secret by their name or look.
func leaves(name string, node any) (list []string) {
	switch node := node.(type) {
	case map[string]any:
		for key, below := range node {
			list = append(list, leaves(key, below)...)
		}
	case []any:
		for _, below := range node {
			list = append(list, leaves(name, below)...)
		}
	case string:
		if tells(name) != silent || dense(node) {
			list = append(append(list, strings.Trim(node, " \t\r\n")), pieces(node)...)
		}
	}
	return list
}

// escapes lists the value as URLs and JSON write it.
func escapes(text string) []string {
	list := []string{url.QueryEscape(text), url.PathEscape(text)}
	for _, e := range slices.Clone(list) {
		list = append(list, lowerEscapes(e))
	}
	plain := quoted(text)
	html := forHTML.Replace(plain)
	return append(list, plain, html, strings.ReplaceAll(plain, "/", `\/`), quoted(plain), quoted(html))
}

// forHTML are the escapes of JSON that is safe in HTML too.
var forHTML = strings.NewReplacer("<", "\\u003c", ">", "\\u003e", "&", "\\u0026")

// quoted is the inside of a JSON string.
func quoted(text string) string {
	data, err := json.Marshal(strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		return text
	}
	return string(data[1 : len(data)-1])
}

// lowerEscapes writes %2F as %2f.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			b[i+1], b[i+2] = lower(b[i+1]), lower(b[i+2])
		}
	}
	return string(b)
}

// base64s lists the part of each encoding of a longer text that depends on the
// value alone, for the three places at which it can begin in a group.
func base64s(text string) (list []string) {
	for shift := range 3 {
		padded := append(make([]byte, shift), text...)
		first, last := (shift*8+5)/6, len(padded)*8/6
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			list = append(list, e.EncodeToString(padded)[first:last])
		}
	}
	return list
}
