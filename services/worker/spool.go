package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	chunkBytes    = 64 << 10
	spoolInMemory = 16 // chunks
)

// chunk is one piece of an output stream on its way to the bus.
type chunk struct {
	n      int // counts over both streams, from 1
	stream string
	atMS   int64
	data   []byte
}

// spool is a first-in-first-out queue of chunks that never waits: a few stay
// in memory, the rest goes to a file. Its owner serialises the calls.
type spool struct {
	path   string
	memory []chunk
	file   *os.File
	read   int64 // offset of the first chunk in the file
	end    int64 // offset behind the last one
}

// frame precedes a chunk's bytes in the file.
type frame struct {
	N      uint32
	Stream uint32 // index into streamNames
	AtMS   int64
	Bytes  uint32
}

var frameBytes = int64(binary.Size(frame{}))

// streamNames are the streams of a job by index.
var streamNames = [...]string{"stdout", "stderr"}

// push appends a chunk.
func (s *spool) push(c chunk) error {
	if s.read == s.end && len(s.memory) < spoolInMemory {
		s.memory = append(s.memory, c)
		return nil
	}
	return s.write(c)
}

func (s *spool) write(c chunk) error {
	if s.file == nil {
		f, err := os.OpenFile(s.path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
		if err != nil {
			return fmt.Errorf("spool output: %w", err)
		}
		s.file = f
	}
	h := frame{N: uint32(c.n), AtMS: c.atMS, Bytes: uint32(len(c.data))}
	if c.stream == streamNames[1] {
		h.Stream = 1
	}
	b, err := binary.Append(nil, binary.LittleEndian, h)
	if err == nil {
		_, err = s.file.WriteAt(b, s.end)
	}
	if err == nil {
		_, err = s.file.WriteAt(c.data, s.end+frameBytes)
	}
	if err != nil {
		return fmt.Errorf("spool output: %w", err)
	}
	s.end += frameBytes + int64(len(c.data))
	return nil
}

// front returns the oldest chunk without taking it.
func (s *spool) front() (chunk, bool, error) {
	if len(s.memory) > 0 {
		return s.memory[0], true, nil
	}
	if s.read == s.end {
		return chunk{}, false, nil
	}
	c, err := readChunk(io.NewSectionReader(s.file, s.read, s.end-s.read))
	return c, err == nil, err
}

func readChunk(r io.Reader) (chunk, error) {
	var h frame
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return chunk{}, err
	}
	if h.Bytes > chunkBytes || int(h.Stream) >= len(streamNames) {
		return chunk{}, errors.New("spool of output: a frame is damaged")
	}
	c := chunk{n: int(h.N), stream: streamNames[h.Stream], atMS: h.AtMS, data: make([]byte, h.Bytes)}
	if _, err := io.ReadFull(r, c.data); err != nil {
		return chunk{}, fmt.Errorf("spool of output: %w", err)
	}
	return c, nil
}

// advance takes the oldest chunk away, which front has returned.
func (s *spool) advance(c chunk) {
	if len(s.memory) > 0 {
		s.memory = s.memory[1:]
		return
	}
	s.read += frameBytes + int64(len(c.data))
	if s.read == s.end {
		s.skipRest()
	}
}

// skipRest empties the file, because it is delivered or front could not read
// it. Old bytes behind new ones would be read as chunks after a crash.
func (s *spool) skipRest() {
	s.read, s.end = 0, 0
	if s.file.Truncate(0) != nil {
		s.close() // the next push makes a new file
	}
}

// keep writes everything that is left to the file and closes it, so that the
// next life of the worker can publish it. An error leaves the queue as it was.
func (s *spool) keep() error {
	rest := spool{path: s.path + ".new"}
	err := s.copyTo(&rest)
	rest.close()
	if err == nil && rest.end > 0 {
		err = os.Rename(rest.path, s.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("spool output: %w", err), unlessGone(os.Remove(rest.path)))
	}
	s.close()
	s.memory, s.read, s.end = nil, 0, 0
	if rest.end > 0 {
		return nil
	}
	if err := unlessGone(os.Remove(s.path)); err != nil {
		return fmt.Errorf("spool output: %w", err)
	}
	return nil
}

// copyTo writes every chunk that is left, as far as they can be read, to the file
// of another queue.
func (s *spool) copyTo(rest *spool) error {
	left := spool{memory: s.memory, file: s.file, read: s.read, end: s.end}
	for {
		c, ok, err := left.front()
		if err != nil || !ok {
			return nil
		}
		if len(left.memory) > 0 {
			left.memory = left.memory[1:]
		} else {
			left.read += frameBytes + int64(len(c.data))
		}
		if err := rest.write(c); err != nil {
			return err
		}
	}
}

// unlessGone drops the error of removing what is not there.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// persist writes everything that is left to the file, so that it survives this
// process, and goes on from there. The chunk that front has returned last stays
// the oldest one.
func (s *spool) persist() error {
	if len(s.memory) == 0 {
		return nil
	}
	if err := s.keep(); err != nil {
		return err
	}
	kept, err := reopenSpool(s.path)
	if err == nil {
		*s = *kept
	}
	return err
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// reopenSpool opens what an earlier life has left. A torn last chunk ends it.
func reopenSpool(path string) (*spool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return &spool{path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open spooled output: %w", err)
	}
	s := &spool{path: path, file: f}
	for {
		c, err := readChunk(io.NewSectionReader(f, s.end, chunkBytes+frameBytes))
		if err != nil {
			return s, nil
		}
		s.end += frameBytes + int64(len(c.data))
	}
}
