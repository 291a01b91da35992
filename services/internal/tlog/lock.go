package tlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Lock holds the newest head that may be signed: origin, size and root as in a
// checkpoint's body. It is the memory that makes rollbacks and forks visible, so it is
// worth most where whoever can write the folder cannot write the lock.
//
// Swap must be atomic and durable when it returns, and must answer [ErrLockMoved] if
// the lock does not hold old. After any other error the Log assumes nothing and wants
// to be opened again.
type Lock interface {
	// Load returns the head, or nil if none was ever stored.
	Load() ([]byte, error)
	// Swap replaces old, nil meaning none, by new.
	Swap(old, new []byte) error
}

// lockName is the lock inside the folder.
const lockName = "head.lock"

// FileLock is the [Lock] that lives in the folder itself. It sees crashes, cut files and
// folders that were partly put back, but not a folder that was put back whole.
func FileLock(dir string) Lock { return fileLock{path: filepath.Join(dir, lockName)} }

type fileLock struct {
	path string
	d    disk
}

// Load implements [Lock].
func (l fileLock) Load() ([]byte, error) {
	b, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load the head: %w", err)
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("load the head: %s: %w: the file is empty", l.path, ErrMalformed)
	}
	return b, nil
}

// Swap implements [Lock]. Processes that swap at the same time wait for each other.
func (l fileLock) Swap(old, new []byte) error {
	dir, err := os.Open(filepath.Dir(l.path))
	if err != nil {
		return fmt.Errorf("swap the head: %w", err)
	}
	defer dir.Close() // ends the flock
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX)
		if err == nil {
			break
		}
		if err != syscall.EINTR {
			return fmt.Errorf("swap the head: flock %s: %w", dir.Name(), err)
		}
	}
	now, err := l.Load()
	if err != nil {
		return err
	}
	if !bytes.Equal(now, old) || (now == nil) != (old == nil) {
		return fmt.Errorf("%w: %s holds %q, expected %q", ErrLockMoved, l.path, now, old)
	}
	if err := l.d.replace(l.path, new); err != nil {
		return fmt.Errorf("swap the head: %w", err)
	}
	return nil
}
