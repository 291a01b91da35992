package tlog

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

var errInjected = errors.New("injected fault")

// storm fails the operation number at, before or after it took effect, and everything
// after it, as a dying disk or process would. It also keeps what a power cut would leave:
// the content of each file at its last sync, under the name of the last synced rename.
type storm struct {
	dir       string
	at        int  // -1: never
	persisted bool // the failing operation takes effect

	mu      sync.Mutex // two files are synced at once
	seen    int
	ops     []string
	durable map[string][]byte
}

func (s *storm) around(op, name string, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.seen
	s.seen++
	s.ops = append(s.ops, op+" "+name)
	if s.at >= 0 && n > s.at || n == s.at && !s.persisted {
		return fmt.Errorf("%s %s: %w", op, name, errInjected)
	}
	if err := do(); err != nil {
		return err
	}
	s.settle(op, name)
	if n == s.at {
		return fmt.Errorf("%s %s: %w, after it took effect", op, name, errInjected)
	}
	return nil
}

func (s *storm) settle(op, name string) {
	switch op {
	case "sync":
		b, err := os.ReadFile(filepath.Join(s.dir, name))
		if err == nil {
			s.durable[name] = b
		}
	case "syncdir":
		for _, name := range []string{checkpointName, lockName, jobsName, hashesName, offsetsName} {
			if b, ok := s.durable[name+".tmp"]; ok {
				if _, err := os.Stat(filepath.Join(s.dir, name+".tmp")); err != nil { // it was renamed
					s.durable[name] = b
					delete(s.durable, name+".tmp")
				}
			}
		}
	}
}

// lightning is what a power cut leaves: of each file either what was synced last or what
// the process saw, which the kernel may have written back.
func (s *storm) lightning(seen map[string][]byte, rng *rand.Rand) map[string][]byte {
	left := maps.Clone(seen)
	for _, name := range []string{entriesName, rawName, hashesName, offsetsName, jobsName, checkpointName, lockName} {
		if rng.IntN(3) == 0 {
			continue
		}
		if b, ok := s.durable[name]; ok {
			left[name] = mixPages(name, b, seen[name], rng)
		} else if name == checkpointName || name == lockName || name == jobsName {
			delete(left, name)
		} else {
			left[name] = nil
		}
	}
	return left
}

// mixPages models what matters only for the files that are written in place: the kernel
// writes pages back in any order.
func mixPages(name string, durable, seen []byte, rng *rand.Rand) []byte {
	if name != jobsName && name != lockName || len(durable) != len(seen) {
		return durable
	}
	mixed := bytes.Clone(durable)
	for at := 0; at < len(mixed); at += page_bytes {
		if rng.IntN(2) == 0 {
			copy(mixed[at:min(at+page_bytes, len(mixed))], seen[at:])
		}
	}
	return mixed
}

// life runs a log from its creation over seals, a restart and the settling of derived
// files; it stops at the first error.
func life(dir string, s *storm, t *testing.T, lock Lock) error {
	d := disk{around: s.around, settleEvery: 10}
	signer, _ := keys(t, testOrigin)
	l, err := create(dir, genesis(), signer, lock, d)
	if err != nil {
		return err
	}
	defer func() { l.Close() }()
	for _, to := range []uint64{3, 9, 12} {
		if _, err := feedAndSeal(l, to); err != nil {
			return err
		}
	}
	if err := l.Close(); err != nil {
		return err
	}
	if l, err = open(dir, signer, lock, d); err != nil {
		l = &Log{err: ErrClosed}
		return err
	}
	if _, err := feedAndSeal(l, 60); err != nil {
		return err
	}
	if _, err := feedAndSeal(l, 70); err != nil {
		return err
	}
	return l.Close()
}

