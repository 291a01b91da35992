package tlog

import (
	"bytes"
	"errors"
	"maps"
	"testing"
)

// TestAForgedTailIsCut changes a leaf beyond the signed head in ways that do not hold
// together. Open keeps what comes before it, and the log goes on to the one right root.
func TestAForgedTailIsCut(t *testing.T) {
	signer, _ := keys(t, testOrigin)
	want := sealedLog(t, t.TempDir(), 12)
	src := sealedDir(t, 4)
	l, err := Open(src, signer, FileLock(src))
	must(t, err)
	feed(t, l, 10)
	must(t, l.Close())
	tail := files(t, src)
	const bad = 9 // the leaf that is changed; it belongs to job2, whose last leaf is 2
	change := func(edit func(*Entry)) []byte {
		return rechain(t, tail[entriesName], func(i int, e *Entry) bool {
			if i == bad {
				edit(e)
			}
			return true
		})
	}
	for name, entries := range map[string][]byte{
		"another back link":  change(func(e *Entry) { e.JobPrev = 5 }),
		"no back link":       change(func(e *Entry) { e.JobPrev = -1 }),
		"a sequence skipped": change(func(e *Entry) { e.Seq++ }),
		"another payload":    change(func(e *Entry) { e.Payload[0]++ }),
		"another length":     change(func(e *Entry) { e.Payload_bytes++ }),
		"other headers":      change(func(e *Entry) { e.Headers[0]++ }),
		"a gap instead":      change(func(e *Entry) { *e = Entry{Kind: KindGap, Prev: e.Prev, From: 3, To: 4} }),
		"a second genesis": change(func(e *Entry) {
			*e = Entry{Kind: KindGenesis, Origin: "o", Stream: "s", Created: genesis().Created}
		}),
		"a broken chain": bytes.Replace(tail[entriesName], []byte("id gate.s1.8\n"), []byte("id gate.s1.9\n"), 1),
	} {
		t.Run(name, func(t *testing.T) {
			dir := memoryDir(t)
			changed := maps.Clone(tail)
			changed[entriesName] = entries
			place(t, dir, changed)
			l, err := Open(dir, signer, FileLock(dir))
			must(t, err)
			if l.Size() != bad || l.SealedSize() != 5 || l.Recovery().CutEntries_bytes == 0 || l.Recovery().CutRaw_bytes == 0 {
				t.Errorf("size %d, sealed %d, %+v", l.Size(), l.SealedSize(), l.Recovery())
			}
			cp, err := feedAndSeal(l, 12)
			must(t, err)
			must(t, l.Close())
			// The chain breaks after the leaf that was changed, which itself stays and
			// differs from the stream: that is what Matches finds.
			if cp.Root != want.Root && name != "a broken chain" {
				t.Error("another root")
			}
			wantClean(t, dir)
		})
	}
}

// TestOpenRefusesHeadsThatDoNotFit gives Open heads that contradict each other.
func TestOpenRefusesHeadsThatDoNotFit(t *testing.T) {
	signer, _ := keys(t, testOrigin)
	dir := t.TempDir()
	old := files(t, sealedDir(t, 4))
	note := func(size int64) []byte {
		b, err := signHead(headText(testOrigin, size, Hash{7}), signer)
		must(t, err)
		return b
	}
	good := files(t, sealedDir(t, 9))
	for name, row := range map[string]struct {
		file    string
		content []byte
		want    error
	}{
		"the lock went back":                      {lockName, old[lockName], ErrRollback},
		"the lock has another root":               {lockName, []byte(headText(testOrigin, 10, Hash{1})), ErrFork},
		"the lock is ahead":                       {lockName, []byte(headText(testOrigin, 11, Hash{1})), ErrRollback},
		"the lock is of no leaves":                {lockName, []byte(headText(testOrigin, 0, Hash{1})), ErrMalformed},
		"the lock is empty":                       {lockName, nil, ErrMalformed},
		"the checkpoint has another root":         {checkpointName, note(10), ErrFork},
		"an earlier checkpoint has another root":  {checkpointName, note(6), ErrFork},
		"a checkpoint ahead of the lock and data": {checkpointName, note(11), ErrRollback},
		"entries went back":                       {entriesName, old[entriesName], ErrRollback},
		"raw records went back":                   {rawName, old[rawName], ErrRollback},
	} {
		now := maps.Clone(good)
		now[row.file] = row.content
		place(t, dir, now)
		if _, err := Open(dir, signer, FileLock(dir)); !errors.Is(err, row.want) {
			t.Errorf("%s: %v", name, err)
		}
		for file, b := range files(t, dir) {
			if !bytes.Equal(b, now[file]) {
				t.Errorf("%s: a refused folder was changed: %s", name, file)
			}
		}
	}
}

func TestOldCheckpointIsSignedAgain(t *testing.T) {
	signer, _ := keys(t, testOrigin)
	old := files(t, sealedDir(t, 4))
	dir := sealedDir(t, 9)
	now := files(t, dir)
	for name, content := range map[string][]byte{"missing": nil, "torn": now[checkpointName][:50], "one behind": old[checkpointName]} {
		f := files(t, dir)
		if f[checkpointName] = content; content == nil {
			delete(f, checkpointName)
		}
		place(t, dir, f)
		l, err := Open(dir, signer, FileLock(dir))
		must(t, err)
		if !l.Recovery().Resigned || !bytes.Equal(l.Head().Note, now[checkpointName]) {
			t.Errorf("%s: %+v", name, l.Recovery())
		}
		must(t, l.Close())
		wantClean(t, dir)
	}
	// Signatures that others added stay.
	f := files(t, dir)
	stranger, _ := keys(t, "witness.example.org")
	theirs, err := signHead(string(lockText(t, now[lockName])), stranger)
	must(t, err)
	f[checkpointName] = append(bytes.Clone(now[checkpointName]), theirs[bytes.Index(theirs, []byte("\u2014")):]...)
	place(t, dir, f)
	l, err := Open(dir, signer, FileLock(dir))
	must(t, err)
	if l.Recovery().Resigned || !bytes.Equal(l.Head().Note, f[checkpointName]) {
		t.Error("a cosigned checkpoint was replaced")
	}
	must(t, l.Close())
	wantClean(t, dir)
}
