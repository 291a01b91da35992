package keys

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Next is where the secret that will replace another one waits.
func Next(path string) string { return path + ".next" }

// MoveSecret puts a secret file in the place of another one: whoever opens the path
// meets the old secret or the new one. The bytes of the old one are then overwritten, so
// that they are gone from the file system's blocks as far as that writes in place;
// copies, snapshots and what a drive keeps aside are not reached.
func MoveSecret(from, to string) error {
	old, err := openToDestroy(to)
	if err != nil {
		return err
	}
	if old != nil {
		defer old.Close()
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("keys: replace %s: %w", to, err)
	}
	if err := syncFolder(filepath.Dir(to)); err != nil {
		return err
	}
	return scrub(old)
}

// DestroySecret overwrites a secret file and removes it. A file that is not there is
// gone already.
func DestroySecret(path string) error {
	old, err := openToDestroy(path)
	if err != nil || old == nil {
		return err
	}
	defer old.Close()
	if err := scrub(old); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("keys: remove %s: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

// openToDestroy opens a file to be overwritten, nil if there is none. What a link
// points to belongs to whoever mounts secrets here, and is refused.
func openToDestroy(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, syscall.ELOOP):
		return nil, fmt.Errorf("keys: replace %s: it is a symbolic link; do this where the secret itself lies", path)
	case err != nil:
		return nil, fmt.Errorf("keys: replace %s: %w", path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keys: replace %s: %w", path, err), f.Close())
	}
	return f, nil
}

// scrub overwrites what a file holds.
func scrub(f *os.File) error {
	if f == nil {
		return nil
	}
	info, err := f.Stat()
	if err == nil {
		_, err = io.CopyN(io.NewOffsetWriter(f, 0), rand.Reader, info.Size())
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("keys: overwrite the old %s: %w", f.Name(), err)
	}
	return nil
}

// Guarded says whether a signing key's file is encrypted with a passphrase.
func Guarded(path string) (bool, error) {
	text, err := ReadSecret(path)
	return err == nil && sealed(text), err
}
