package tlog

import (
	"errors"
	"fmt"
	"os"
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
			if head, err := os.ReadFile(dir + "/" + lockName); string(head) != fmt.Sprint(i) {
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
