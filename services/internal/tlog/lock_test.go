package tlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestFileLockSwapsOnlyWhatItHolds(t *testing.T) {
	lock := FileLock(t.TempDir())
	if head, err := lock.Load(); head != nil || err != nil {
		t.Fatalf("a new lock holds %q, %v", head, err)
	}
	if err := lock.Swap([]byte("a"), []byte("b")); !errors.Is(err, ErrLockMoved) {
		t.Errorf("swap of a head that is not there: %v", err)
	}
	must(t, lock.Swap(nil, []byte("a")))
	if err := lock.Swap(nil, []byte("b")); !errors.Is(err, ErrLockMoved) {
		t.Errorf("swap of none over a head: %v", err)
	}
	must(t, lock.Swap([]byte("a"), []byte("b")))
	if err := lock.Swap([]byte("a"), []byte("c")); !errors.Is(err, ErrLockMoved) {
		t.Errorf("swap of an older head: %v", err)
	}
	if head, err := lock.Load(); string(head) != "b" || err != nil {
		t.Errorf("it holds %q, %v", head, err)
	}
}

// TestFileLockHasOneWinner lets many swap the same head at once.
func TestFileLockHasOneWinner(t *testing.T) {
	dir := t.TempDir()
	must(t, FileLock(dir).Swap(nil, []byte("start")))
	var wg sync.WaitGroup
	results := make([]error, 16)
	for i := range results {
		wg.Go(func() { results[i] = FileLock(dir).Swap([]byte("start"), fmt.Append(nil, i)) })
	}
	wg.Wait()
	winners := 0
	for i, err := range results {
		switch {
		case err == nil:
			winners++
			if head, err := FileLock(dir).Load(); string(head) != fmt.Sprint(i) {
				t.Errorf("%d won and the lock holds %q, %v", i, head, err)
			}
		case !errors.Is(err, ErrLockMoved):
			t.Error(err)
		}
	}
	if winners != 1 {
		t.Errorf("%d winners", winners)
	}
}

// TestTornSwapLeavesTheHeadBefore writes each beginning of what a swap writes over what
// stood there before.
func TestTornSwapLeavesTheHeadBefore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, lockName)
	lock := FileLock(dir)
	heads := []string{"first", "second head", "third", "the fourth head, which is longer than others", "5"}
	var old []byte
	for i, head := range heads {
		before, _ := os.ReadFile(path)
		must(t, lock.Swap(old, []byte(head)))
		after, err := os.ReadFile(path)
		must(t, err)
		if i > 0 {
			torn := tear(t, before, after)
			if torn[string(old)] == 0 || len(torn) != 2 {
				t.Errorf("torn swaps from %q to %q lead to %v", old, head, torn)
			}
		}
		old = []byte(head)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != lockFile_bytes {
		t.Errorf("the file has %d bytes, %v", st.Size(), err)
	}
}

// tear says how often which head is read after a write that ended early.
func tear(t *testing.T, before, after []byte) map[string]int {
	t.Helper()
	heads := map[string]int{}
	for cut := range after {
		head, err := ReadLockFile(append(bytes.Clone(after[:cut]), before[cut:]...))
		must(t, err)
		heads[string(head)]++
	}
	return heads
}

// TestLockFileByHand: somebody put a head into the lock as plain text.
func TestLockFileByHand(t *testing.T) {
	dir := t.TempDir()
	text := []byte(headText(testOrigin, 7, Hash{1}))
	must(t, os.WriteFile(filepath.Join(dir, lockName), text, 0o600))
	lock := FileLock(dir)
	if head, err := lock.Load(); err != nil || !bytes.Equal(head, text) {
		t.Fatalf("%q, %v", head, err)
	}
	must(t, lock.Swap(text, []byte("next")))
	if head, err := lock.Load(); err != nil || string(head) != "next" {
		t.Fatalf("%q, %v", head, err)
	}
	if err := lock.Swap([]byte("next"), bytes.Repeat([]byte("x"), lockSlot_bytes)); !errors.Is(err, ErrRecord) {
		t.Errorf("a head that does not fit: %v", err)
	}
}
