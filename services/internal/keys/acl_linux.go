package keys

import (
	"os"

	"golang.org/x/sys/unix"
)

// accessList returns the access list of an open file, false if it has none.
func accessList(file *os.File) ([]byte, bool) {
	list := make([]byte, 4096)
	n, err := unix.Fgetxattr(int(file.Fd()), "system.posix_acl_access", list)
	if err != nil {
		return nil, false
	}
	return list[:n], true
}
