package tlog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

// noSync makes tests that open thousands of folders fast; crashes are tested elsewhere.
var noSync = disk{around: func(op, _ string, do func() error) error {
	if op == "sync" || op == "syncdir" {
		return nil
	}
	return do()
}}

// TestEveryFlippedBitIsFound flips each bit of each file of a sealed folder. No bit is
// exempt, padding of the job table and of base64 included; of the lock only what a crash may
// leave torn is, which is everything but the slot of its newest head. Under soak the log
// is a longer one, with a gap and several pages.
func TestEveryFlippedBitIsFound(t *testing.T) {
	t.Parallel()
	dir := memoryDir(t)
	records := uint64(2)
	if os.Getenv("BANKSMAN_SOAK") == "1" {
		records = 40
	}
	sealedLog(t, dir, records)
	wantClean(t, dir)
	_, verifiers := keys(t, testOrigin)
	for name, content := range files(t, dir) {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
		must(t, err)
		first, last := 0, len(content)
		if name == lockName {
			first, last = newestSlot(t, content)
		}
		for i := first; i < last; i++ {
			for bit := range 8 {
				if (8*i+bit)%stride != 0 {
					continue
				}
				_, err := f.WriteAt([]byte{content[i] ^ 1<<bit}, int64(i))
				must(t, err)
				report, err := Verify(context.Background(), dir, verifiers, nil)
				must(t, err)
				if report.OK() {
					t.Errorf("%s: byte %d bit %d flipped: nothing found", name, i, bit)
				}
			}
			_, err := f.WriteAt(content[i:i+1], int64(i))
			must(t, err)
		}
		must(t, f.Close())
	}
	wantClean(t, dir)
}

// TestFlippedTruthIsNotSealedOver opens a folder with one flipped bit per byte of each
// file: it is refused, or repaired so that it goes on to the one right root.
func TestFlippedTruthIsNotSealedOver(t *testing.T) {
	t.Parallel()
	signer, _ := keys(t, testOrigin)
	good, want := files(t, sealedDir(t, 3)), sealedLog(t, t.TempDir(), 6)
	dir := memoryDir(t)
	for name, content := range good {
		for i := 0; i < len(content); i += stride {
			if name == lockName && i%64 != 0 && content[i] == 0 {
				continue // zeros fill its slots and the room between them
			}
			flipped := bytes.Clone(content)
			flipped[i] ^= 1 << (i % 8)
			place(t, dir, good)
			must(t, os.WriteFile(filepath.Join(dir, name), flipped, 0o644))
			l, err := open(dir, signer, fileLock{filepath.Join(dir, lockName), noSync}, noSync)
			if err != nil {
				continue // refused
			}
			cp, err := feedAndSeal(l, 6)
			if errors.Is(err, ErrDamaged) { // found while appending; the next start repairs
				must(t, l.Close())
				l, err = open(dir, signer, fileLock{filepath.Join(dir, lockName), noSync}, noSync)
				must(t, err)
				cp, err = feedAndSeal(l, 6)
			}
			must(t, err)
			must(t, l.Close())
			if cp.Root == want.Root {
				continue
			}
			t.Errorf("%s: byte %d flipped: sealed another root", name, i)
		}
	}
}

// newestSlot is where the newest head of a lock file stands, without the zeros after it.
func newestSlot(t *testing.T, file []byte) (first, last int) {
	t.Helper()
	head, n, err := parseSlots(file)
	must(t, err)
	slot, err := makeSlot(n, head)
	must(t, err)
	first = int(slotAt(n))
	return first, first + len(bytes.TrimRight(slot, "\x00"))
}

// lockText is the head in a lock file.
func lockText(t *testing.T, file []byte) []byte {
	t.Helper()
	text, err := ReadLockFile(file)
	must(t, err)
	return text
}

func sealedDir(t *testing.T, to uint64) string {
	dir := t.TempDir()
	sealedLog(t, dir, to)
	return dir
}

// feedAndSeal is feed without a test to fail.
func feedAndSeal(l *Log, to uint64) (Checkpoint, error) {
	for seq := l.LastSeq() + 1; seq <= to; seq = l.LastSeq() + 1 {
		var err error
		if seq == 13 {
			_, err = l.AppendGap(13, 14)
		} else {
			rec, m := record(seq)
			_, err = l.Append(rec, m)
		}
		if err != nil {
			return Checkpoint{}, err
		}
	}
	return l.Seal()
}

