package redact

import (
	"bytes"
	"strings"
)

const (
	keyEnd = "-----END"
	// keyLookBytes is how far behind its header a private key must show.
	keyLookBytes = 256
	// keyMaxBytes is how much is swallowed of a key that has no end.
	keyMaxBytes = 64 << 10
	// keyRunBytes is the shortest run of base64 that makes a line part of a key.
	keyRunBytes = 16
)

// privateKey is a rule for private keys in PEM and its relatives, however their
// lines are separated: by line breaks, by spaces, by escapes, by nothing.
type privateKey struct{}

func (privateKey) look(w window) found {
	c := &cursor{window: w, i: w.at}
	if !c.word("-----begin ") {
		return c.answer(found{}, len(w.text))
	}
	title := string(c.while(func(b byte) bool { return alnum(b) || b == ' ' }, 48))
	if !strings.Contains(title, "PRIVATE KEY") {
		return c.answer(found{}, len(w.text))
	}
	if !c.word("-----") {
		return c.answer(found{}, len(w.text))
	}
	from := c.i
	for c.i-from < keyLookBytes && c.peek() >= 0 {
		if len(c.while(base64ish, keyRunBytes)) == keyRunBytes {
			c.short = false // enough was seen
			return c.answer(found{verdict: yes, name: "private-key", from: w.at, to: from, rest: &keyTail{}}, from)
		}
		c.i++
	}
	return c.answer(found{}, from)
}

func base64ish(b byte) bool { return alnum(b) || b == '+' || b == '/' || b == '=' }

// keyTail swallows the lines of a private key.
type keyTail struct {
	total  int
	body   bool // the current line is known to belong to the key
	last   bool // a line that can only be the last one has passed
	ending bool // the footer has begun
}

func (k *keyTail) eat(text []byte, eof bool) (n int, done bool) {
	for n < len(text) {
		took, done := k.step(text[n:], eof)
		n += took
		k.total += took
		if done || took == 0 {
			return n, done
		}
	}
	return n, eof
}

// step eats a piece. Nothing and not done mean that more is needed to tell.
func (k *keyTail) step(text []byte, eof bool) (n int, done bool) {
	feed := bytes.IndexByte(text, '\n')
	switch {
	case k.ending:
		return k.footer(text, eof)
	case k.body:
		return k.rest(text, feed, eof)
	}
	line := text[:min(len(text), keyLookBytes)]
	if feed >= 0 && feed < len(line) {
		line = text[:feed+1]
	} else if len(line) < keyLookBytes && !eof && !bytes.Contains(line, []byte(keyEnd)) && longestRun(line) < keyRunBytes {
		return 0, false
	}
	trimmed := bytes.TrimSpace(line)
	switch {
	case bytes.Contains(line, []byte(keyEnd)), longestRun(line) >= keyRunBytes && !k.last:
		k.body = true
		return k.rest(text, feed, eof)
	case len(trimmed) == 0, about(trimmed):
		return len(line), k.total+len(line) > keyMaxBytes
	case longestRun(trimmed) == len(trimmed) && !k.last:
		k.last = true
		return len(line), false
	}
	return 0, true
}

// rest eats a line that belongs to the key.
func (k *keyTail) rest(text []byte, feed int, eof bool) (n int, done bool) {
	if i := bytes.Index(text, []byte(keyEnd)); i >= 0 && (feed < 0 || i < feed) {
		k.ending = true
		return i + len(keyEnd), false
	}
	if feed >= 0 {
		k.body = false
		return feed + 1, k.total+feed+1 > keyMaxBytes
	}
	if eof {
		return len(text), true
	}
	return max(0, len(text)-len(keyEnd)), false
}

// footer eats "PRIVATE KEY-----" behind the word END.
func (k *keyTail) footer(text []byte, eof bool) (n int, done bool) {
	near := text[:min(len(text), 64)]
	if i := bytes.Index(near, []byte("-----")); i >= 0 {
		return i + 5, true
	}
	if i := bytes.IndexByte(near, '\n'); i >= 0 {
		return i, true
	}
	if len(near) == 64 || eof {
		return len(near), true
	}
	return 0, false
}

// about says that a line is one of the headers inside a key.
func about(line []byte) bool {
	for _, name := range [...]string{"Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:"} {
		if bytes.HasPrefix(line, []byte(name)) {
			return true
		}
	}
	return false
}

// longestRun is the length of the longest run of base64 in a line.
func longestRun(line []byte) int {
	best, run := 0, 0
	for _, b := range line {
		if base64ish(b) {
			run++
			best = max(best, run)
		} else {
			run = 0
		}
	}
	return best
}
