package redact

// verdict is what a rule says of a place where something may begin.
type verdict int8

const (
	no   verdict = iota
	yes          // it is one
	more         // the text ends too early to tell
)

// window is the text around such a place.
type window struct {
	text []byte
	at   int  // where it may begin
	left byte // the byte before text[0], 0 at the very beginning
	eof  bool // nothing follows the text
}

// before is the byte before the place.
func (w window) before() byte {
	if w.at > 0 {
		return w.text[w.at-1]
	}
	return w.left
}

// found is a rule's answer.
type found struct {
	verdict  verdict
	name     string // of the rule
	from, to int    // the secret; with more, from is where one may begin
	need     int    // with more, the length of the text that is worth asking again
	looked   int    // bytes looked at
	rest     tail   // swallows what follows and belongs to it
}

// rule recognises one thing by its first bytes and what follows.
type rule interface {
	look(w window) found
}

// tail swallows bytes that belong to a secret whose beginning was replaced.
type tail interface {
	// eat returns how many bytes belong to it. It is called again with what it
	// left and more behind it until it is done.
	eat(text []byte, eof bool) (n int, done bool)
}

// table says which rules begin with a given few bytes.
type table struct {
	width int  // bytes of the window, at most 8
	fold  bool // letters count as lower case
	wraps bool // a line break inside is overlooked

	bits   [1024]uint64 // a sieve in front of first
	first  map[uint64][]rule
	prefix []map[uint64]bool // shorter beginnings, by their length
	bytes  [256]byte         // each byte, folded
	mask   uint64
}

func newTable(width int, fold, wraps bool) *table {
	t := &table{width: width, fold: fold, wraps: wraps, first: map[uint64][]rule{}, mask: ^uint64(0) >> (64 - 8*width)}
	for range width {
		t.prefix = append(t.prefix, map[uint64]bool{})
	}
	for i := range t.bytes {
		t.bytes[i] = byte(i)
		if fold {
			t.bytes[i] = lower(byte(i))
		}
	}
	return t
}

// add enters a rule under its first bytes, of which there are at least width.
func (t *table) add(anchor string, r rule) {
	w := uint64(0)
	for i := range t.width {
		if i > 0 {
			t.prefix[i][w] = true
		}
		w = w<<8 | uint64(t.bytes[anchor[i]])
	}
	t.first[w] = append(t.first[w], r)
	h := hash(w)
	t.bits[h>>6] |= 1 << (h & 63)
}

// may says whether something could begin with the window.
func (t *table) may(w uint64) bool {
	h := hash(w)
	return t.bits[h>>6]&(1<<(h&63)) != 0
}

func hash(w uint64) uint64 { return w * 0x9E3779B97F4A7C15 >> 48 }

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

func breaksLine(b byte) bool { return b == '\n' || b == '\r' }
