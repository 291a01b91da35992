package keys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// secretLimit_bytes bounds what is read from a secret file. Every format here is
// a few kilobytes at most; a larger file is the wrong file.
const secretLimit_bytes = 64 << 10

// WriteSecret writes data to a new file of mode 0600. The file appears with all
// its content or not at all, and is on disk when WriteSecret returns. A file, a
// folder or a symbolic link of that name is left as it is: [ErrExists].
//
// Missing folders are made with mode 0700. An existing folder may be readable by
// others, because the file is not, but nobody else may be able to write to it or
// to exchange it: [ErrUnsafeFolder].
func WriteSecret(path string, data []byte) error {
	return writeNew(path, data, 0o600)
}

// WritePublic writes data that is no secret, such as a certificate, to a new
// file of mode 0644, with the other promises of [WriteSecret].
func WritePublic(path string, data []byte) error {
	return writeNew(path, data, 0o644)
}

func writeNew(path string, data []byte, mode fs.FileMode) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("keys: write %s: %w", path, err)
	}
	folder := filepath.Dir(path)
	if err := makeMissing(folder); err != nil {
		return err
	}
	if err := checkTrail(folder); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return exists(path)
	}
	pending, err := renameio.NewPendingFile(path, renameio.WithTempDir(folder), renameio.WithStaticPermissions(mode))
	if err != nil {
		return fmt.Errorf("keys: write %s: %w", path, err)
	}
	defer func() {
		if cleanErr := pending.Cleanup(); cleanErr != nil && err == nil {
			err = fmt.Errorf("keys: %s is written, but a second name of it could not be removed: %w", path, cleanErr)
		}
	}()
	if _, err := pending.Write(data); err != nil {
		return fmt.Errorf("keys: write %s: %w", path, err)
	}
	if err := pending.Sync(); err != nil {
		return fmt.Errorf("keys: write %s: %w", path, err)
	}
	// A rename would replace what is there; a link refuses to.
	if err := os.Link(pending.Name(), path); errors.Is(err, fs.ErrExist) {
		return exists(path)
	} else if err != nil {
		return fmt.Errorf("keys: write %s: %w; if the file system has no hard links, write elsewhere and move the file", path, err)
	}
	return syncFolder(folder)
}

func exists(path string) error {
	return fmt.Errorf("keys: write %s: %w; move it away first or name another file", path, ErrExists)
}

// syncFolder makes a new name in a folder survive a power cut.
func syncFolder(folder string) error {
	handle, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("keys: sync folder: %w", err)
	}
	defer handle.Close()
	if err := handle.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // EINVAL: the file system has no such notion
		return fmt.Errorf("keys: sync folder %s: %w", folder, err)
	}
	return nil
}

// ReadSecret reads a secret file of at most 64 KiB. It refuses a file that
// others may read ([ErrExposed]) and anything that is not a regular file. The
// path may be a symbolic link, as mounted secrets often are: what counts is the
// file behind it.
func ReadSecret(path string) ([]byte, error) {
	// Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("keys: read secret: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("keys: read secret: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("keys: read secret %s: it is not a regular file; name the file itself", path)
	}
	if err := requireUnexposed(path, file, info); err != nil {
		return nil, err
	}
	return readBounded(path, file)
}

func readBounded(path string, from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, secretLimit_bytes+1))
	if err != nil {
		return nil, fmt.Errorf("keys: read secret: %w", err)
	}
	if len(data) > secretLimit_bytes {
		return nil, damaged(path, fmt.Sprintf("it is larger than %d bytes", secretLimit_bytes))
	}
	return data, nil
}

// requireUnexposed refuses a file that somebody besides this user and root may
// read. Where group bits stem from an access list, as with the credentials that
// systemd passes to a service, the list decides.
func requireUnexposed(path string, file *os.File, info fs.FileInfo) error {
	self := os.Geteuid()
	if owner := ownerOf(info); owner != self && owner != 0 && self != 0 {
		return fmt.Errorf("keys: read %s: %w: it belongs to user %d; copy it to a file of your own and run chmod 600 on it", path, ErrExposed, owner)
	}
	mode := info.Mode().Perm()
	if mode&0o077 == 0 {
		return nil
	}
	if mode&0o007 == 0 {
		if list, ok := accessList(file); ok && !exposedBy(list, self) {
			return nil
		}
	}
	return fmt.Errorf("keys: read %s: %w (mode %04o); run chmod 600 %s, and make a new key if somebody may have copied it", path, ErrExposed, mode, path)
}

func damaged(path, reason string) error {
	return fmt.Errorf("keys: read %s: %w: %s", path, ErrDamaged, reason)
}
