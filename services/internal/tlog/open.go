package tlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/note"
)

const (
	dirMode  = 0o750
	fileMode = 0o640
)

// Create starts a log in dir with a sealed genesis. It fails with fs.ErrExist if there
// is one already, and with [ErrRollback] if the lock has a head but the folder has no
// log: then the folder was lost. What a Create that was interrupted before its lock
// swap left behind is overwritten.
func Create(dir string, g Genesis, signer note.Signer, lock Lock, also ...note.Signer) (*Log, error) {
	return create(dir, g, signer, lock, disk{}, also...)
}

// Continue is Create for a log that goes on where another one ended. Carry hands over
// the records that go along, in order; they are under the first head.
func Continue(dir string, g Genesis, carry Carry, signer note.Signer, lock Lock, also ...note.Signer) (*Log, error) {
	return begin(dir, g, carry, append([]note.Signer{signer}, also...), lock, disk{})
}

// Carry calls add for each record that a log takes over from the one before.
type Carry func(add func(Record, Meta) error) error

func create(dir string, g Genesis, signer note.Signer, lock Lock, d disk, also ...note.Signer) (*Log, error) {
	return begin(dir, g, nil, append([]note.Signer{signer}, also...), lock, d)
}

func begin(dir string, g Genesis, carry Carry, signers []note.Signer, lock Lock, d disk) (*Log, error) {
	l, err := startLog(dir, g, carry, signers, lock, d)
	if err != nil {
		return nil, fmt.Errorf("create log %s: %w", dir, err)
	}
	return l, nil
}

func startLog(dir string, g Genesis, carry Carry, signers []note.Signer, lock Lock, d disk) (*Log, error) {
	if !isToken(g.Origin) || !isToken(g.Stream) || !fitsNanoseconds(g.Created) {
		return nil, fmt.Errorf("%w: genesis of origin %q, stream %q, created %v", ErrRecord, g.Origin, g.Stream, g.Created)
	}
	if (g.Old != Before{}) && (!isToken(g.Old.Origin) || !isToken(g.Old.Why) || g.Old.Size < 1) {
		return nil, fmt.Errorf("%w: a log that goes on after %+v", ErrRecord, g.Old)
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	if err := checkEmpty(dir, lock); err != nil {
		return nil, err
	}
	l := &Log{dir: dir, origin: g.Origin, signers: signers, lock: lock, d: d}
	if err := l.openFiles(os.O_CREATE); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	err := l.begin(g, carry)
	if err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	return l, nil
}

// checkEmpty refuses a folder or lock that belongs to a log.
func checkEmpty(dir string, lock Lock) error {
	_, err := os.Stat(filepath.Join(dir, entriesName))
	hasLog := err == nil
	head, err := lock.Load()
	if err != nil {
		return err
	}
	_, cpErr := os.Stat(filepath.Join(dir, checkpointName))
	switch {
	case head != nil && hasLog, head == nil && cpErr == nil:
		return fmt.Errorf("there is a log already: %w", fs.ErrExist)
	case head != nil:
		return fmt.Errorf("%w: the lock has head %q but the folder has no log", ErrRollback, head)
	}
	return nil
}

// begin empties the files, which only a Create that did not finish can have filled, and
// seals leaf 0 and what is carried.
func (l *Log) begin(g Genesis, carry Carry) error {
	for _, f := range []*os.File{l.entries, l.raw, l.hashes, l.offsets} {
		if err := l.d.truncate(f, 0); err != nil {
			return err
		}
	}
	if err := l.jobs.write(nil, 0); err != nil {
		return err
	}
	if err := l.d.syncDir(l.dir); err != nil {
		return err
	}
	if err := l.d.syncDir(filepath.Dir(l.dir)); err != nil {
		return err
	}
	e := g.entry()
	if err := l.add(&e); err != nil {
		return err
	}
	if err := l.appended(); err != nil {
		return err
	}
	l.through = g.Old.Through
	if carry != nil {
		err := carry(func(rec Record, m Meta) error {
			if rec.Seq > g.Old.Through {
				return fmt.Errorf("carry record %d: %w: the log before ends at %d", rec.Seq, ErrOrder, g.Old.Through)
			}
			_, err := l.Append(rec, m)
			return err
		})
		if err != nil {
			return err
		}
	}
	l.lastSeq = max(l.lastSeq, l.through)
	if _, err := l.Seal(); err != nil {
		return err
	}
	return l.settle()
}

// openFiles opens the folder for writing and makes this Log its one writer. flag is
// os.O_CREATE or 0 and counts for the files that hold the truth.
func (l *Log) openFiles(flag int) (err error) {
	open := func(name string, flag int) *os.File {
		var f *os.File
		if err == nil {
			f, err = os.OpenFile(l.path(name), os.O_RDWR|flag, fileMode)
		}
		return f
	}
	if l.entries = open(entriesName, flag); err != nil {
		return err
	}
	ok, err := flockSoon(l.entries)
	if err != nil {
		return err
	}
	if !ok {
		return ErrInUse
	}
	l.raw = open(rawName, flag)
	l.hashes = open(hashesName, os.O_CREATE)
	l.offsets = open(offsetsName, os.O_CREATE)
	if err == nil {
		l.jobs, err = openJobs(l.d, l.path(jobsName))
	}
	return err
}

// Open continues a log. It reads the lock first and believes it: everything below its
// head must be there and lead to its root. From the leaves beyond it keeps those that
// hold together and cuts what a crash tore. The cost does not grow with the log, unless
// a derived file is damaged and has to be made again. Heads are signed by the signer and
// by each of the others.
func Open(dir string, signer note.Signer, lock Lock, also ...note.Signer) (*Log, error) {
	return open(dir, signer, lock, disk{}, also...)
}

func open(dir string, signer note.Signer, lock Lock, d disk, also ...note.Signer) (*Log, error) {
	l := &Log{dir: dir, signers: append([]note.Signer{signer}, also...), lock: lock, d: d}
	if err := l.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("open log %s: %w", dir, err), l.closeFiles())
	}
	return l, nil
}

