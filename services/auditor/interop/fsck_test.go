package interop

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
	modtlog "golang.org/x/mod/sumdb/tlog"

	"github.com/banksman/banksman/services/internal/evidence"
	"github.com/banksman/banksman/services/internal/tlog"
)

const origin = "log.example.org/epoch-1"

// testLog is a real log of plain records.
type testLog struct {
	dir      string
	log      *tlog.Log
	verifier note.Verifier
	skey     string
	vkey     string
	word     string
	seq      uint64
}

func newLog(t *testing.T) *testLog {
	t.Helper()
	skey, vkey, err := note.GenerateKey(nil, origin)
	if err != nil {
		t.Fatal(err)
	}
	return tell(t, skey, vkey, "")
}

// tell makes a log whose records hold a word; two words are two histories of one key.
func tell(t *testing.T, skey, vkey, word string) *testLog {
	t.Helper()
	signer, err := note.NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	l := &testLog{dir: filepath.Join(t.TempDir(), "log"), skey: skey, vkey: vkey, word: word}
	if l.verifier, err = note.NewVerifier(vkey); err != nil {
		t.Fatal(err)
	}
	l.log, err = tlog.Create(l.dir, tlog.Genesis{Origin: signer.Name(), Stream: "BANKSMAN", Created: time.Unix(1, 0), Config: sha256.Sum256(nil)}, signer, tlog.FileLock(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.log.Close() })
	return l
}

// grow appends records and seals them.
func (l *testLog) grow(t *testing.T, n int) tlog.Checkpoint {
	t.Helper()
	for range n {
		l.seq++
		rec := tlog.Record{Seq: l.seq, Time: time.Unix(int64(l.seq), 0), Subject: "bm.test", Payload: fmt.Append(nil, l.word, l.seq)}
		if _, err := l.log.Append(rec, tlog.Meta{}); err != nil {
			t.Fatal(err)
		}
	}
	cp, err := l.log.Seal()
	if err != nil {
		t.Fatal(err)
	}
	return cp
}

func (l *testLog) reader(t *testing.T) *tlog.Reader {
	t.Helper()
	r, err := tlog.OpenReader(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// hashBundle turns an entry bundle into leaf hashes.
func hashBundle(b []byte) (out [][]byte, err error) {
	for len(b) > 0 {
		if len(b) < 2 || len(b) < 2+(int(b[0])<<8|int(b[1])) {
			return nil, errors.New("the bundle is short")
		}
		n := 2 + (int(b[0])<<8 | int(b[1]))
		h := modtlog.RecordHash(b[2:n])
		out, b = append(out, h[:]), b[n:]
	}
	return out, nil
}

// TestTesseraAcceptsAnExport: fsck recomputes root and tiles from the entries. It must
// take the export as it is, and refuse it after a change of any one file.
func TestTesseraAcceptsAnExport(t *testing.T) {
	l := newLog(t)
	l.grow(t, 700)
	dir := filepath.Join(t.TempDir(), "tiles")
	if _, err := evidence.WriteTiles(t.Context(), l.reader(t), dir); err != nil {
		t.Fatal(err)
	}
	// Each of fsck's readers ends with the first tile that it finds bad, and its writer
	// waits for ever once none is left; so many of them are started.
	check := func() error {
		return fsck.New(origin, l.verifier, client.FileFetcher{Root: dir}, hashBundle, fsck.Opts{N: 64}).Check(t.Context())
	}
	if err := check(); err != nil {
		t.Fatalf("fsck refuses an untouched export: %v", err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		good, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		bad := append([]byte(nil), good...)
		bad[len(bad)/2] ^= 1
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			return err
		}
		if check() == nil {
			t.Errorf("fsck accepts %s with one bit changed", path)
		}
		return os.WriteFile(path, good, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
