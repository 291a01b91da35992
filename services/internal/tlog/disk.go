package tlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// disk does every operation that changes files. Tests put themselves around it to
// make an operation fail before or after it took effect.
type disk struct {
	around      func(op, name string, do func() error) error
	settleEvery int64 // leaves between two syncs of the derived files, 0 = settleInterval
}

// settleInterval bounds what Open replays, and at 1024 costs an append next to nothing.
const settleInterval = 1024

// due reports whether the derived files are n leaves behind and should not be more.
func (d disk) due(n int64) bool {
	every := d.settleEvery
	if every == 0 {
		every = settleInterval
	}
	return n >= every
}

func (d disk) do(op, path string, do func() error) error {
	run := do
	if d.around != nil {
		run = func() error { return d.around(op, filepath.Base(path), do) }
	}
	if err := run(); err != nil {
		return fmt.Errorf("%s %s: %w", op, path, err)
	}
	return nil
}

func (d disk) writeAt(f *os.File, b []byte, off int64) error {
	if len(b) == 0 {
		return nil
	}
	return d.do("write", f.Name(), func() error { _, err := f.WriteAt(b, off); return err })
}

func (d disk) sync(f *os.File) error {
	return d.do("sync", f.Name(), func() error { return syncData(f) })
}

// truncate cuts f to size if it is longer.
func (d disk) truncate(f *os.File, size int64) error {
	st, err := f.Stat()
	if err != nil || st.Size() <= size {
		return err
	}
	return d.do("truncate", f.Name(), func() error { return f.Truncate(size) })
}

// replace gives the file at path new content so that after a crash it holds either the
// old or the new one, whole.
func (d disk) replace(path string, b []byte) error {
	tmp, err := d.draft(path, b, d.sync)
	if err != nil {
		return err
	}
	return d.rename(tmp, path)
}

// replaceLater is replace without waiting for the disk: whoever reads the file finds the
// old or the new content, but a power cut may leave anything.
func (d disk) replaceLater(path string, b []byte) error {
	tmp, err := d.draft(path, b, func(*os.File) error { return nil })
	if err != nil {
		return err
	}
	return d.do("rename", path, func() error { return os.Rename(tmp, path) })
}

// draft writes a file beside path.
func (d disk) draft(path string, b []byte, sync func(*os.File) error) (tmp string, err error) {
	tmp = path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return "", err
	}
	if err = d.writeAt(f, b, 0); err == nil {
		err = sync(f)
	}
	return tmp, errors.Join(err, f.Close())
}

// syncNow makes durable what replaceLater wrote.
func (d disk) syncNow(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := errors.Join(d.sync(f), f.Close()); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// rename moves a file and makes the move durable.
func (d disk) rename(from, to string) error {
	if err := d.do("rename", to, func() error { return os.Rename(from, to) }); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(to))
}

func (d disk) syncDir(dir string) error {
	return d.do("syncdir", dir, func() error {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// tryFlock takes an advisory lock that the kernel drops with the open file. It reports
// false if somebody else has it.
func tryFlock(f *os.File, how int) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err {
		case nil:
			return true, nil
		case syscall.EWOULDBLOCK:
			return false, nil
		case syscall.EINTR:
		default:
			return false, fmt.Errorf("flock %s: %w", f.Name(), err)
		}
	}
}

// flockSoon takes the exclusive lock of a writer. A Verify that looks whether a writer is
// there holds the lock for an instant, so one refusal is not yet an answer.
func flockSoon(f *os.File) (bool, error) {
	for range 25 {
		if ok, err := tryFlock(f, syscall.LOCK_EX); ok || err != nil {
			return ok, err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false, nil
}

// unflock gives the lock back at once. Closing the file is not enough: a child that was
// forked and has not yet called exec shares the open file, and with it the lock.
func unflock(f *os.File) error {
	_, err := tryFlock(f, syscall.LOCK_UN)
	return err
}
