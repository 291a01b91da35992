package tlog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/mod/sumdb/note"
)

// Names of the files in the folder.
const (
	entriesName    = "entries.log"
	rawName        = "raw.log"
	hashesName     = "hashes"
	offsetsName    = "offsets"
	jobsName       = "jobs"
	checkpointName = "checkpoint"
)

const (
	flushAt_bytes = 1 << 20 // buffered bytes that are written without waiting for a seal
	keep_bytes    = 4 << 20 // a buffer that grew beyond this is let go after a flush
	offset_bytes  = 16      // per leaf in the offsets file: end in entries.log, end in raw.log
)

// Log is the one writer of a folder. Its methods may be called from any goroutine; the
// order of appends is the caller's business.
type Log struct {
	dir    string
	origin string
	lock   Lock
	d      disk

	mu                            sync.Mutex // guards everything below
	signers                       []note.Signer
	entries, raw, hashes, offsets *os.File
	jobs                          *jobTable
	err                           error // first failure; nothing works after it

	// What was appended, on disk or still buffered.
	size           int64
	lastSeq        uint64
	leafSeq        uint64 // what the last leaf says; behind lastSeq only after what was carried
	through        uint64 // what was carried from another log ends here
	prev           Hash   // SHA-256 of the last entry
	entEnd, rawEnd int64  // where the files end once the buffers are written

	entBuf, rawBuf, offBuf, block []byte
	written                       int64 // leaves whose bytes were handed to the files

	// What is signed.
	head     Checkpoint
	lockText []byte   // content of the lock
	tree     frontier // of head.Size leaves
	headEnt  int64    // end of those leaves in entries.log
	headPrev Hash     // SHA-256 of the last of them

	recovery Recovery
}

// Recovery says what Open had to do to the folder.
type Recovery struct {
	CutEntries_bytes int64 // torn or unusable bytes cut from entries.log, beyond the signed head
	CutRaw_bytes     int64 // the same of raw.log
	Rebuilt          bool  // the derived files were made again from the entries
	Resigned         bool  // the checkpoint file was missing or older than the lock
}

// Append adds one record and returns its leaf. It is durable after the next [Log.Seal].
// A record that leaves out sequences is refused with [ErrHole], one that the log already
// covers with [ErrOrder], one that no entry can express with [ErrRecord]; these three
// change nothing. The record's memory is not kept.
func (l *Log) Append(rec Record, m Meta) (leaf int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	l.block = AppendHeaderBlock(l.block[:0], rec.Header)
	if err := checkRecord(&rec, l.block); err != nil {
		return 0, fmt.Errorf("append record %d: %w", rec.Seq, err)
	}
	if err := l.expect(rec.Seq); err != nil {
		return 0, fmt.Errorf("append record %d: %w", rec.Seq, err)
	}
	if err := l.addState(); err != nil {
		return 0, err
	}
	e := entryOf(&rec, &m, l.block, l.prev, -1)
	var key jobKey
	if e.Job != "" {
		key = keyOf(e.Job)
		if e.JobPrev, err = l.jobs.get(key); err != nil {
			l.err = errors.Join(err, l.jobs.discard())
			return 0, l.err
		}
	}
	leaf = l.size
	if err := l.add(&e); err != nil {
		return 0, fmt.Errorf("append record %d: %w", rec.Seq, err)
	}
	if e.Job != "" {
		l.jobs.put(key, leaf)
	}
	before := len(l.rawBuf)
	l.rawBuf = AppendFrame(l.rawBuf, l.block, rec.Payload)
	l.rawEnd += int64(len(l.rawBuf) - before)
	return leaf, l.appended()
}

// AppendGap records that the stream did not hold the sequences from to to any more.
func (l *Log) AppendGap(from, to uint64) (leaf int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	if to < from {
		return 0, fmt.Errorf("append gap %d to %d: %w: it ends before it starts", from, to, ErrRecord)
	}
	if err := l.expect(from); err != nil {
		return 0, fmt.Errorf("append gap %d to %d: %w", from, to, err)
	}
	if err := l.addState(); err != nil {
		return 0, err
	}
	leaf = l.size
	if err := l.add(&Entry{Kind: KindGap, Prev: l.prev, From: from, To: to}); err != nil {
		return 0, err
	}
	return leaf, l.appended()
}

func (l *Log) expect(seq uint64) error {
	switch {
	case seq <= l.lastSeq:
		return fmt.Errorf("%w: it ends at %d", ErrOrder, l.lastSeq)
	case seq > max(l.lastSeq, l.through)+1:
		return fmt.Errorf("%w: the log ends at %d", ErrHole, l.lastSeq)
	}
	return nil
}

// add buffers one entry and its frame of length.
func (l *Log) add(e *Entry) error {
	start := len(l.entBuf)
	l.entBuf = e.append(append(l.entBuf, 0, 0))
	entry := l.entBuf[start+2:]
	if len(entry) > maxEntry_bytes {
		l.entBuf = l.entBuf[:start]
		return fmt.Errorf("%w: its entry has %d bytes, at most %d fit", ErrRecord, len(entry), maxEntry_bytes)
	}
	binary.BigEndian.PutUint16(l.entBuf[start:], uint16(len(entry)))
	l.prev = sha256.Sum256(entry)
	l.size++
	l.entEnd += int64(2 + len(entry))
	if seq, ok := e.LastSeq(); ok {
		l.leafSeq, l.lastSeq = seq, max(l.lastSeq, seq)
	}
	return nil
}

