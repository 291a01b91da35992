package redact

import (
	"bytes"
	"fmt"
	"regexp"
)

// ownName stands in the place of what a pattern of the site has found.
const ownName = "pattern of this site"

const (
	// lineBytes is the longest line that a pattern sees whole.
	lineBytes = 64 << 10
	// overlapBytes of a longer line are seen twice.
	overlapBytes = 4 << 10
)

// patterns reads regular expressions of secrets. One that matches nothing at all
// would match everywhere.
func patterns(list []string) ([]*regexp.Regexp, error) {
	var own []*regexp.Regexp
	for i, p := range list {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("read pattern %d of a secret: %w", i+1, err)
		}
		if re.MatchString("") {
			return nil, fmt.Errorf("read pattern %d of a secret: it matches the empty text, and so everything", i+1)
		}
		own = append(own, re)
	}
	return own, nil
}

// Own makes the rules that know these regular expressions, too. A stream then passes
// on whole lines only, since an expression may match up to a line's end.
func (r *Rules) Own(list ...string) (*Rules, error) {
	own, err := patterns(list)
	return &Rules{values: r.values, shapes: r.shapes, weak: r.weak, own: own}, err
}

// liner applies the patterns of a site to whole lines.
type liner struct {
	own   []*regexp.Regexp
	out   func([]byte)
	buf   []byte
	count int
}

func (l *liner) write(p []byte) {
	for len(p) > 0 {
		n := min(len(p), lineBytes)
		end := bytes.LastIndexByte(p[:n], '\n') + 1
		if end > 0 {
			end += len(l.buf)
		}
		l.buf = append(l.buf, p[:n]...)
		p = p[n:]
		if end > 0 {
			l.pass(end)
		}
		if len(l.buf) >= lineBytes {
			l.pass(len(l.buf) - overlapBytes)
		}
	}
}

func (l *liner) close() { l.pass(len(l.buf)) }

// pass replaces what the patterns find and passes on the bytes before an offset. What
// is found across it is replaced whole.
func (l *liner) pass(to int) {
	text := l.buf
	for _, re := range l.own {
		var out []byte
		at, end := 0, to
		for _, m := range re.FindAllIndex(text, -1) {
			if m[0] >= to {
				break
			}
			out = append(append(out, text[at:m[0]]...), "[redacted: "+ownName+"]"...)
			at = m[1]
			l.count++
			if m[1] > to {
				end = m[1]
			}
		}
		if at == 0 {
			continue
		}
		out = append(out, text[at:max(at, end)]...)
		text, to = append(out, text[max(at, end):]...), len(out)
	}
	l.out(text[:to])
	l.buf = append(l.buf[:0], text[to:]...)
}
