package redact

const (
	// stageBytes is how much of a write is looked at at once.
	stageBytes = 32 << 10
	// freeBytes may leave an idle stage although a known value begins with them.
	freeBytes = 3
	// shareOf is how many bytes may be looked ahead for each byte of text, and
	// shareBurst how many of them may be saved up.
	shareOf    = 64
	shareBurst = shareOf * 64 << 10
	// patienceOf is the part by which what a rule waits for has to grow before it
	// is asked again: whoever writes byte by byte makes it look at each byte a few
	// times, and not at all of them for each byte.
	patienceOf = 8
)

// stage applies the rules of one table.
type stage struct {
	table *table
	known bool // its rules are known values: their first bytes are secret
	out   func([]byte)
	note  func(rule string) // is told of each secret, when set

	buf   []byte
	left  byte // the byte before buf
	shown int  // buf up to here has left, or was replaced
	i     int  // buf up to here was looked at
	w     uint64
	n     int // bytes in w that count
	nl    int // line breaks since the last of them

	asked  bool // a place waits for an answer
	at     int  // the place
	rules  []rule
	secret int // where a secret may begin there
	need   int
	asking int // length of buf when the rules were asked last
	rest   tail

	looked   int64 // bytes that rules have looked at
	share    int   // bytes that may still be looked ahead
	paid     int   // buf up to here has earned its share
	count    int
	withheld int64
	closed   bool // the share was spent
}

func newStage(t *table, known bool, out func([]byte)) *stage {
	return &stage{table: t, known: known, out: out, share: shareBurst}
}

// write takes bytes and passes on what can be no part of a secret.
func (s *stage) write(p []byte) {
	for len(p) > 0 {
		n := min(len(p), stageBytes)
		s.buf = append(s.buf, p[:n]...)
		p = p[n:]
		s.scan(false)
		s.settle()
	}
}

// close passes on the rest.
func (s *stage) close() {
	s.scan(true)
	s.show(len(s.buf))
	s.buf, s.shown, s.i, s.n, s.asked, s.rest = nil, 0, 0, 0, false, nil
}

// scan looks at what has come as far as it can be judged.
func (s *stage) scan(eof bool) {
	for {
		switch {
		case s.closed:
			s.withheld += int64(len(s.buf) - s.shown)
			s.shown, s.i, s.asked, s.rest, s.n = len(s.buf), len(s.buf), false, nil, 0
			return
		case s.rest != nil:
			n, done := s.rest.eat(s.buf[s.i:], eof)
			s.skip(s.i + n)
			if !done {
				return
			}
			s.rest = nil
		case s.asked:
			if len(s.buf) < s.need && !eof || !s.ask(eof) {
				return
			}
		case !s.next():
			return
		}
	}
}

// next finds the next place where something may begin.
func (s *stage) next() bool {
	t, buf, w, n, nl, i := s.table, s.buf, s.w, s.n, s.nl, s.i
	for i < len(buf) {
		b := buf[i]
		i++
		if t.wraps && breaksLine(b) {
			if nl++; nl > 2 {
				n = 0
			}
			continue
		}
		nl = 0
		w = (w<<8 | uint64(t.bytes[b])) & t.mask
		n++
		if t.may(w) && n >= t.width && t.first[w] != nil {
			s.w, s.n, s.nl, s.i = w, n, nl, i
			s.asked, s.at, s.rules, s.need = true, s.back(t.width), t.first[w], 0
			return true
		}
	}
	s.w, s.n, s.nl, s.i = w, n, nl, i
	return false
}

// back is where the last k bytes of the window begin.
func (s *stage) back(k int) int {
	i := s.i
	for k > 0 && i > 0 {
		i--
		if !s.table.wraps || !breaksLine(s.buf[i]) {
			k--
		}
	}
	return i
}

// ask puts the question of a place to its rules. It returns false when more of
// the text is needed.
func (s *stage) ask(eof bool) bool {
	w := window{text: s.buf, at: s.at, left: s.left, eof: eof}
	var best found
	waits, looked := false, 0
	for _, r := range s.rules {
		f := r.look(w)
		looked += f.looked
		switch {
		case f.verdict == more && (!waits || f.from < s.secret):
			s.secret = f.from
			fallthrough
		case f.verdict == more:
			if !waits || f.need < s.need {
				s.need = f.need
			}
			waits = true
		case f.verdict == yes && (best.verdict == no || f.to > best.to):
			best = f
		}
	}
	s.looked += int64(looked)
	if waits {
		if best.verdict == yes {
			s.secret = min(s.secret, best.from)
		}
		s.asking = len(s.buf)
		s.need = max(s.need, s.asking+(s.asking-s.at)/patienceOf)
		return false
	}
	s.asked = false
	if s.pay(looked) && best.verdict == yes {
		s.replace(best)
	}
	return true
}

// pay takes bytes that were looked at from the share of those passed since.
func (s *stage) pay(looked int) bool {
	s.share = min(s.share+shareOf*(s.i-s.paid), shareBurst)
	s.paid = s.i
	if s.share -= looked; s.share >= 0 {
		return true
	}
	s.show(s.at)
	s.out([]byte("[redacted: the rest is withheld, because looking for secrets in it took too long]"))
	s.closed = true
	return false
}

// replace puts a rule's name into the place of what it found.
func (s *stage) replace(f found) {
	s.show(f.from)
	s.out([]byte("[redacted: " + f.name + "]"))
	s.count++
	if s.note != nil {
		s.note(f.name)
	}
	s.skip(f.to)
	s.rest = f.rest
}

// skip leaves out what lies before an offset.
func (s *stage) skip(to int) {
	s.i = to
	s.shown = max(s.shown, to)
	s.w, s.n, s.nl = 0, 0, 0
}

// show passes on what lies before an offset and has not been passed on yet.
func (s *stage) show(to int) {
	if to > s.shown {
		s.out(s.buf[s.shown:to])
		s.shown = to
	}
}

// start is the offset before which nothing can be part of a secret any more.
func (s *stage) start() int {
	switch {
	case s.asked:
		return s.at
	case s.rest != nil:
		return s.i
	}
	return s.back(s.begun())
}

// begun is how many of the last bytes something may begin with.
func (s *stage) begun() int {
	for k := min(s.n, s.table.width-1); k > 0; k-- {
		if s.table.prefix[k][s.w&(^uint64(0)>>(64-8*k))] {
			return k
		}
	}
	return 0
}

// settle passes on what is decided and forgets it.
func (s *stage) settle() {
	from := s.start()
	s.show(from)
	if from == 0 {
		return
	}
	s.left = s.buf[from-1]
	s.buf = append(s.buf[:0], s.buf[from:]...)
	s.shown -= from
	s.i -= from
	s.paid -= from
	if s.asked {
		s.at -= from
		s.secret -= from
		s.need -= from
		s.asking -= from
	}
}

// held says whether an idle stage could pass on something.
func (s *stage) held() bool { return s.shown < s.free() || s.asked && len(s.buf) > s.asking }

// free is the offset before which nothing secret can stand.
func (s *stage) free() int {
	switch {
	case s.asked:
		return s.secret
	case s.rest != nil:
		return s.i
	}
	if k := s.begun(); s.known && k > freeBytes {
		return s.back(k)
	}
	return len(s.buf)
}

// idle asks what waits for more once again with what there is, and passes on what
// was held back only because a secret might begin with it, as far as it is no
// secret by itself. It still counts as the beginning of one.
func (s *stage) idle() {
	if s.asked && len(s.buf) > s.asking {
		s.need = 0
		s.scan(false)
	}
	s.show(s.free())
}
