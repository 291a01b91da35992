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
	text, _, err := parseSlots(b)
	if err != nil {
		return nil, fmt.Errorf("load the head: %s: %w", l.path, err)
	}
	return text, nil
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
	b, err := os.ReadFile(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("swap the head: %w", err)
	}
	var now []byte
	var n uint64
	if err == nil {
		if now, n, err = parseSlots(b); err != nil {
			return fmt.Errorf("swap the head: %s: %w", l.path, err)
		}
	}
	if !bytes.Equal(now, old) || (now == nil) != (old == nil) {
		return fmt.Errorf("%w: %s holds %q, expected %q", ErrLockMoved, l.path, now, old)
	}
	if err := l.write(n, new); err != nil {
		return fmt.Errorf("swap the head: %w", err)
	}
	return nil
}

// write puts a head after number n, 0 for a file that has no slots yet, and makes it
// durable.
func (l fileLock) write(n uint64, head []byte) error {
	slot, err := makeSlot(n+1, head)
	if err != nil {
		return err
	}
	if n == 0 {
		whole := make([]byte, lockFile_bytes)
		copy(whole[slotAt(n+1):], slot)
		return l.d.replace(l.path, whole)
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = l.d.writeAt(f, slot, slotAt(n+1))
	if err == nil {
		err = l.d.sync(f)
	}
	return errors.Join(err, f.Close())
}
