package tlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/mod/sumdb/note"
)

// Verify recomputes a folder from its entries and raw records and compares it with the
// signed head, the lock in the folder, and the derived files. It changes nothing and may
// run beside a live writer. What is wrong with the log is in the Report; an error means
// that Verify could not do its work, or is the visitor's.
//
// visit, if not nil, sees each entry that parses, in order, sealed or not. rec is nil if
// the entry is no event or its record is missing or altered. rec and its Payload only
// live until visit returns; its Header and the entry may be kept.
func Verify(ctx context.Context, dir string, verifiers note.Verifiers, visit func(leaf int64, e Entry, rec *Record) error) (Report, error) {
	v := &verification{dir: dir, visit: visit, jobs: map[jobKey]int64{}}
	err := v.run(ctx, verifiers)
	if err != nil {
		err = fmt.Errorf("verify log %s: %w", dir, err)
	}
	return v.Report, err
}

// verification is one run of Verify.
type verification struct {
	Report
	dir   string
	visit func(int64, Entry, *Record) error
	scan  *scanner

	checkpoint, lock             Checkpoint // Size 0: none
	checkpointOrigin, lockOrigin string

	tree    frontier
	prev    Hash
	jobs    map[jobKey]int64
	lost    bool   // raw.log cannot be followed any more
	blind   bool   // the entry before did not parse: what follows it is unknown
	rec     Record // of the entry that visit sees
	scratch []byte
	stored  []byte

	hashes, offsets *mirror
}

func (v *verification) run(ctx context.Context, verifiers note.Verifiers) error {
	if _, err := os.Stat(v.dir); err != nil {
		return err
	}
	live := v.writerLive()
	if err := v.readHeads(verifiers); err != nil {
		return err
	}
	closeAll, err := v.openFiles()
	if err != nil {
		return err
	}
	defer closeAll()
	if v.scan != nil {
		for n := 0; ; n++ {
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := v.next(); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			} else if err != nil {
				return err
			}
		}
	}
	v.Size, v.Root = v.tree.n, v.tree.root()
	v.Unsealed = max(0, v.Size-v.CheckpointSize)
	v.Live = live || v.writerLive()
	v.finish()
	return nil
}

// writerLive reports whether somebody holds the writer's flock.
func (v *verification) writerLive() bool {
	f, err := os.Open(filepath.Join(v.dir, entriesName))
	if err != nil {
		return false
	}
	defer f.Close()
	free, err := tryFlock(f, syscall.LOCK_SH)
	if err != nil {
		return false
	}
	if free {
		unflock(f)
	}
	return !free
}