// TestEveryCutIsRefusedOrHealed cuts each file of a folder with an unsealed tail at each
// of its bytes.
func TestEveryCutIsRefusedOrHealed(t *testing.T) {
	t.Parallel()
	const sealed, tail = 3, 5
	signer, _ := keys(t, testOrigin)
	want := sealedLog(t, t.TempDir(), tail)
	sealedFiles := files(t, sealedDir(t, sealed))
	src := sealedDir(t, sealed)
	l, err := Open(src, signer, FileLock(src))
	must(t, err)
	feed(t, l, tail)
	must(t, l.Close())
	full := files(t, src)

	dir := memoryDir(t)
	lock := fileLock{filepath.Join(dir, lockName), noSync}
	refused, healed := 0, 0
	for name, content := range full {
		for cut := 0; cut < len(content); cut += stride {
			if name == lockName && cut%64 != 0 && content[cut] == 0 {
				continue
			}
			place(t, dir, full)
			must(t, os.Truncate(filepath.Join(dir, name), int64(cut)))
			before := files(t, dir)
			l, err := open(dir, signer, lock, noSync)
			mustRefuse := name == lockName || (name == entriesName || name == rawName) && cut < len(sealedFiles[name])
			if mustRefuse {
				if !errors.Is(err, ErrRollback) && !(name == lockName && errors.Is(err, ErrMalformed)) {
					t.Fatalf("%s cut to %d of %d: %v", name, cut, len(content), err)
				}
				for file, b := range files(t, dir) {
					if !bytes.Equal(b, before[file]) {
						t.Fatalf("%s cut to %d: a refused folder was changed: %s", name, cut, file)
					}
				}
				refused++
				continue
			}
			if err != nil {
				t.Fatalf("%s cut to %d of %d: %v", name, cut, len(content), err)
			}
			cp, err := feedAndSeal(l, tail)
			if err != nil || cp.Root != want.Root {
				t.Fatalf("%s cut to %d of %d: another root, %v", name, cut, len(content), err)
			}
			must(t, l.Close())
			healed++
		}
		if name != lockName {
			wantClean(t, dir)
		}
	}
	t.Logf("%d cuts refused, %d healed", refused, healed)
}

