package tlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func TestWhatIsAppendedIsSealedProvedAndReadBack(t *testing.T) {
	dir := t.TempDir()
	cp := sealedLog(t, dir, 40)
	_, verifiers := keys(t, testOrigin)
	origin, opened, err := OpenCheckpoint(cp.Note, verifiers)
	must(t, err)
	if origin != testOrigin || opened.Size != cp.Size || opened.Root != cp.Root || cp.Size != 40 {
		t.Fatalf("checkpoint of %s: %d leaves, want %d", origin, opened.Size, cp.Size)
	}
	report := wantClean(t, dir)
	if report.Root != cp.Root || report.LastSeq != 40 || report.Unsealed != 0 || report.LockSize != 40 ||
		!reflect.DeepEqual(report.Gaps, []Gap{{Leaf: 13, From: 13, To: 14}}) {
		t.Fatalf("report %+v", report)
	}
	r, err := OpenReader(dir)
	must(t, err)
	defer r.Close()
	for i := int64(0); i < cp.Size; i++ {
		e, raw, err := r.Entry(i)
		must(t, err)
		proof, err := r.Prove(i, cp.Size)
		must(t, err)
		must(t, tlog.CheckRecord(proof, cp.Size, cp.Root, i, tlog.RecordHash(raw)))
		if e.Kind != KindEvent {
			continue
		}
		got, err := r.Record(i)
		must(t, err)
		want, _ := record(e.Seq)
		if got.Subject != want.Subject || !got.Time.Equal(want.Time) || !bytes.Equal(got.Payload, want.Payload) || !reflect.DeepEqual(got.Header, want.Header) {
			t.Fatalf("leaf %d: got %+v, want %+v", i, got, want)
		}
	}
	if g, err := r.Genesis(); err != nil || g.Origin != testOrigin || !g.Created.Equal(genesis().Created) {
		t.Fatalf("genesis %+v, %v", g, err)
	}
	growth, err := r.ProveGrowth(17, 40)
	must(t, err)
	old, err := r.TreeHash(17)
	must(t, err)
	must(t, tlog.CheckTree(growth, 40, cp.Root, 17, old))
}

func TestAppendRefusesHolesAndRepeatsWithoutChange(t *testing.T) {
	dir := t.TempDir()
	signer, _ := keys(t, testOrigin)
	l, err := Create(dir, genesis(), signer, FileLock(dir))
	must(t, err)
	defer l.Close()
	feed(t, l, 5)
	rec, m := record(7)
	if _, err := l.Append(rec, m); !errors.Is(err, ErrHole) {
		t.Errorf("a hole: %v", err)
	}
	rec, m = record(5)
	if _, err := l.Append(rec, m); !errors.Is(err, ErrOrder) {
		t.Errorf("a repeat: %v", err)
	}
	if _, err := l.AppendGap(8, 9); !errors.Is(err, ErrHole) {
		t.Errorf("a gap after a hole: %v", err)
	}
	if _, err := l.AppendGap(6, 5); !errors.Is(err, ErrRecord) {
		t.Errorf("a gap that ends before it starts: %v", err)
	}
	rec, m = record(6)
	rec.Time = time.Unix(-1, 0)
	if _, err := l.Append(rec, m); !errors.Is(err, ErrRecord) {
		t.Errorf("a time before 1970: %v", err)
	}
	rec, m = record(6)
	rec.Subject = string(bytes.Repeat([]byte{0}, 30_000))
	if _, err := l.Append(rec, m); !errors.Is(err, ErrRecord) {
		t.Errorf("a subject that fits no entry: %v", err)
	}
	feed(t, l, 8)
	if _, err := l.Seal(); err != nil || l.Size() != 9 || l.SealedSize() != 9 || l.LastSeq() != 8 {
		t.Fatalf("size %d, sealed %d, last %d, %v", l.Size(), l.SealedSize(), l.LastSeq(), err)
	}
	must(t, l.Close())
	wantClean(t, dir)
}

