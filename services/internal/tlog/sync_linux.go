package tlog

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes a file's content and length durable. fdatasync leaves out times only,
// which saves a journal write per seal.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
