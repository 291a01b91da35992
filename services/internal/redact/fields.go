package redact

import (
	"bytes"
	"strings"
)

// reach is how far a rule looks ahead, in bytes.
const reach = 1024

// cursor walks ahead in a text. Past the end it sees -1; short then says that
// the text may go on.
type cursor struct {
	window
	i     int
	short bool
}

func (c *cursor) peek() int {
	if c.i < len(c.text) {
		return int(c.text[c.i])
	}
	c.short = c.short || !c.eof
	return -1
}

// word reads a word in any case.
func (c *cursor) word(word string) bool {
	for k := range len(word) {
		b := c.peek()
		if b < 0 || lower(byte(b)) != word[k] {
			return false
		}
		c.i++
	}
	return true
}

// while passes over at most most bytes of a set and returns them.
func (c *cursor) while(set func(byte) bool, most int) []byte {
	from := c.i
	for c.i-from < most {
		b := c.peek()
		if b < 0 || !set(byte(b)) {
			break
		}
		c.i++
	}
	return c.text[from:c.i]
}

// quote passes over a quotation mark, escaped or not, and returns it.
func (c *cursor) quote() byte {
	from := c.i
	c.while(func(b byte) bool { return b == '\\' }, 3)
	b := c.peek()
	if b != '"' && b != '\'' && b != '`' {
		c.i = from
		return 0
	}
	c.i++
	return byte(b)
}

// answer is what a rule says after walking: more when the end was touched.
func (c *cursor) answer(f found, secret int) found {
	if c.short {
		return found{verdict: more, from: min(secret, len(c.text)), need: len(c.text) + 1, looked: c.i - c.at}
	}
	f.looked = c.i - c.at
	return f
}

func blank(b byte) bool    { return b == ' ' || b == '\t' }
func digit(b byte) bool    { return b >= '0' && b <= '9' }
func wordlike(b byte) bool { return alpha(b) || digit(b) || b == '_' }
func named(b byte) bool    { return wordlike(b) || b == '-' || b == '.' }
func tokenish(b byte) bool { return wordlike(b) || strings.IndexByte("-.+/=~", b) >= 0 }

// bare is a byte of a value without quotation marks.
func bare(b byte) bool { return b > ' ' && b != 0x7f && strings.IndexByte("\"'`,;<>)}]|\\", b) < 0 }

// inside is a byte of a value between quotation marks.
func inside(b byte) bool { return b >= ' ' && strings.IndexByte("\"'`\\", b) < 0 }

// field is a rule for name=value, "name": "value" and their like, where the
// name holds a word that tells.
type field struct {
	word string
	says telling
}

func (f *field) look(w window) found {
	c := &cursor{window: w, i: w.at}
	if !c.word(f.word) {
		return c.answer(found{}, len(w.text))
	}
	end := c.while(named, 32)
	closing := c.quote()
	c.while(blank, 4)
	sign := c.peek()
	c.i++
	if sign != '=' && sign != ':' {
		c.i--
		return c.answer(found{}, len(w.text))
	}
	if b := c.peek(); b == '=' || sign == '=' && b == '>' {
		c.i++
	}
	spaced := len(c.while(blank, 4)) > 0
	opening := c.quote()
	from := c.i
	set := bare
	if opening != 0 {
		set = inside
	}
	text := c.while(set, reach)
	var rest tail
	if len(text) == reach {
		rest = charTail(set)
	}
	value := string(text)
	if isHarmless(string(end)) || f.word == "secret" && sign == ':' && !spaced && reference(value) ||
		f.word == "pwd" && strings.HasPrefix(value, "/") || opening == 0 && c.peek() == '(' {
		return c.answer(found{}, from)
	}
	assigned := sign == '=' && !spaced || opening != 0 && (closing != 0 || sign == '=')
	if !secretIn(f.says, value, assigned) {
		return c.answer(found{}, from)
	}
	return c.answer(found{verdict: yes, name: f.word, from: from, to: c.i, rest: rest}, from)
}

// reference says that a text is the name of a secret and not the secret.
func reference(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// charTail swallows what is left of a value that is longer than the reach.
type charTail func(byte) bool

func (in charTail) eat(text []byte, eof bool) (int, bool) {
	for i, b := range text {
		if !in(b) {
			return i, true
		}
	}
	return len(text), eof
}

// header is a rule for the credentials of an Authorization header.
type header struct{}

func (header) look(w window) found {
	c := &cursor{window: w, i: w.at}
	if !c.word("authorization") {
		return c.answer(found{}, len(w.text))
	}
	c.quote()
	c.while(blank, 4)
	sign := c.peek()
	if sign != ':' && sign != '=' {
		return c.answer(found{}, len(w.text))
	}
	c.i++
	c.while(blank, 4)
	c.quote()
	from := c.i
	scheme := c.while(alpha, 16)
	if len(scheme) > 0 && blank(byte(c.peek())) {
		c.while(blank, 4)
		from = c.i
	} else {
		c.i = from
	}
	return credentials(c, from, "authorization")
}

// credentials reads the value of a header.
func credentials(c *cursor, from int, name string) found {
	text := c.while(bare, reach)
	if len(text) < 8 || stands(string(text)) || bytes.IndexByte(text, '(') >= 0 || !dense(string(text)) && len(text) < 20 {
		return c.answer(found{}, from)
	}
	f := found{verdict: yes, name: name, from: from, to: c.i}
	if len(text) == reach {
		f.rest = charTail(bare)
	}
	return c.answer(f, from)
}

// bearer is a rule for credentials behind the word of their scheme alone.
type bearer struct{}

func (bearer) look(w window) found {
	c := &cursor{window: w, i: w.at}
	if wordlike(w.before()) || !c.word("bearer ") {
		return c.answer(found{}, len(w.text))
	}
	from := c.i
	text := c.while(tokenish, reach)
	if len(text) < 16 || !dense(string(text)) {
		return c.answer(found{}, from)
	}
	f := found{verdict: yes, name: "bearer-token", from: from, to: c.i}
	if len(text) == reach {
		f.rest = charTail(tokenish)
	}
	return c.answer(f, from)
}

// userinfo is a rule for passwords and tokens in URLs. What stands before the
// password is kept, for it says which account is meant.
type userinfo struct{}

func (userinfo) look(w window) found {
	c := &cursor{window: w, i: w.at}
	if !c.word("://") {
		return c.answer(found{}, len(w.text))
	}
	from := c.i
	text := c.while(func(b byte) bool { return b > ' ' && b != 0x7f && strings.IndexByte("/?#\"'`<>", b) < 0 }, reach)
	at := bytes.LastIndexByte(text, '@')
	if at < 0 {
		return c.answer(found{}, from)
	}
	text = bytes.TrimSuffix(text[:at], []byte(`\`))
	if colon := bytes.IndexByte(text, ':'); colon >= 0 {
		secret := text[colon+1:]
		if len(secret) == 0 || stands(string(secret)) {
			return c.answer(found{}, from)
		}
		return c.answer(found{verdict: yes, name: "url-password", from: from + colon + 1, to: from + len(text)}, from)
	}
	if len(text) < 20 || !dense(string(text)) {
		return c.answer(found{}, from)
	}
	return c.answer(found{verdict: yes, name: "url-token", from: from, to: from + len(text)}, from)
}
