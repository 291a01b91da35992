package tlog

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/mod/sumdb/tlog"
)

// replay reads the truth from leaf from on, checks it and computes the derived files
// again. It changes nothing in the folder before adopt, so that a folder that is refused
// stays as it was found.
type replay struct {
	l    *Log
	from int64
	old  Checkpoint // an earlier head that must lie on the way; Size 0: none

	size     int64
	lastSeq  uint64
	through  uint64 // what was carried from another log ends here
	prev     Hash
	ent, raw int64 // ends of the leaves that hold together
	tree     frontier

	headEnt  int64
	headPrev Hash
	scratch  []byte
	stored   []byte

	hashes, offsets spool
}

// errLeaf marks a leaf that does not hold together; beyond the signed head it is the
// place to cut.
var errLeaf = errors.New("the leaf does not hold together")

func (r *replay) run() error {
	if err := r.start(); err != nil {
		return err
	}
	if r.from == r.l.head.Size {
		if err := r.reachHead(); err != nil {
			return err
		}
	}
	entSize, err := sizeOf(r.l.entries)
	if err != nil {
		return err
	}
	rawSize, err := sizeOf(r.l.raw)
	if err != nil {
		return err
	}
	if entSize < r.ent || rawSize < r.raw {
		return fmt.Errorf("%w: leaf %d ends beyond the files", ErrRollback, r.size-1)
	}
	s := newScanner(r.l.entries, r.l.raw, r.ent, entSize, r.raw, rawSize)
	for {
		err := r.next(s)
		switch {
		case err == nil:
		case r.size >= r.l.head.Size:
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errLeaf) {
				return nil // the tail ends here
			}
			return err
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%w: %d whole leaves, the signed head has %d", ErrRollback, r.size, r.l.head.Size)
		case errors.Is(err, errLeaf):
			return fmt.Errorf("leaf %d: %w: %w", r.size, ErrCorrupt, err)
		default:
			return err
		}
	}
}

// start takes the state before leaf from out of the derived files and ties it to the
// last leaf below.
func (r *replay) start() error {
	r.size = r.from
	if r.from == 0 {
		r.hashes.path, r.offsets.path = r.l.path(hashesName), r.l.path(offsetsName)
		return nil
	}
	last := r.from - 1
	b, err := readEntry(r.l.entries, r.l.offsets, last)
	if err != nil {
		return err
	}
	e, err := ParseEntry(b)
	if err != nil {
		return err
	}
	first, err := readEntry(r.l.entries, r.l.offsets, 0)
	if err != nil {
		return err
	}
	genesis, err := ParseEntry(first)
	if err != nil {
		return err
	}
	r.through = genesis.Old.Through
	if err := r.checkStates(); err != nil {
		return err
	}
	r.prev = sha256.Sum256(b)
	r.lastSeq, _ = e.LastSeq()
	if r.ent, r.raw, err = readOffsets(r.l.offsets, last); err != nil {
		return err
	}
	stored := hashFile{r.l.hashes}
	tree, err := loadFrontier(r.from, stored)
	if err != nil {
		return err
	}
	r.tree = *tree
	if r.old.Size > 0 && r.old.Size <= r.from {
		if tree, err = loadFrontier(r.old.Size, stored); err != nil {
			return err
		}
		if err := r.passOld(tree); err != nil {
			return err
		}
		tree = &r.tree
	}
	proof, err := tlog.ProveRecord(r.from, last, stored)
	if err != nil {
		return err
	}
	leaf, _ := leafHash(b, nil)
	return tlog.CheckRecord(proof, r.from, tree.root(), last, leaf)
}

