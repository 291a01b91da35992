package tlog

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseEntry reads one entry. It is strict: it accepts exactly the bytes that
// [Entry.Encode] produces, so that no two byte strings mean the same entry. The error
// wraps [ErrMalformed] and names the line.
func ParseEntry(b []byte) (Entry, error) {
	if len(b) > maxEntry_bytes {
		return Entry{}, fmt.Errorf("%w: %d bytes, at most %d fit", ErrMalformed, len(b), maxEntry_bytes)
	}
	kind, rest, _ := strings.Cut(string(b), "\n")
	kind, ok := strings.CutPrefix(kind, formatTag+" ")
	if !ok {
		return Entry{}, fmt.Errorf("%w: it does not start with %q", ErrMalformed, formatTag)
	}
	e := Entry{Kind: Kind(kind)}
	p := parser{rest: rest}
	p.digest("prev", &e.Prev)
	switch e.Kind {
	case KindEvent:
		p.event(&e)
	case KindGenesis, KindEpoch:
		p.check("prev", e.Prev == Hash{})
		p.token("origin", &e.Origin, false)
		p.token("stream", &e.Stream, false)
		p.time("created", &e.Created)
		p.digest("config", &e.Config)
		if e.Kind == KindEpoch {
			p.before(&e.Old)
		}
	case KindGap:
		p.number("from", p.line("from"), &e.From, math.MaxUint64)
		p.number("to", p.line("to"), &e.To, math.MaxUint64)
		p.check("to", e.From > 0 && e.To >= e.From)
	case KindState:
		p.state(&e)
	default:
		return Entry{}, fmt.Errorf("%w: kind %q is unknown to this version", ErrMalformed, kind)
	}
	if p.bad == "" && p.rest != "" {
		p.bad = "after the last line"
	}
	if p.bad != "" {
		return Entry{}, fmt.Errorf("%w: line %q of kind %s", ErrMalformed, p.bad, e.Kind)
	}
	return e, nil
}

// parser walks the lines of one entry; bad is the key of the first line that failed.
type parser struct{ rest, bad string }

func (p *parser) event(e *Entry) {
	p.number("seq", p.line("seq"), &e.Seq, math.MaxUint64)
	p.check("seq", e.Seq > 0)
	p.time("time", &e.Time)
	p.subject(&e.Subject)
	p.token("id", &e.ID, true)
	if v := p.line("expect"); v != "-" {
		var n uint64
		p.number("expect", v, &n, math.MaxUint64)
		e.Expect = v
	}
	p.digest("meta", &e.Meta)
	if v := p.line("headers"); v != "-" {
		p.hash("headers", v, &e.Headers)
		p.check("headers", e.Headers != Hash{})
	}
	digest, size := p.pair("payload")
	var n uint64
	p.hash("payload", digest, &e.Payload)
	p.number("payload", size, &n, maxPart_bytes)
	e.Payload_bytes = int64(n)

	job, leaf := p.pair("job")
	p.tokenValue("job", job, &e.Job, true)
	e.JobPrev = -1
	if leaf != "-" {
		p.number("job", leaf, &n, math.MaxInt64)
		p.check("job", e.Job != "")
		e.JobPrev = int64(n)
	}
	actor, sig := p.pair("actor")
	p.tokenValue("actor", actor, &e.Actor, true)
	p.tokenValue("actor", sig, &e.Sig, true)
}

func (p *parser) state(e *Entry) {
	var size, jobs uint64
	p.number("size", p.line("size"), &size, math.MaxInt64)
	p.check("size", size > 0)
	p.number("seq", p.line("seq"), &e.Seq, math.MaxUint64)
	p.number("jobs", p.line("jobs"), &jobs, math.MaxInt64)
	p.check("jobs", jobs < size) // leaf 0 is no event
	p.digest("root", &e.Root)
	e.Size, e.Jobs = int64(size), int64(jobs)
}

func (p *parser) before(o *Before) {
	origin, rest := p.pair("old")
	p.tokenValue("old", origin, &o.Origin, false)
	size, root, ok := strings.Cut(rest, " ")
	var n uint64
	p.check("old", ok)
	p.number("old", size, &n, math.MaxInt64)
	p.check("old", n > 0)
	o.Size = int64(n)
	p.hash("old", root, &o.Root)
	p.number("through", p.line("through"), &o.Through, math.MaxUint64)
	p.token("why", &o.Why, false)
}

func (p *parser) check(key string, ok bool) {
	if !ok && p.bad == "" {
		p.bad = key
	}
}

// line takes the next line, which must have the key, and returns its value.
func (p *parser) line(key string) string {
	if p.bad != "" {
		return ""
	}
	end := strings.IndexByte(p.rest, '\n')
	if end <= len(key) || p.rest[:len(key)] != key || p.rest[len(key)] != ' ' {
		p.bad = key
		return ""
	}
	v := p.rest[len(key)+1 : end]
	p.rest = p.rest[end+1:]
	return v
}

func (p *parser) pair(key string) (string, string) {
	a, b, ok := strings.Cut(p.line(key), " ")
	p.check(key, ok)
	return a, b
}

func (p *parser) token(key string, dst *string, optional bool) {
	p.tokenValue(key, p.line(key), dst, optional)
}

func (p *parser) tokenValue(key, v string, dst *string, optional bool) {
	switch {
	case p.bad != "", v == "-" && optional:
	case isToken(v):
		*dst = v
	default:
		p.bad = key
	}
}

func (p *parser) digest(key string, dst *Hash) { p.hash(key, p.line(key), dst) }

func (p *parser) hash(key, v string, dst *Hash) {
	if p.bad != "" {
		return
	}
	if len(v) != 2*len(dst) {
		p.bad = key
		return
	}
	wrong := byte(0)
	for i := range dst {
		hi, lo := nibble(v[2*i]), nibble(v[2*i+1])
		wrong |= hi | lo
		dst[i] = hi<<4 | lo&15
	}
	p.check(key, wrong < 16)
}

// nibble is the value of a lower-case hex digit, or 16 and more for anything else.
func nibble(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 16
}

func (p *parser) number(key, v string, dst *uint64, most uint64) {
	n, ok := parseDecimal(v)
	p.check(key, ok && n <= most)
	*dst = n
}

func (p *parser) time(key string, dst *time.Time) {
	var n uint64
	p.number(key, p.line(key), &n, math.MaxInt64)
	if p.bad == "" {
		*dst = time.Unix(0, int64(n)).UTC()
	}
}

func (p *parser) subject(dst *string) {
	v := p.line("subject")
	if strings.IndexByte(v, '%') < 0 {
		for i := range len(v) {
			p.check("subject", plainSubject(v[i]))
		}
		p.check("subject", v != "")
		*dst = v
		return
	}
	plain := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		c := v[i]
		if c == '%' && i+2 < len(v) {
			c = byte(strings.IndexByte(upperHex, v[i+1])<<4 | strings.IndexByte(upperHex, v[i+2]))
			i += 2
		}
		plain = append(plain, c)
	}
	*dst = string(plain)
	// Digits outside the alphabet, short escapes and needless escapes all end here.
	p.check("subject", string(appendSubject(nil, *dst)) == v)
}

// parseDecimal accepts only the canonical form: digits, no sign, no leading zero.
func parseDecimal(s string) (uint64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}
