package tlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"
)

// Reader looks at a folder without changing or locking anything, also while a [Log]
// writes it: every leaf under the newest checkpoint is complete. What it returns is as
// good as the files; [Reader.Prove] against a head that was checked makes it certain.
// After a writer had to rebuild damaged derived files, a Reader must be opened again to
// see later leaves.
type Reader struct {
	dir                           string
	entries, raw, hashes, offsets *os.File
	through                       uint64 // where the log before this one ends
}

// OpenReader opens a folder for reading.
func OpenReader(dir string) (*Reader, error) {
	r := &Reader{dir: dir}
	for _, f := range []struct {
		name string
		dst  **os.File
	}{{entriesName, &r.entries}, {rawName, &r.raw}, {hashesName, &r.hashes}, {offsetsName, &r.offsets}} {
		file, err := os.Open(filepath.Join(dir, f.name))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read log %s: %w", dir, err), r.Close())
		}
		*f.dst = file
	}
	if g, err := r.Genesis(); err == nil { // a log that is being made has none yet
		r.through = g.Old.Through
	}
	return r, nil
}

// Close closes the files.
func (r *Reader) Close() error {
	var errs []error
	for _, f := range []*os.File{r.entries, r.raw, r.hashes, r.offsets} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Checkpoint reads the newest signed head. Its signature is not checked here; that is
// [OpenCheckpoint] with the log's key.
func (r *Reader) Checkpoint() (Checkpoint, error) {
	b, err := os.ReadFile(filepath.Join(r.dir, checkpointName))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read the checkpoint: %w", err)
	}
	_, cp, err := ParseCheckpoint(b)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read the checkpoint of %s: %w", r.dir, err)
	}
	return cp, nil
}

// Entry returns leaf i, parsed and as the bytes that are hashed.
func (r *Reader) Entry(i int64) (Entry, []byte, error) {
	b, err := readEntry(r.entries, r.offsets, i)
	if err != nil {
		return Entry{}, nil, fmt.Errorf("read leaf %d: %w", i, err)
	}
	e, err := ParseEntry(b)
	if err != nil {
		return Entry{}, b, fmt.Errorf("read leaf %d: %w: %w", i, ErrCorrupt, err)
	}
	return e, b, nil
}

// Covers returns the stream sequence up to which the first so many leaves, together
// with the logs before this one, are complete; 0 if they say nothing about sequences.
func (r *Reader) Covers(leaves int64) (uint64, error) {
	e, _, err := r.Entry(leaves - 1)
	seq, _ := e.LastSeq()
	return max(seq, r.through), err
}

// Ends returns how many bytes of entries.log and raw.log the first so many leaves take.
func (r *Reader) Ends(leaves int64) (entries, raw int64, err error) {
	return readOffsets(r.offsets, leaves-1)
}

// Through returns where the log before this one ends, 0 if there is none. Events up to
// there were carried.
func (r *Reader) Through() uint64 { return r.through }

// Entries shows the leaves from up to, not including, to, in order.
func (r *Reader) Entries(from, to int64, show func(leaf int64, e Entry) error) error {
	for from < to {
		b, err := r.Bundle(from, min(from+entriesPage, to))
		if err != nil {
			return err
		}
		for len(b) > 0 {
			if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
				return fmt.Errorf("read leaf %d: %w: its frame is short", from, ErrCorrupt)
			}
			end := 2 + int(binary.BigEndian.Uint16(b))
			e, err := ParseEntry(b[2:end])
			if err != nil {
				return fmt.Errorf("read leaf %d: %w: %w", from, ErrCorrupt, err)
			}
			if err := show(from, e); err != nil {
				return err
			}
			b, from = b[end:], from+1
		}
	}
	return nil
}

// entriesPage is how many leaves Entries reads at once.
const entriesPage = 256

// Record returns the record that leaf i stands for, compared with the digests in the
// entry. It fails with [ErrRange] if the leaf is no event.
func (r *Reader) Record(i int64) (Record, error) {
	e, _, err := r.Entry(i)
	if err != nil {
		return Record{}, err
	}
	if e.Kind != KindEvent {
		return Record{}, fmt.Errorf("read the record of leaf %d: %w: it is a %s", i, ErrRange, e.Kind)
	}
	block, payload, err := r.frame(i)
	if err == nil {
		err = matchesFrame(&e, block, payload)
	}
	if err != nil {
		return Record{}, fmt.Errorf("read the record of leaf %d: %w: %w", i, ErrCorrupt, err)
	}
	rec := Record{Seq: e.Seq, Time: e.Time, Subject: e.Subject, Payload: payload}
	if rec.Header, err = ParseHeaderBlock(block); err != nil {
		return Record{}, fmt.Errorf("read the record of leaf %d: %w", i, err)
	}
	return rec, nil
}

// Matches is [Log.Matches] for a leaf that is sealed.
func (r *Reader) Matches(leaf int64, rec Record, m Meta) error {
	b, err := readEntry(r.entries, r.offsets, leaf)
	if err != nil {
		return fmt.Errorf("compare leaf %d: %w", leaf, err)
	}
	return matches(leaf, b, rec, m)
}

