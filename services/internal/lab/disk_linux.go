package lab

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/banksman/banksman/services/internal/lab/need"
)

// Disk is a small file system of its own.
type Disk struct {
	t   testing.TB
	dir string
}

// NewDisk mounts an empty disk of a size, such as "256k", over a folder until the
// test ends. Without root's rights the test is skipped, or fails where everything
// has to be there.
func NewDisk(t testing.TB, dir, size string) *Disk {
	t.Helper()
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = syscall.Mount("banksman-test", dir, "tmpfs", 0, "mode=0700,size="+size)
	}
	if err != nil {
		need.Missing(t, "mount a small disk: %v", err)
	}
	d := &Disk{t: t, dir: dir}
	t.Cleanup(func() { d.must(syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return d
}

func (d *Disk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// Fill takes all room and returns how to give it back.
func (d *Disk) Fill() (free func()) {
	d.t.Helper()
	path := filepath.Join(d.dir, "ballast")
	f, err := os.Create(path)
	d.must(err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatal(err)
	}
	return func() {
		d.t.Helper()
		d.must(os.Remove(path))
	}
}

// Lock makes it read-only and returns how to make it writable again.
func (d *Disk) Lock() (unlock func()) {
	d.t.Helper()
	mount := func(flags uintptr) error { return syscall.Mount("", d.dir, "", syscall.MS_REMOUNT|flags, "") }
	Eventually(d.t, "the disk to have no file open for writing", func() bool { return !errors.Is(mount(syscall.MS_RDONLY), syscall.EBUSY) })
	d.must(mount(syscall.MS_RDONLY))
	return func() {
		d.t.Helper()
		d.must(mount(0))
	}
}
