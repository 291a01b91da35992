package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/redact"
)

const (
	chunkBytes   = 64 << 10
	maxTailBytes = 1 << 20
	// joinBytes is up to which size neighbouring writes share a piece of the
	// tail.
	joinBytes = 8 << 10
)

// scroll is the log of one round: a file that holds what the agent wrote to
// both streams in the order of writing, its head and its tail, after secrets were
// taken out of it. The agent never waits for the bus: the file is where chunks
// wait.
type scroll struct {
	began time.Time
	wake  chan struct{} // one token: there may be something to publish

	mu      sync.Mutex // guards the rest
	file    *os.File
	end     int64 // length of the file
	head    int64 // bytes that may still go to the head
	chunk   piece // the chunk being written; empty when len is 0
	queue   []piece
	n       int
	tail    []scrap
	tailing int // bytes in tail
	tailMax int
	streams [2]*side
	closed  bool
	err     error // the first failure to write
}

// piece is a chunk: a range of the file that one stream wrote.
type piece struct {
	n      int
	stream *side
	atMS   int64
	off    int64
	len    int
}

// scrap is part of the tail while it may still be cut.
type scrap struct {
	stream *side
	atMS   int64
	data   []byte
}

// side is one stream.
type side struct {
	scroll *scroll
	name   string
	clean  *redact.Stream // everything that is kept has passed it
	bytes  int64
	stored int64
	cut    int64
	chunks int
	sum    hash.Hash
}

// openScroll makes the log file of a round; it keeps up to limit bytes.
func openScroll(path string, limit int64, rules *redact.Rules) (*scroll, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the round's log: %w", err)
	}
	tail := min(limit/2, maxTailBytes)
	s := &scroll{began: time.Now(), wake: make(chan struct{}, 1), file: f, head: limit - tail, tailMax: int(tail)}
	for i, name := range []string{"stdout", "stderr"} {
		d := &side{scroll: s, name: name, sum: sha256.New()}
		d.clean = rules.Stream(d.take)
		s.streams[i] = d
	}
	return s, nil
}

func (s *scroll) stdout() *side { return s.streams[0] }
func (s *scroll) stderr() *side { return s.streams[1] }

// Write never fails: what cannot be kept is counted as cut.
func (d *side) Write(p []byte) (int, error) {
	s := d.scroll
	s.mu.Lock()
	defer s.mu.Unlock()
	d.bytes += int64(len(p))
	n, err := d.clean.Write(p)
	if d.clean.Held() {
		s.rouse()
	}
	return n, err
}

// take keeps redacted bytes as head or tail.
func (d *side) take(p []byte) {
	s := d.scroll
	at := time.Since(s.began).Milliseconds()
	head := p[:min(int64(len(p)), s.head)]
	s.head -= int64(len(head))
	s.keep(d, at, head)
	s.hold(d, at, p[len(head):])
}

// keep writes bytes to the file and to the chunk at its end.
func (s *scroll) keep(d *side, at int64, p []byte) {
	for len(p) > 0 {
		if s.chunk.len > 0 && s.chunk.stream != d {
			s.cutChunk()
		}
		n := min(len(p), chunkBytes-s.chunk.len)
		written, err := s.file.WriteAt(p[:n], s.end)
		if err != nil {
			if s.err == nil {
				s.err = fmt.Errorf("write the round's log: %w", err)
			}
			d.cut += int64(len(p))
			return
		}
		if s.chunk.len == 0 {
			s.chunk = piece{stream: d, atMS: at, off: s.end}
			s.rouse()
		}
		s.chunk.len += written
		s.end += int64(written)
		d.stored += int64(written)
		d.sum.Write(p[:written])
		p = p[written:]
		if s.chunk.len == chunkBytes {
			s.cutChunk()
		}
	}
}

// cutChunk ends the chunk being written.
func (s *scroll) cutChunk() {
	if s.chunk.len == 0 {
		return
	}
	s.n++
	s.chunk.n = s.n
	s.chunk.stream.chunks++
	s.queue = append(s.queue, s.chunk)
	s.chunk = piece{}
	s.rouse()
}

// hold keeps bytes of the tail in memory and lets the oldest go.
func (s *scroll) hold(d *side, at int64, p []byte) {
	if len(p) == 0 {
		return
	}
	if n := len(s.tail); n > 0 && s.tail[n-1].stream == d && len(s.tail[n-1].data)+len(p) <= joinBytes {
		s.tail[n-1].data = append(s.tail[n-1].data, p...)
	} else {
		s.tail = append(s.tail, scrap{stream: d, atMS: at, data: append([]byte(nil), p...)})
	}
	s.tailing += len(p)
	for s.tailing > s.tailMax {
		oldest := &s.tail[0]
		n := min(len(oldest.data), s.tailing-s.tailMax)
		oldest.data = oldest.data[n:]
		oldest.stream.cut += int64(n)
		s.tailing -= n
		if len(oldest.data) == 0 {
			s.tail = s.tail[1:]
		}
	}
}

func (s *scroll) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// close ends both streams: the tail follows the head in the file, with a line
// between them where something was left out. Nothing is written afterwards.
func (s *scroll) close() (stdout, stderr events.Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.streams {
		if err := d.clean.Close(); err != nil && s.err == nil {
			s.err = err
		}
		d.cut += d.clean.Withheld()
	}
	s.cutChunk()
	if cut := s.streams[0].cut + s.streams[1].cut; cut > 0 && s.err == nil {
		line := fmt.Appendf(nil, "\n[banksman: %d bytes left out]\n", cut)
		if n, err := s.file.WriteAt(line, s.end); err == nil {
			s.end += int64(n)
		}
	}
	for _, t := range s.tail {
		s.keep(t.stream, t.atMS, t.data)
	}
	s.cutChunk()
	s.tail, s.closed = nil, true
	s.rouse()
	return s.streams[0].summary(), s.streams[1].summary()
}

func (d *side) summary() events.Output {
	return events.Output{Bytes: d.bytes, StoredBytes: d.stored, SHA256: hex.EncodeToString(d.sum.Sum(nil)), Chunks: d.chunks, CutBytes: d.cut,
		Redacted: d.clean.Redacted()}
}

func (s *scroll) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// over says whether both streams have ended.
func (s *scroll) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// front returns the oldest chunk; with flush a chunk being written is ended
// first, with what was held back and is no secret yet. Done says that there will be none.
func (s *scroll) front(flush bool) (p piece, ok, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if flush && len(s.queue) == 0 {
		for _, d := range s.streams {
			d.clean.Idle()
		}
		s.cutChunk()
	}
	if len(s.queue) == 0 {
		return piece{}, false, s.closed
	}
	return s.queue[0], true, false
}

// advance takes the oldest chunk away.
func (s *scroll) advance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = s.queue[1:]
}

// load reads a chunk back.
func (s *scroll) load(p piece) ([]byte, error) {
	b := make([]byte, p.len)
	if _, err := s.file.ReadAt(b, p.off); err != nil {
		return nil, fmt.Errorf("read the round's log back: %w", err)
	}
	return b, nil
}