// TestFaultAtEveryOperation makes each file operation of a log's life fail, once before
// and once after it took effect, then starts again four times over: as after a crash of
// the process, and as after three power cuts that lost different files. The log must go on
// to the one right root, never below a head that it had shown.
func TestFaultAtEveryOperation(t *testing.T) {
	t.Parallel()
	signer, _ := keys(t, testOrigin)
	want := sealedLog(t, t.TempDir(), 80)
	dry := &storm{dir: memoryDir(t), at: -1, durable: map[string][]byte{}}
	must(t, life(dry.dir, dry, t, fileLock{filepath.Join(dry.dir, lockName), disk{around: dry.around}}))
	t.Logf("%d operations", dry.seen)
	for at := range dry.seen {
		for _, persisted := range []bool{false, true} {
			rng := rand.New(rand.NewPCG(uint64(at), 1))
			dir := memoryDir(t)
			s := &storm{dir: dir, at: at, persisted: persisted, durable: map[string][]byte{}}
			err := life(dir, s, t, fileLock{filepath.Join(dir, lockName), disk{around: s.around}})
			if err == nil {
				t.Fatalf("operation %d, %s: the fault was swallowed", at, s.ops[at])
			}
			shown, _ := os.ReadFile(filepath.Join(dir, checkpointName))
			seen := files(t, dir)
			for try := range 4 {
				if try > 0 {
					place(t, dir, s.lightning(seen, rng))
				}
				name := fmt.Sprintf("operation %d, %s, persisted %v, start %d", at, s.ops[at], persisted, try)
				covered := covers(t, dir) > 0
				l, err := open(dir, signer, fileLock{filepath.Join(dir, lockName), noSync}, noSync)
				if errors.Is(err, ErrNoHead) {
					if len(shown) > 0 && try == 0 {
						t.Fatalf("%s: a head was shown and no lock remains", name)
					}
					os.Remove(filepath.Join(dir, checkpointName))
					l, err = create(dir, genesis(), signer, fileLock{filepath.Join(dir, lockName), noSync}, noSync)
				}
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if _, cp, err := ParseCheckpoint(shown); err == nil && try == 0 && l.SealedSize() < cp.Size {
					t.Fatalf("%s: back to %d leaves, %d were shown", name, l.SealedSize(), cp.Size)
				}
				if covered && l.Recovery().Rebuilt {
					t.Fatalf("%s: the derived files were covered and not durable", name)
				}
				cp, err := feedAndSeal(l, 80)
				if err != nil || !bytes.Equal(cp.Note, want.Note) {
					t.Fatalf("%s: another head, %v", name, err)
				}
				must(t, l.Close())
				wantClean(t, dir)
			}
		}
	}
}

// covers reads how many leaves the job table promises that the derived files hold.
func covers(t *testing.T, dir string) int64 {
	table, err := openJobs(disk{}, filepath.Join(dir, jobsName))
	must(t, err)
	defer table.close()
	return table.covers
}

// TestBytesThatChangedOnTheWayAreNotSigned flips a bit between Append and the file.
func TestBytesThatChangedOnTheWayAreNotSigned(t *testing.T) {
	signer, _ := keys(t, testOrigin)
	for _, back := range []int64{1, 700, 1200} { // bytes from the end: in the last entry and before it
		dir := t.TempDir()
		flip := false
		d := disk{around: func(op, name string, do func() error) error {
			if err := do(); err != nil || !flip || op != "write" || name != entriesName {
				return err
			}
			f, err := os.OpenFile(filepath.Join(dir, entriesName), os.O_RDWR, 0)
			must(t, err)
			defer f.Close()
			size, err := sizeOf(f)
			must(t, err)
			var b [1]byte
			_, err = f.ReadAt(b[:], size-back)
			must(t, err)
			b[0] ^= 1
			_, err = f.WriteAt(b[:], size-back)
			return err
		}}
		l, err := create(dir, genesis(), signer, FileLock(dir), d)
		must(t, err)
		flip = true
		if _, err := feedAndSeal(l, 4); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes before the end: %v", back, err)
		}
		must(t, l.Close())
		if cp := readCheckpoint(t, dir); cp.Size != 1 {
			t.Errorf("a head of %d leaves was signed", cp.Size)
		}
	}
}

// faultyLock fails a swap before or after it took effect.
type faultyLock struct {
	memLock
	fail      bool
	persisted bool
}

func (f *faultyLock) Swap(old, new []byte) error {
	if !f.fail {
		return f.memLock.Swap(old, new)
	}
	if f.persisted {
		if err := f.memLock.Swap(old, new); err != nil {
			return err
		}
	}
	return errInjected
}