// TestAttacks does what somebody with write access to the folder, but without the log's
// key, would try.
func TestAttacks(t *testing.T) {
	signer, verifiers := keys(t, testOrigin)
	stranger, _ := keys(t, "stranger.example.org")
	old := files(t, sealedDir(t, 20))
	longer := sealedDir(t, 20)
	l, err := Open(longer, signer, FileLock(longer))
	must(t, err)
	_, err = feedAndSeal(l, 40)
	must(t, err)
	must(t, l.Close())
	now := files(t, longer)
	resign := func(f map[string][]byte, text string, by note.Signer) {
		f[checkpointName], err = signHead(text, by)
		must(t, err)
	}
	rows := []struct {
		name string
		do   func(f map[string][]byte)
		want What
	}{
		{"edit an entry and its chain", func(f map[string][]byte) {
			f[entriesName] = rechain(t, f[entriesName], func(i int, e *Entry) bool { e.Actor += "x"; return true })
		}, RootMismatch},
		{"remove an entry and repair the chain", func(f map[string][]byte) {
			f[entriesName] = rechain(t, f[entriesName], func(i int, e *Entry) bool { return i != 9 })
		}, SeqHole},
		{"turn an event into a gap", func(f map[string][]byte) {
			f[entriesName] = rechain(t, f[entriesName], func(i int, e *Entry) bool {
				if i == 9 {
					*e = Entry{Kind: KindGap, Prev: e.Prev, From: e.Seq, To: e.Seq}
				}
				return true
			})
		}, RootMismatch},
		{"lead a job past one of its events", func(f map[string][]byte) {
			f[entriesName] = rechain(t, f[entriesName], func(i int, e *Entry) bool {
				if i == 30 {
					e.JobPrev = -1
				}
				return true
			})
		}, JobLink},
		{"swap a payload", func(f map[string][]byte) {
			f[rawName] = bytes.Replace(f[rawName], []byte(`{"n":9}`), []byte(`{"n":8}`), 1)
		}, PayloadDigest},
		{"swap a header", func(f map[string][]byte) {
			f[rawName] = bytes.Replace(f[rawName], []byte(`gate.s1.9`), []byte(`gate.s1.8`), 1)
		}, HeadersDigest},
		{"put the data back, keep the heads", func(f map[string][]byte) {
			f[entriesName], f[rawName] = old[entriesName], old[rawName]
		}, Rollback},
		{"put data and checkpoint back", func(f map[string][]byte) {
			f[entriesName], f[rawName], f[checkpointName] = old[entriesName], old[rawName], old[checkpointName]
		}, Rollback},
		{"put the checkpoint back", func(f map[string][]byte) { f[checkpointName] = old[checkpointName] }, CheckpointStale},
		{"put the lock back", func(f map[string][]byte) { f[lockName] = old[lockName] }, LockBehind},
		{"sign with another key", func(f map[string][]byte) { resign(f, string(lockText(t, f[lockName])), stranger) }, CheckpointSignature},
		{"bring a checkpoint of another log", func(f map[string][]byte) {
			resign(f, "other.example.org"+string(lockText(t, f[lockName])[len(testOrigin):]), signer)
		}, CheckpointOrigin},
		{"lock of another log", func(f map[string][]byte) {
			f[lockName] = append([]byte("x"), lockText(t, f[lockName])...)
		}, LockOrigin},
		{"lock with another root", func(f map[string][]byte) {
			f[lockName] = []byte(headText(testOrigin, 40, Hash{1}))
		}, Fork},
		{"longer raw.log", func(f map[string][]byte) { f[rawName] = append(bytes.Clone(f[rawName]), 0) }, Torn},
		{"shorter raw.log", func(f map[string][]byte) { f[rawName] = f[rawName][:len(f[rawName])-1] }, RawMalformed},
		{"longer entries.log", func(f map[string][]byte) { f[entriesName] = append(bytes.Clone(f[entriesName]), 0) }, Torn},
		{"no raw.log", func(f map[string][]byte) { delete(f, rawName) }, FileMissing},
		{"no entries.log", func(f map[string][]byte) { delete(f, entriesName) }, FileMissing},
		{"no hashes", func(f map[string][]byte) { delete(f, hashesName) }, FileMissing},
		{"no offsets", func(f map[string][]byte) { delete(f, offsetsName) }, FileMissing},
		{"no jobs", func(f map[string][]byte) { delete(f, jobsName) }, FileMissing},
		{"no checkpoint", func(f map[string][]byte) { delete(f, checkpointName) }, CheckpointMissing},
		{"shorter hashes", func(f map[string][]byte) { f[hashesName] = old[hashesName] }, HashesMismatch},
		{"older offsets", func(f map[string][]byte) { f[offsetsName] = old[offsetsName] }, OffsetsMismatch},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			f := map[string][]byte{}
			for name, b := range now {
				f[name] = b
			}
			row.do(f)
			dir := t.TempDir()
			place(t, dir, f)
			report, err := Verify(context.Background(), dir, verifiers, nil)
			must(t, err)
			if !report.Has(row.want) {
				t.Errorf("want %s, got %v", row.want, report.Problems)
			}
		})
	}
}

// rechain rewrites entries and repairs every link; edit returns false to leave one out.
func rechain(t *testing.T, log []byte, edit func(i int, e *Entry) bool) []byte {
	t.Helper()
	s := newScanner(bytes.NewReader(log), nil, 0, int64(len(log)), 0, 0)
	var out []byte
	var prev Hash
	for i := 0; ; i++ {
		b, err := s.nextEntry()
		if err != nil {
			return out
		}
		e, err := ParseEntry(b)
		must(t, err)
		if e.Prev = prev; !edit(i, &e) {
			continue
		}
		b = e.Encode()
		prev = payloadDigest(b)
		out = append(append(out, byte(len(b)>>8), byte(len(b))), b...)
	}
}

func TestFirstBadLeafIsNamed(t *testing.T) {
	dir := sealedDir(t, 40)
	f := files(t, dir)
	at := bytes.Index(f[entriesName], []byte("seq 23\n"))
	f[entriesName][at+4]++ // now it says 33
	place(t, dir, f)
	report := verifyDir(t, dir)
	first, ok := report.FirstBad()
	if !ok || first.Leaf != 22 || !report.Has(ChainBroken) || !report.Has(RootMismatch) {
		t.Fatalf("first %v of %v", first, report.Problems)
	}
}
