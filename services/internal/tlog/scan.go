package tlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const scanBuffer_bytes = 256 << 10

// scanner reads entries.log and raw.log from front to back, each at its own pace. Its
// end is fixed when it is made, so that a live writer does not move it.
type scanner struct {
	ent, raw       *bufio.Reader
	entEnd, rawEnd int64 // where the files end
	entAt, rawAt   int64 // after the last whole entry, the last whole frame
	entry, frame   []byte
	head           [frameHead_bytes]byte
}

func newScanner(ent, raw io.ReaderAt, entAt, entEnd, rawAt, rawEnd int64) *scanner {
	s := &scanner{entAt: entAt, entEnd: entEnd, rawAt: rawAt, rawEnd: rawEnd}
	s.ent = section(ent, entAt, entEnd)
	if raw != nil {
		s.raw = section(raw, rawAt, rawEnd)
	}
	return s
}

// section buffers the bytes of f from from to to, no more than there are.
func section(f io.ReaderAt, from, to int64) *bufio.Reader {
	n := max(0, to-from)
	return bufio.NewReaderSize(io.NewSectionReader(f, from, n), int(min(n, scanBuffer_bytes)))
}

// nextEntry returns the next entry, valid until the next call; io.EOF at a clean end,
// io.ErrUnexpectedEOF if the file ends inside an entry.
func (s *scanner) nextEntry() ([]byte, error) {
	if _, err := io.ReadFull(s.ent, s.head[:2]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(s.head[:2]))
	s.entry = grow(s.entry, n)
	if _, err := io.ReadFull(s.ent, s.entry); err != nil {
		return nil, unexpected(err)
	}
	s.entAt += int64(2 + n)
	return s.entry, nil
}

// nextFrame returns the next raw frame, valid until the next call, with the same ends
// as nextEntry. It allocates no more than the file can hold.
func (s *scanner) nextFrame() (block, payload []byte, err error) {
	if _, err := io.ReadFull(s.raw, s.head[:]); err != nil {
		return nil, nil, err
	}
	nb, np, err := frameLengths(s.head[:])
	if err != nil {
		return nil, nil, err
	}
	if int64(nb+np) > s.rawEnd-s.rawAt-frameHead_bytes {
		return nil, nil, io.ErrUnexpectedEOF
	}
	s.frame = grow(s.frame, nb+np)
	if _, err := io.ReadFull(s.raw, s.frame); err != nil {
		return nil, nil, unexpected(err)
	}
	s.rawAt += int64(frameHead_bytes + nb + np)
	return s.frame[:nb:nb], s.frame[nb:], nil
}

func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n, n+n/4)
	}
	return b[:n]
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// prevOf reads an entry's link, in hex, without parsing the rest of it.
func prevOf(entry []byte) ([]byte, bool) {
	_, rest, ok := bytes.Cut(entry[:min(len(entry), 128)], []byte("\nprev "))
	if !ok || len(rest) < 64 {
		return nil, false
	}
	return rest[:64], true
}

// follows says whether e may be leaf number leaf of a log whose leaf before ends at
// last. Up to through lie what was carried from another log, and holes between.
func follows(e *Entry, leaf int64, last, through uint64) error {
	first := e.Seq
	switch {
	case (leaf == 0) != e.begins():
		return fmt.Errorf("a %s cannot be leaf %d", e.Kind, leaf)
	case e.begins():
		return nil
	case e.Kind == KindState:
		return stateFollows(e, leaf, last)
	case StateAt(leaf):
		return fmt.Errorf("leaf %d must be a state and is a %s; an older build wrote logs without them, which this one does not go on with", leaf, e.Kind)
	case e.Kind == KindEvent && first <= through:
		if first <= last {
			return fmt.Errorf("carried sequence %d follows %d", first, last)
		}
		return nil
	case e.Kind == KindGap:
		first = e.From
	}
	if last = max(last, through); first != last+1 {
		return fmt.Errorf("sequence %d follows %d", first, last)
	}
	return nil
}

// stateFollows says whether a state may stand there, whatever it says about jobs.
func stateFollows(e *Entry, leaf int64, last uint64) error {
	switch {
	case !StateAt(leaf):
		return fmt.Errorf("a state cannot be leaf %d", leaf)
	case e.Size != leaf:
		return fmt.Errorf("the state at leaf %d is about %d leaves", leaf, e.Size)
	case e.Seq != last:
		return fmt.Errorf("a state of sequence %d follows %d", e.Seq, last)
	}
	return nil
}

// errHeaders and errPayload tell the two digests of a frame apart.
var (
	errHeaders = errors.New("the stored headers have another digest")
	errPayload = errors.New("the stored payload has another digest or length")
)

// matchesFrame compares a raw frame with the digests in its entry.
func matchesFrame(e *Entry, block, payload []byte) error {
	if blockDigest(block) != e.Headers {
		return errHeaders
	}
	if int64(len(payload)) != e.Payload_bytes || payloadDigest(payload) != e.Payload {
		return errPayload
	}
	return nil
}