func TestAFailedSwapIsNeverSignedAndNeverLost(t *testing.T) {
	signer, _ := keys(t, testOrigin)
	want := sealedLog(t, t.TempDir(), 8)
	for _, persisted := range []bool{false, true} {
		dir, lock := t.TempDir(), &faultyLock{persisted: persisted}
		l, err := Create(dir, genesis(), signer, lock)
		must(t, err)
		before := l.Head()
		lock.fail = true
		if _, err := feedAndSeal(l, 5); !errors.Is(err, errInjected) {
			t.Fatalf("seal: %v", err)
		}
		if _, err := l.Seal(); !errors.Is(err, errInjected) {
			t.Errorf("a log went on after a failure: %v", err)
		}
		if cp := readCheckpoint(t, dir); !bytes.Equal(cp.Note, before.Note) {
			t.Errorf("a head of %d leaves was shown though the swap failed", cp.Size)
		}
		must(t, l.Close())
		lock.fail = false
		l, err = Open(dir, signer, lock)
		must(t, err)
		if l.Recovery().Resigned != persisted || l.SealedSize() != map[bool]int64{false: 1, true: 6}[persisted] {
			t.Errorf("persisted %v: sealed %d, %+v", persisted, l.SealedSize(), l.Recovery())
		}
		cp, err := feedAndSeal(l, 8)
		must(t, err)
		if cp.Root != want.Root {
			t.Error("another root")
		}
		must(t, l.Close())
	}
}

func readCheckpoint(t *testing.T, dir string) Checkpoint {
	t.Helper()
	r, err := OpenReader(dir)
	must(t, err)
	defer r.Close()
	cp, err := r.Checkpoint()
	must(t, err)
	return cp
}

// TestTwoWritersOfOneLock lets two copies of a log compete: only one of two different
// heads is ever signed.
func TestTwoWritersOfOneLock(t *testing.T) {
	signer, _ := keys(t, testOrigin)
	lock := &memLock{}
	a, b := t.TempDir(), t.TempDir()
	first, err := Create(a, genesis(), signer, lock)
	must(t, err)
	place(t, b, files(t, a))
	second, err := Open(b, signer, lock)
	must(t, err)
	_, err = feedAndSeal(first, 5)
	must(t, err)
	if _, err := feedAndSeal(second, 6); !errors.Is(err, ErrLockMoved) {
		t.Fatalf("second writer: %v", err)
	}
	must(t, second.Close())
	if cp := readCheckpoint(t, b); cp.Size != 1 {
		t.Errorf("the loser showed a head of %d leaves", cp.Size)
	}
	// The loser holds every record of the winner's head, so it may go on once that stops.
	must(t, first.Close())
	second, err = Open(b, signer, lock)
	must(t, err)
	if second.SealedSize() != 6 || second.Size() != 7 {
		t.Errorf("sealed %d of %d", second.SealedSize(), second.Size())
	}
	must(t, second.Close())
	// The folder that stayed behind, once the lock has moved on, is refused.
	second, err = Open(b, signer, lock)
	must(t, err)
	_, err = feedAndSeal(second, 20)
	must(t, err)
	must(t, second.Close())
	if _, err := Open(a, signer, lock); !errors.Is(err, ErrRollback) {
		t.Errorf("a folder behind its lock: %v", err)
	}
}

// TestAnotherHistoryIsAFork gives the log a folder of the same size with other content.
func TestAnotherHistoryIsAFork(t *testing.T) {
	signer, _ := keys(t, testOrigin)
	dir, other := t.TempDir(), t.TempDir()
	sealedLog(t, dir, 6)
	l, err := Create(other, genesis(), signer, FileLock(other))
	must(t, err)
	for seq := uint64(1); seq <= 6; seq++ {
		rec, m := record(seq)
		m.ID += "x"
		_, err := l.Append(rec, m)
		must(t, err)
	}
	_, err = l.Seal()
	must(t, err)
	must(t, l.Close())
	forged := files(t, other)
	forged[lockName] = files(t, dir)[lockName]
	place(t, dir, forged)
	if _, err := Open(dir, signer, FileLock(dir)); !errors.Is(err, ErrFork) {
		t.Errorf("open: %v", err)
	}
}
