package redact

import (
	"fmt"
	"regexp"
)

// Rules are what streams look for; New makes them.
type Rules struct {
	values *table // nil when no value is known
	shapes *table
	weak   []string
	own    []*regexp.Regexp // of the site
}

// New makes the rules for known values and for everything that is a secret by
// its form.
func New(values ...Value) *Rules { return (&Rules{shapes: shapeTable()}).With(values...) }

// With makes rules for these known values in the place of those that r knows,
// for less than New.
func (r *Rules) With(values ...Value) *Rules {
	r = &Rules{shapes: r.shapes, own: r.own}
	var strong []Value
	for _, v := range values {
		if Weak(v.Text) {
			r.weak = append(r.weak, v.Name)
			continue
		}
		strong = append(strong, v)
	}
	r.values = valueTable(strong)
	return r
}

// Weak lists the names of values that are too short or too plain to be looked
// for.
func (r *Rules) Weak() []string { return r.weak }

// Stream redacts what is written to it. Close it to get the last bytes out.
type Stream struct {
	stages []*stage // in the order of passing
	lines  *liner   // behind them; nil when the site has no patterns
}

// Stream makes a stream that passes redacted bytes to out, which must not keep
// them.
func (r *Rules) Stream(out func(p []byte)) *Stream {
	s := &Stream{}
	if len(r.own) > 0 {
		s.lines = &liner{own: r.own, out: out}
		out = s.lines.write
	}
	last := newStage(r.shapes, false, out)
	s.stages = []*stage{last}
	if r.values != nil {
		s.stages = []*stage{newStage(r.values, true, last.write), last}
	}
	return s
}

// Write redacts and never fails.
func (s *Stream) Write(p []byte) (int, error) {
	s.stages[0].write(p)
	return len(p), nil
}

// Close passes on what was held back. Nothing is written afterwards.
func (s *Stream) Close() error {
	for _, st := range s.stages {
		st.close()
	}
	if s.lines != nil {
		s.lines.close()
	}
	return nil
}

// Held says whether Idle would pass something on.
func (s *Stream) Held() bool {
	for _, st := range s.stages {
		if st.held() {
			return true
		}
	}
	return false
}

// Idle passes on what is held back only because a secret might begin with it,
// such as the first letters of a field's name. Call it when the writer pauses, so
// that a prompt is seen. At most three bytes of a known value leave this way.
func (s *Stream) Idle() {
	for _, st := range s.stages {
		st.idle()
	}
}

// Redacted is how many secrets were replaced.
func (s *Stream) Redacted() int {
	n := 0
	for _, st := range s.stages {
		n += st.count
	}
	if s.lines != nil {
		n += s.lines.count
	}
	return n
}

// Withheld is how many bytes were left out because the stream took too long to
// search.
func (s *Stream) Withheld() int64 {
	n := int64(0)
	for _, st := range s.stages {
		n += st.withheld
	}
	return n
}

// Bytes redacts a whole text.
func (r *Rules) Bytes(text []byte) []byte {
	var out []byte
	s := r.Stream(func(p []byte) { out = append(out, p...) })
	s.Write(text) //nolint:errcheck // it never fails
	s.Close()     //nolint:errcheck // nor does this
	return out
}

// String shows no values.
func (v Value) String() string { return fmt.Sprintf("secret %s", v.Name) }

// GoString shows no values either.
func (v Value) GoString() string { return v.String() }