func (r *Reader) frame(i int64) (block, payload []byte, err error) {
	_, from, err := readOffsets(r.offsets, i-1)
	if err != nil {
		return nil, nil, err
	}
	_, to, err := readOffsets(r.offsets, i)
	if err != nil {
		return nil, nil, err
	}
	if to-from < frameHead_bytes || to-from > frameHead_bytes+2*maxPart_bytes {
		return nil, nil, fmt.Errorf("%w: offsets: a raw frame from %d to %d", ErrDamaged, from, to)
	}
	b := make([]byte, to-from)
	if _, err := r.raw.ReadAt(b, from); err != nil {
		return nil, nil, err
	}
	block, payload, rest, err := CutFrame(b)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes after the frame", ErrMalformed, len(rest))
	}
	return block, payload, err
}

// Bundle returns the frames of entries.log for the leaves from up to, not including, to;
// for an aligned run of at most 256 that is a C2SP entry bundle.
func (r *Reader) Bundle(from, to int64) ([]byte, error) {
	if from < 0 || to < from {
		return nil, fmt.Errorf("read leaves %d to %d: %w", from, to, ErrRange)
	}
	start, _, err := readOffsets(r.offsets, from-1)
	if err != nil {
		return nil, fmt.Errorf("read leaves %d to %d: %w", from, to, err)
	}
	end, _, err := readOffsets(r.offsets, to-1)
	if err != nil {
		return nil, fmt.Errorf("read leaves %d to %d: %w", from, to, err)
	}
	if end < start || end-start > (to-from)*(2+maxEntry_bytes) {
		return nil, fmt.Errorf("read leaves %d to %d: %w: offsets", from, to, ErrDamaged)
	}
	b := make([]byte, end-start)
	if _, err := r.entries.ReadAt(b, start); err != nil {
		return nil, fmt.Errorf("read leaves %d to %d: %w", from, to, err)
	}
	return b, nil
}

// Genesis reads which log this is.
func (r *Reader) Genesis() (Genesis, error) {
	e, _, err := r.Entry(0)
	if err != nil {
		return Genesis{}, err
	}
	if !e.begins() {
		return Genesis{}, fmt.Errorf("read the genesis: %w: leaf 0 is a %s", ErrCorrupt, e.Kind)
	}
	return Genesis{Origin: e.Origin, Stream: e.Stream, Created: e.Created, Config: e.Config, Old: e.Old}, nil
}

// Hashes gives x/mod's tlog functions, tiles among them, the stored hashes.
func (r *Reader) Hashes() tlog.HashReader { return hashFile{r.hashes} }

// TreeHash returns the root of the first size leaves.
func (r *Reader) TreeHash(size int64) (Hash, error) {
	root, err := tlog.TreeHash(size, r.Hashes())
	return Hash(root), err
}

// Prove returns the RFC 6962 inclusion proof of leaf i in the tree of the first size
// leaves, which must be sealed.
func (r *Reader) Prove(i, size int64) (tlog.RecordProof, error) {
	if i < 0 || i >= size {
		return nil, fmt.Errorf("prove leaf %d of %d: %w", i, size, ErrRange)
	}
	p, err := tlog.ProveRecord(size, i, r.Hashes())
	if err != nil {
		return nil, fmt.Errorf("prove leaf %d of %d: %w", i, size, err)
	}
	return p, nil
}

// ProveGrowth returns the RFC 6962 consistency proof from the tree of the first old
// leaves to the one of the first size leaves.
func (r *Reader) ProveGrowth(old, size int64) (tlog.TreeProof, error) {
	if old < 1 || old > size {
		return nil, fmt.Errorf("prove growth from %d to %d: %w", old, size, ErrRange)
	}
	p, err := tlog.ProveTree(size, old, r.Hashes())
	if err != nil {
		return nil, fmt.Errorf("prove growth from %d to %d: %w", old, size, err)
	}
	return p, nil
}

// readOffsets returns where leaf i ends in entries.log and raw.log; leaf -1 ends at 0.
func readOffsets(offsets io.ReaderAt, i int64) (ent, raw int64, err error) {
	if i == -1 {
		return 0, 0, nil
	}
	if i < 0 {
		return 0, 0, ErrRange
	}
	var b [offset_bytes]byte
	if _, err := offsets.ReadAt(b[:], i*offset_bytes); errors.Is(err, io.EOF) {
		return 0, 0, fmt.Errorf("%w: offsets end before leaf %d", ErrRange, i)
	} else if err != nil {
		return 0, 0, err
	}
	ent, raw = int64(binary.BigEndian.Uint64(b[:])), int64(binary.BigEndian.Uint64(b[8:]))
	if ent < 0 || raw < 0 {
		return 0, 0, fmt.Errorf("%w: offsets of leaf %d", ErrDamaged, i)
	}
	return ent, raw, nil
}

// readEntry reads the bytes of one entry.
func readEntry(entries, offsets io.ReaderAt, i int64) ([]byte, error) {
	if i < 0 {
		return nil, ErrRange
	}
	from, _, err := readOffsets(offsets, i-1)
	if err != nil {
		return nil, err
	}
	to, _, err := readOffsets(offsets, i)
	if err != nil {
		return nil, err
	}
	if n := to - from; n < 2 || n > 2+maxEntry_bytes {
		return nil, fmt.Errorf("%w: offsets: an entry from %d to %d", ErrDamaged, from, to)
	}
	b := make([]byte, to-from)
	if _, err := entries.ReadAt(b, from); err != nil {
		return nil, fmt.Errorf("%w: entries.log from %d: %w", ErrDamaged, from, err)
	}
	if int(binary.BigEndian.Uint16(b)) != len(b)-2 {
		return nil, fmt.Errorf("%w: offsets and entries.log disagree at byte %d", ErrDamaged, from)
	}
	return b[2:], nil
}