// next checks one leaf against everything before it and takes it in.
func (r *replay) next(s *scanner) error {
	b, err := s.nextEntry()
	if err != nil {
		return err
	}
	e, err := ParseEntry(b)
	if err != nil {
		return errors.Join(errLeaf, err)
	}
	if e.Prev != r.prev {
		return fmt.Errorf("%w: its link is not the leaf before", errLeaf)
	}
	if err := follows(&e, r.size, r.lastSeq, r.through); err != nil {
		return errors.Join(errLeaf, err)
	}
	switch e.Kind {
	case KindEvent:
		err = r.nextEvent(&e, s)
	case KindState:
		err = r.nextState(&e)
	}
	if err != nil {
		return err
	}
	if r.size < r.l.head.Size {
		var leaf Hash
		leaf, r.scratch = leafHash(b, r.scratch)
		r.stored = r.tree.append(leaf, r.stored[:0])
		if err := r.hashes.write(r.stored); err != nil {
			return err
		}
		if err := r.passOld(&r.tree); err != nil {
			return err
		}
	}
	r.prev = sha256.Sum256(b)
	if seq, ok := e.LastSeq(); ok {
		r.lastSeq = seq
	}
	if e.begins() {
		r.through = e.Old.Through
	}
	r.ent, r.raw = s.entAt, s.rawAt
	r.size++
	if err := r.offsets.write(offsetsOf(r.ent, r.raw)); err != nil {
		return err
	}
	if r.size == r.l.head.Size {
		return r.reachHead()
	}
	return nil
}

func (r *replay) nextEvent(e *Entry, s *scanner) error {
	block, payload, err := s.nextFrame()
	if errors.Is(err, ErrMalformed) {
		return errors.Join(errLeaf, err)
	}
	if err != nil {
		return err
	}
	if err := matchesFrame(e, block, payload); err != nil {
		return errors.Join(errLeaf, err)
	}
	if e.Job == "" {
		return nil
	}
	key := keyOf(e.Job)
	// Below the head the root vouches for the link, and the table may be ahead of here.
	if r.size >= r.l.head.Size {
		before, err := r.l.jobs.get(key)
		if err != nil {
			return err
		}
		if e.JobPrev != before {
			return fmt.Errorf("%w: it names leaf %d as the job's previous event, which is %d", errLeaf, e.JobPrev, before)
		}
	}
	if r.l.jobs.rebuilt != nil && r.size < r.l.head.Size {
		r.l.jobs.rebuilt[key] = r.size
	} else {
		r.l.jobs.put(key, r.size)
	}
	return nil
}

// nextState checks a state beyond the head; below it the root vouches for it.
func (r *replay) nextState(e *Entry) error {
	if r.size < r.l.head.Size {
		return nil
	}
	d, err := r.l.jobs.directory()
	if err != nil {
		return err
	}
	if err := sameState(e, d); err != nil {
		return fmt.Errorf("%w: %w", errLeaf, err)
	}
	return nil
}

// checkStates refuses a log of a build that wrote no states, by the first one.
func (r *replay) checkStates() error {
	if r.from <= stateStep {
		return nil
	}
	b, err := readEntry(r.l.entries, r.l.offsets, stateStep)
	if err != nil {
		return err
	}
	e, err := ParseEntry(b)
	if err == nil && e.Kind != KindState {
		err = follows(&e, stateStep, 0, 0)
	}
	return err
}

// passOld compares the earlier head when the tree has its size.
func (r *replay) passOld(tree *frontier) error {
	if tree.n == r.old.Size && tree.root() != r.old.Root {
		return fmt.Errorf("%w: the checkpoint of %d leaves has another root", ErrFork, tree.n)
	}
	return nil
}

func (r *replay) reachHead() error {
	if root := r.tree.root(); root != r.l.head.Root {
		return fmt.Errorf("%w: %d leaves have root %x, signed is %x", ErrFork, r.tree.n, root, r.l.head.Root)
	}
	r.headEnt, r.headPrev = r.ent, r.prev
	return nil
}

