package tlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"
)

// mirror compares a derived file with what it should hold, front to back. It reports
// the first difference and nothing after it.
type mirror struct {
	r          *bufio.Reader
	size, want int64 // bytes in the file; bytes compared with so far
	broken     bool
	buf        []byte
}

func newMirror(f *os.File, size int64) *mirror {
	if f == nil {
		return &mirror{broken: true} // reported as missing already
	}
	return &mirror{size: size, r: section(f, 0, size)}
}

// same reports whether the file goes on with want, as far as it goes.
func (m *mirror) same(want []byte) bool {
	m.want += int64(len(want))
	if m.broken {
		return true
	}
	m.buf = grow(m.buf, len(want))
	n, _ := io.ReadFull(m.r, m.buf)
	m.broken = !bytes.Equal(m.buf[:n], want[:n])
	return !m.broken
}

// compareDerived compares what the derived files say about a leaf.
func (v *verification) compareDerived(leaf int64, seq uint64) {
	if !v.hashes.same(v.stored) {
		v.add(leaf, seq, HashesMismatch, "the stored hashes of this leaf are not those of its bytes")
	}
	if v.lost {
		v.offsets.broken = true // the ends of frames are unknown from here on
	} else if !v.offsets.same(offsetsOf(v.scan.entAt, v.scan.rawAt)) {
		v.add(leaf, seq, OffsetsMismatch, "the stored ends of this leaf are not those of its bytes")
	}
}

// finishDerived checks that the derived files reach up to the signed head and not beyond
// the entries, and the job table as a whole.
func (v *verification) finishDerived() {
	signed := min(v.CheckpointSize, v.Size)
	if m := v.hashes; !m.broken && (m.size < tlog.StoredHashCount(signed)*tlog.HashSize || m.size > m.want) {
		v.add(-1, 0, HashesMismatch, "%s has %d bytes for %d sealed of %d leaves", hashesName, m.size, signed, v.Size)
	}
	if m := v.offsets; !m.broken && (m.size < signed*offset_bytes || m.size > m.want) {
		v.add(-1, 0, OffsetsMismatch, "%s has %d bytes for %d sealed of %d leaves", offsetsName, m.size, signed, v.Size)
	}
	if err := v.checkJobTable(); err != nil {
		v.add(-1, 0, JobsMismatch, "%v", err)
	}
}

func (v *verification) checkJobTable() error {
	f, err := os.Open(filepath.Join(v.dir, jobsName))
	if errors.Is(err, fs.ErrNotExist) {
		v.add(-1, 0, FileMissing, "%s", jobsName)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	t := jobTable{f: f}
	if err := t.readHead(); err != nil {
		return err
	}
	stored, err := t.all()
	if err != nil {
		return err
	}
	if t.covers > v.Size {
		return errors.New("it covers more leaves than there are")
	}
	for key, leaf := range v.jobs {
		// Newer events than it covers may or may not be in it.
		if leaf < t.covers && stored[key] != leaf {
			return fmt.Errorf("it does not lead to the job's newest event at leaf %d", leaf)
		}
	}
	for key, leaf := range stored {
		if newest, ok := v.jobs[key]; !ok || leaf > newest {
			return fmt.Errorf("it leads to an event at leaf %d that is none of the job", leaf)
		}
	}
	return nil
}