// appended notes the new ends and keeps the buffers small.
func (l *Log) appended() error {
	l.offBuf = binary.BigEndian.AppendUint64(l.offBuf, uint64(l.entEnd))
	l.offBuf = binary.BigEndian.AppendUint64(l.offBuf, uint64(l.rawEnd))
	if len(l.entBuf)+len(l.rawBuf) < flushAt_bytes {
		return nil
	}
	return l.fail(l.flush())
}

// flush hands the buffers to the files, frames before the entries that name them.
func (l *Log) flush() error {
	if err := l.d.writeAt(l.raw, l.rawBuf, l.rawEnd-int64(len(l.rawBuf))); err != nil {
		return err
	}
	if err := l.d.writeAt(l.entries, l.entBuf, l.entEnd-int64(len(l.entBuf))); err != nil {
		return err
	}
	if err := l.d.writeAt(l.offsets, l.offBuf, l.written*offset_bytes); err != nil {
		return err
	}
	l.written = l.size
	l.rawBuf, l.entBuf, l.offBuf = reuse(l.rawBuf), reuse(l.entBuf), reuse(l.offBuf)
	l.block = reuse(l.block)
	return nil
}

func reuse(b []byte) []byte {
	if cap(b) > keep_bytes {
		return nil
	}
	return b[:0]
}

// fail keeps the first failure: what is on disk is unknown from then on.
func (l *Log) fail(err error) error {
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("log %s must be opened again: %w", l.dir, err)
	}
	return l.err
}

// Flush writes what was appended, so that a [Reader] sees it. It is not durable before
// the next Seal.
func (l *Log) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if err := l.flush(); err != nil {
		return l.fail(err)
	}
	return nil
}

// Size returns how many leaves were appended, sealed or not.
func (l *Log) Size() int64 { l.mu.Lock(); defer l.mu.Unlock(); return l.size }

// LastSeq returns the stream sequence up to which the log covers the stream.
func (l *Log) LastSeq() uint64 { l.mu.Lock(); defer l.mu.Unlock(); return l.lastSeq }

// Bytes returns how large entries and records have become.
func (l *Log) Bytes() int64 { l.mu.Lock(); defer l.mu.Unlock(); return l.entEnd + l.rawEnd }

// SealedSize returns how many leaves the signed head covers.
func (l *Log) SealedSize() int64 { l.mu.Lock(); defer l.mu.Unlock(); return l.head.Size }

// Head returns the newest signed head.
func (l *Log) Head() Checkpoint { l.mu.Lock(); defer l.mu.Unlock(); return l.head }

// Origin returns the first line of the log's checkpoints.
func (l *Log) Origin() string { return l.origin }

// Recovery says what Open had to do.
func (l *Log) Recovery() Recovery { return l.recovery }

// Matches checks that leaf is the entry of this record, rebuilt byte for byte, and
// answers [ErrDiffers] if not. After a restart the caller fetches the records of the
// last sealed leaf and of the unsealed ones again and compares them before going on: a
// stream that was rolled back and written anew is found here.
func (l *Log) Matches(leaf int64, rec Record, m Meta) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if err := l.flush(); err != nil {
		return l.fail(err)
	}
	if leaf < 0 || leaf >= l.size {
		return fmt.Errorf("compare leaf %d: %w: there are %d", leaf, ErrRange, l.size)
	}
	b, err := readEntry(l.entries, l.offsets, leaf)
	if err != nil {
		return fmt.Errorf("compare leaf %d: %w", leaf, err)
	}
	return matches(leaf, b, rec, m)
}

// matches compares the bytes of a leaf with the entry of a record.
func matches(leaf int64, b []byte, rec Record, m Meta) error {
	logged, err := ParseEntry(b)
	if err != nil {
		return fmt.Errorf("compare leaf %d: %w: %w", leaf, ErrCorrupt, err)
	}
	again := entryOf(&rec, &m, AppendHeaderBlock(nil, rec.Header), logged.Prev, logged.JobPrev)
	if string(again.Encode()) != string(b) {
		return fmt.Errorf("compare leaf %d with record %d: %w", leaf, rec.Seq, ErrDiffers)
	}
	return nil
}

// Close lets the folder go. What was appended after the last seal may be lost; feeding
// it again leads to the same log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.err, ErrClosed) {
		return nil
	}
	var err error
	if l.err == nil {
		if err = l.flush(); err == nil && l.size == l.head.Size && l.jobs.covers < l.size {
			err = l.settle()
		}
	}
	l.err = ErrClosed
	return errors.Join(err, l.closeFiles())
}

func (l *Log) closeFiles() error {
	var errs []error
	if l.entries != nil {
		errs = append(errs, unflock(l.entries))
	}
	for _, f := range []*os.File{l.entries, l.raw, l.hashes, l.offsets} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if l.jobs != nil {
		errs = append(errs, l.jobs.close())
	}
	return errors.Join(errs...)
}

func (l *Log) path(name string) string { return filepath.Join(l.dir, name) }