// adopt writes the derived files, cuts the torn tail and makes the log continue here.
func (r *replay) adopt() error {
	l := r.l
	entSize, err := sizeOf(l.entries)
	if err != nil {
		return err
	}
	rawSize, err := sizeOf(l.raw)
	if err != nil {
		return err
	}
	l.recovery.CutEntries_bytes, l.recovery.CutRaw_bytes = entSize-r.ent, rawSize-r.raw
	if r.from == 0 {
		err = r.replaceDerived()
	} else {
		err = errors.Join(
			l.d.writeAt(l.hashes, r.hashes.mem.Bytes(), tlog.StoredHashCount(r.from)*tlog.HashSize),
			l.d.writeAt(l.offsets, r.offsets.mem.Bytes(), r.from*offset_bytes))
	}
	if err != nil {
		return err
	}
	for _, cut := range []struct {
		f    *os.File
		size int64
	}{
		{l.entries, r.ent}, {l.raw, r.raw}, {l.offsets, r.size * offset_bytes},
		{l.hashes, tlog.StoredHashCount(l.head.Size) * tlog.HashSize},
	} {
		if err := l.d.truncate(cut.f, cut.size); err != nil {
			return err
		}
	}
	l.size, l.written, l.lastSeq, l.prev = r.size, r.size, max(r.lastSeq, r.through), r.prev
	l.leafSeq, l.through = r.lastSeq, r.through
	l.entEnd, l.rawEnd = r.ent, r.raw
	l.tree, l.headEnt, l.headPrev = r.tree, r.headEnt, r.headPrev
	return nil
}

// replaceDerived puts what a replay of everything computed in the place of the old
// derived files.
func (r *replay) replaceDerived() error {
	l := r.l
	for _, s := range []struct {
		spool *spool
		file  **os.File
	}{{&r.hashes, &l.hashes}, {&r.offsets, &l.offsets}} {
		f, err := s.spool.install(l.d)
		if err != nil {
			return err
		}
		(*s.file).Close()
		*s.file = f
	}
	tail := l.jobs.pending
	l.jobs.pending = map[jobKey]int64{}
	if err := l.jobs.write(l.jobs.rebuilt, l.head.Size); err != nil {
		return err
	}
	l.jobs.pending, l.jobs.rebuilt = tail, nil
	return nil
}

func (r *replay) flushSpools() error { return errors.Join(r.hashes.flush(), r.offsets.flush()) }
func (r *replay) dropSpools()        { r.hashes.drop(); r.offsets.drop() }

// spool collects what will be written: in memory if path is empty, which suits the few
// leaves of an ordinary Open, else in a file beside path.
type spool struct {
	path string
	mem  bytes.Buffer
	f    *os.File
	w    *bufio.Writer
}

func (s *spool) write(b []byte) error {
	if s.path == "" {
		s.mem.Write(b)
		return nil
	}
	if s.f == nil {
		f, err := os.OpenFile(s.path+".tmp", os.O_RDWR|os.O_CREATE|os.O_TRUNC, fileMode)
		if err != nil {
			return err
		}
		s.f, s.w = f, bufio.NewWriterSize(f, scanBuffer_bytes)
	}
	_, err := s.w.Write(b)
	return err
}

func (s *spool) flush() error {
	if s.f == nil {
		return nil
	}
	return s.w.Flush()
}

func (s *spool) drop() {
	if s.f != nil {
		s.f.Close()
		os.Remove(s.f.Name())
	}
}

// install syncs the file and moves it to path.
func (s *spool) install(d disk) (*os.File, error) {
	if err := d.sync(s.f); err != nil {
		return nil, err
	}
	if err := d.rename(s.f.Name(), s.path); err != nil {
		return nil, err
	}
	s.f.Close()
	return os.OpenFile(s.path, os.O_RDWR, 0)
}

func offsetsOf(ent, raw int64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, offset_bytes), uint64(ent))
	return binary.BigEndian.AppendUint64(b, uint64(raw))
}

func sizeOf(f *os.File) (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