func TestBatchingAndRestartsLeaveNoTrace(t *testing.T) {
	one, many := t.TempDir(), t.TempDir()
	want := sealedLog(t, one, 3000)
	signer, _ := keys(t, testOrigin)
	l, err := Create(many, genesis(), signer, FileLock(many))
	must(t, err)
	restarts := 0
	for to := uint64(1); to <= 3000; to += 1 + to%97 {
		feed(t, l, to)
		if to%3 > 0 {
			_, err = l.Seal()
			must(t, err)
		}
		if to%5 > 0 {
			restarts++
			must(t, l.Close())
			l, err = Open(many, signer, FileLock(many))
			must(t, err)
			if l.Recovery() != (Recovery{}) {
				t.Fatalf("at %d: %+v", to, l.Recovery())
			}
		}
	}
	if restarts < 50 {
		t.Errorf("only %d restarts", restarts)
	}
	feed(t, l, 3000)
	got, err := l.Seal()
	must(t, err)
	must(t, l.Close())
	if got.Root != want.Root || !bytes.Equal(got.Note, want.Note) {
		t.Fatalf("roots differ")
	}
	a, b := files(t, one), files(t, many)
	for _, name := range []string{entriesName, rawName, hashesName, offsetsName, checkpointName} {
		if !bytes.Equal(a[name], b[name]) {
			t.Errorf("%s differs", name)
		}
	}
	if !bytes.Equal(lockText(t, a[lockName]), lockText(t, b[lockName])) { // its slots count the swaps
		t.Errorf("the heads in the locks differ")
	}
	wantClean(t, many)
}

func TestCreateKeepsAnExistingLog(t *testing.T) {
	dir := t.TempDir()
	sealedLog(t, dir, 3)
	signer, _ := keys(t, testOrigin)
	if _, err := Create(dir, genesis(), signer, FileLock(dir)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create over a log: %v", err)
	}
	lock := &memLock{}
	l, err := Create(filepath.Join(dir, "a"), genesis(), signer, lock)
	must(t, err)
	must(t, l.Close())
	if _, err := Create(filepath.Join(dir, "b"), genesis(), signer, lock); !errors.Is(err, ErrRollback) {
		t.Errorf("create after the folder was lost: %v", err)
	}
	if _, err := Open(t.TempDir(), signer, &memLock{}); !errors.Is(err, ErrNoHead) {
		t.Errorf("open nothing: %v", err)
	}
	if _, err := Open(t.TempDir(), signer, lock); !errors.Is(err, ErrRollback) {
		t.Errorf("open an empty folder under a lock: %v", err)
	}
}

func TestOneWriterAtATimeAndReadersBesideIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	signer, verifiers := keys(t, testOrigin)
	l, err := Create(dir, genesis(), signer, FileLock(dir))
	must(t, err)
	defer l.Close()
	if _, err := Open(dir, signer, FileLock(dir)); !errors.Is(err, ErrInUse) {
		t.Errorf("second writer: %v", err)
	}
	stop, done := make(chan struct{}), make(chan error)
	go func() { done <- watch(dir, verifiers, stop) }()
	for to := uint64(1); to <= 1000; to += 10 {
		feed(t, l, to)
		_, err := l.Seal()
		must(t, err)
	}
	close(stop)
	must(t, <-done)
}

// watch proves the newest leaf and verifies the folder again and again, at least once.
func watch(dir string, verifiers note.Verifiers, stop chan struct{}) error {
	r, err := OpenReader(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		cp, err := r.Checkpoint()
		if err != nil {
			return err
		}
		last := cp.Size - 1
		_, raw, err := r.Entry(last)
		if err != nil {
			return err
		}
		proof, err := r.Prove(last, cp.Size)
		if err != nil {
			return err
		}
		if err := tlog.CheckRecord(proof, cp.Size, cp.Root, last, tlog.RecordHash(raw)); err != nil {
			return err
		}
		report, err := Verify(context.Background(), dir, verifiers, nil)
		if err != nil {
			return err
		}
		if !report.Live || !report.OK() {
			return fmt.Errorf("live %v, %v", report.Live, report.Problems)
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

func TestMatchesFindsARewrittenStream(t *testing.T) {
	dir := t.TempDir()
	sealedLog(t, dir, 20)
	signer, _ := keys(t, testOrigin)
	l, err := Open(dir, signer, FileLock(dir))
	must(t, err)
	defer l.Close()
	rec, m := record(20)
	must(t, l.Matches(19, rec, m))
	rec.Header = map[string][]string{"ce-id": {"x"}}
	if err := l.Matches(19, rec, m); !errors.Is(err, ErrDiffers) {
		t.Errorf("other headers: %v", err)
	}
	if err := l.Matches(20, rec, m); !errors.Is(err, ErrRange) {
		t.Errorf("a leaf there is not: %v", err)
	}
}

// memLock is a lock outside the folder.
type memLock struct{ head []byte }

func (m *memLock) Load() ([]byte, error) { return m.head, nil }

func (m *memLock) Swap(old, new []byte) error {
	if !bytes.Equal(m.head, old) {
		return ErrLockMoved
	}
	m.head = bytes.Clone(new)
	return nil
}