// readHeads reads the checkpoint before the lock and both before the data, so that with
// a live writer the later ones are never behind.
func (v *verification) readHeads(verifiers note.Verifiers) error {
	b, err := os.ReadFile(filepath.Join(v.dir, checkpointName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.add(-1, 0, CheckpointMissing, "without a signed head nothing says how long the log is")
	case err != nil:
		return err
	default:
		v.readCheckpoint(b, verifiers)
	}
	b, err = os.ReadFile(filepath.Join(v.dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var origin string
	var size int64
	var root Hash
	if b, _, err = parseSlots(b); err == nil {
		origin, size, root, err = ParseHead(b)
	}
	if err != nil || size < 1 {
		v.add(-1, 0, LockMalformed, "%s: size %d: %v", lockName, size, err)
		return nil
	}
	v.lockOrigin, v.lock, v.LockSize = origin, Checkpoint{Size: size, Root: root}, size
	return nil
}

func (v *verification) readCheckpoint(b []byte, verifiers note.Verifiers) {
	origin, cp, err := ParseCheckpoint(b)
	if err != nil || cp.Size < 1 {
		v.add(-1, 0, CheckpointMalformed, "size %d: %v", cp.Size, err)
		return
	}
	if _, _, err := OpenCheckpoint(b, verifiers); err != nil {
		v.add(-1, 0, CheckpointSignature, "%v", err)
	}
	v.checkpointOrigin, v.checkpoint, v.CheckpointSize = origin, cp, cp.Size
}

// openFiles opens what is there; each missing file is a problem. The ends are taken
// from entries.log first, since a live writer writes raw.log first.
func (v *verification) openFiles() (closeAll func(), err error) {
	var open []*os.File
	closeAll = func() {
		for _, f := range open {
			f.Close()
		}
	}
	files := map[string]*os.File{}
	sizes := map[string]int64{}
	for _, name := range []string{entriesName, rawName, hashesName, offsetsName} {
		f, err := os.Open(filepath.Join(v.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			v.add(-1, 0, FileMissing, "%s", name)
			continue
		}
		if err != nil {
			closeAll()
			return nil, err
		}
		open = append(open, f)
		files[name] = f
		if sizes[name], err = sizeOf(f); err != nil {
			closeAll()
			return nil, err
		}
	}
	v.hashes = newMirror(files[hashesName], sizes[hashesName])
	v.offsets = newMirror(files[offsetsName], sizes[offsetsName])
	if files[entriesName] != nil {
		var raw io.ReaderAt = bytes.NewReader(nil)
		if files[rawName] != nil {
			raw = files[rawName]
		}
		v.lost = files[rawName] == nil
		v.scan = newScanner(files[entriesName], raw, 0, sizes[entriesName], 0, sizes[rawName])
	}
	return closeAll, nil
}

// next takes in one entry with its frame.
func (v *verification) next() error {
	b, err := v.scan.nextEntry()
	if err != nil {
		return err
	}
	leaf := v.tree.n
	e, parseErr := ParseEntry(b)
	var rec *Record
	if parseErr != nil {
		v.add(leaf, 0, EntryMalformed, "%v", parseErr)
		v.skipFrame(b)
	} else {
		rec = v.checkEntry(leaf, &e)
	}
	v.blind = parseErr != nil
	v.prev = sha256.Sum256(b)
	var h Hash
	h, v.scratch = leafHash(b, v.scratch)
	v.stored = v.tree.append(h, v.stored[:0])
	v.compareDerived(leaf, e.Seq)
	v.compareHeads()
	if parseErr != nil || v.visit == nil {
		return nil
	}
	return v.visit(leaf, e, rec)
}

// checkEntry checks what an entry says against everything before it.
func (v *verification) checkEntry(leaf int64, e *Entry) (rec *Record) {
	if e.Prev != v.prev {
		v.add(leaf, e.Seq, ChainBroken, "it names %x, the entry before it has %x", e.Prev, v.prev)
	}
	if !v.blind || leaf == 0 {
		if err := follows(e, leaf, v.LastSeq, v.Old.Through); err != nil {
			v.add(leaf, e.Seq, SeqHole, "%v", err)
		}
	}
	if seq, ok := e.LastSeq(); ok {
		v.LastSeq = seq
	}
	switch e.Kind {
	case KindGenesis, KindEpoch:
		v.checkGenesis(leaf, e)
	case KindGap:
		v.Gaps = append(v.Gaps, Gap{Leaf: leaf, From: e.From, To: e.To})
	case KindEvent:
		v.checkJob(leaf, e)
		return v.checkRecord(leaf, e)
	case KindState:
		if err := sameState(e, directoryOf(v.jobs)); err != nil {
			v.add(leaf, e.Seq, StateMismatch, "%v", err)
		}
	}
	return nil
}

func (v *verification) checkGenesis(leaf int64, e *Entry) {
	if leaf != 0 {
		return
	}
	v.Origin, v.Old = e.Origin, e.Old
	if v.checkpoint.Size > 0 && v.checkpointOrigin != e.Origin {
		v.add(-1, 0, CheckpointOrigin, "the checkpoint is of %q, the log of %q", v.checkpointOrigin, e.Origin)
	}
	if v.lock.Size > 0 && v.lockOrigin != e.Origin {
		v.add(-1, 0, LockOrigin, "the lock is of %q, the log of %q", v.lockOrigin, e.Origin)
	}
}

func (v *verification) checkJob(leaf int64, e *Entry) {
	if e.Job == "" {
		return
	}
	key := keyOf(e.Job)
	before, ok := v.jobs[key]
	if !ok {
		before = -1
	}
	if e.JobPrev != before {
		v.add(leaf, e.Seq, JobLink, "it names leaf %d as the previous event of job %s, which is %d", e.JobPrev, e.Job, before)
	}
	v.jobs[key] = leaf
}

// checkRecord reads the entry's frame. It returns the record only if it is the one that
// was logged.
func (v *verification) checkRecord(leaf int64, e *Entry) *Record {
	if v.lost {
		return nil
	}
	block, payload, err := v.scan.nextFrame()
	if err != nil {
		v.lost = true
		v.add(leaf, e.Seq, RawMalformed, "no frame for it or anything after: %v", err)
		return nil
	}
	if err := matchesFrame(e, block, payload); err != nil {
		what := PayloadDigest
		if errors.Is(err, errHeaders) {
			what = HeadersDigest
		}
		v.add(leaf, e.Seq, what, "%v", err)
		// With another length the frames after it do not line up either.
		v.lost = int64(len(payload)) != e.Payload_bytes
		return nil
	}
	if v.visit == nil {
		return nil
	}
	v.rec = Record{Seq: e.Seq, Time: e.Time, Subject: e.Subject, Payload: payload}
	if v.rec.Header, err = ParseHeaderBlock(block); err != nil {
		v.add(leaf, e.Seq, RawMalformed, "%v", err)
		return nil
	}
	return &v.rec
}

// skipFrame keeps raw.log in step after an entry that does not parse.
func (v *verification) skipFrame(entry []byte) {
	if v.lost {
		return
	}
	kind, _, _ := bytes.Cut(entry, []byte("\n"))
	switch string(kind) {
	case formatTag + " " + string(KindGenesis), formatTag + " " + string(KindEpoch), formatTag + " " + string(KindGap),
		formatTag + " " + string(KindState):
	case formatTag + " " + string(KindEvent):
		_, _, err := v.scan.nextFrame()
		v.lost = err != nil
	default:
		v.lost = true
	}
}

// compareHeads compares the root with the heads that are of this size.
func (v *verification) compareHeads() {
	n := v.tree.n
	if n != v.checkpoint.Size && n != v.lock.Size {
		return
	}
	root := v.tree.root()
	if n == v.checkpoint.Size && root != v.checkpoint.Root {
		v.add(-1, 0, RootMismatch, "%d leaves have root %x, the checkpoint says %x", n, root, v.checkpoint.Root)
	}
	if n == v.lock.Size && root != v.lock.Root {
		v.add(-1, 0, Fork, "%d leaves have root %x, the lock says %x", n, root, v.lock.Root)
	}
}

// finish judges what only the end of the files shows.
func (v *verification) finish() {
	if v.CheckpointSize > v.Size {
		v.add(-1, 0, Truncated, "%d whole entries, the checkpoint covers %d", v.Size, v.CheckpointSize)
	}
	if v.LockSize > v.Size {
		v.add(-1, 0, Rollback, "%d whole entries, the lock covers %d", v.Size, v.LockSize)
	}
	if v.LockSize > 0 && v.LockSize < v.CheckpointSize {
		v.add(-1, 0, LockBehind, "the lock covers %d leaves, the checkpoint %d", v.LockSize, v.CheckpointSize)
	}
	if v.Live {
		return
	}
	if v.LockSize > v.CheckpointSize {
		v.add(-1, 0, CheckpointStale, "the checkpoint covers %d leaves, the lock %d", v.CheckpointSize, v.LockSize)
	}
	if s := v.scan; s != nil {
		if s.entAt < s.entEnd {
			v.add(-1, 0, Torn, "%s: %d bytes after the last whole entry", entriesName, s.entEnd-s.entAt)
		}
		if s.rawAt < s.rawEnd && !v.lost {
			v.add(-1, 0, Torn, "%s: %d bytes after the last frame", rawName, s.rawEnd-s.rawAt)
		}
	}
	v.finishDerived()
}