func (l *Log) recover() error {
	if err := l.loadHead(); err != nil {
		return err
	}
	if err := l.openFiles(0); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: the lock has a head of %d leaves: %w", ErrRollback, l.head.Size, err)
	} else if err != nil {
		return err
	}
	// Another writer may have sealed between the first look and the flock.
	if err := l.loadHead(); err != nil {
		return err
	}
	now, old, err := l.readOldCheckpoint()
	if err != nil {
		return err
	}
	if err := l.replayAll(old); err != nil {
		return err
	}
	return l.renewCheckpoint(now)
}

// loadHead reads what the lock says was signed last.
func (l *Log) loadHead() error {
	text, err := l.lock.Load()
	if err != nil {
		return err
	}
	if text == nil {
		return fmt.Errorf("%w: Create did not finish here, or the lock was lost", ErrNoHead)
	}
	l.lockText = text
	if l.origin, l.head.Size, l.head.Root, err = ParseHead(text); err != nil {
		return fmt.Errorf("the lock: %w", err)
	}
	if l.head.Size < 1 {
		return fmt.Errorf("the lock: %w: a head of no leaves", ErrMalformed)
	}
	return nil
}

// replayAll replays from the last leaf that the derived files surely cover. If that
// does not lead to the signed head, either these files are damaged or the truth is, and
// only a replay of everything tells. old is what the checkpoint file says, if it can be
// read, and must be a head of the same history.
func (l *Log) replayAll(old Checkpoint) error {
	if from := l.jobs.covers; from > 0 && from <= l.head.Size {
		r := &replay{l: l, from: from, old: old}
		if r.run() == nil {
			return r.adopt()
		}
	}
	l.jobs.rebuilt = map[jobKey]int64{}
	clear(l.jobs.pending)
	r := &replay{l: l, old: old}
	if err := errors.Join(r.run(), r.flushSpools()); err != nil {
		r.dropSpools()
		return err
	}
	l.recovery.Rebuilt = true
	return r.adopt()
}

// readOldCheckpoint reads the checkpoint file. It may be missing, torn or behind the
// lock, since the lock moves first; ahead of it it can only be if the lock went back.
func (l *Log) readOldCheckpoint() (now []byte, old Checkpoint, err error) {
	now, err = os.ReadFile(l.path(checkpointName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Checkpoint{}, nil
	}
	if err != nil {
		return nil, Checkpoint{}, err
	}
	if _, old, err = ParseCheckpoint(now); err != nil {
		return nil, Checkpoint{}, nil // the lock knows better
	}
	if old.Size > l.head.Size {
		return nil, Checkpoint{}, fmt.Errorf("%w: the checkpoint has %d leaves, the lock %d", ErrRollback, old.Size, l.head.Size)
	}
	return now, old, nil
}

// renewCheckpoint signs the lock's head again unless the file holds just that, with the
// cosignatures of others, perhaps.
func (l *Log) renewCheckpoint(now []byte) error {
	signed, err := signHead(string(l.lockText), l.signers...)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(now, signed) {
		l.head.Note = now
		return nil
	}
	l.head.Note, l.recovery.Resigned = signed, true
	return l.d.replace(l.path(checkpointName), signed)
}
