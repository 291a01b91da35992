package keys

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// With an access list the kernel shows the mask as group bits, so that a file
// only this user may read has mode 0640.
func TestReadSecretUnderstandsAccessLists(t *testing.T) {
	path := mustWrite(t, filepath.Join(folder(t), "credential"), "hush", 0o600)
	set := func(list []byte) {
		t.Helper()
		err := unix.Setxattr(path, "system.posix_acl_access", list, 0)
		if errors.Is(err, unix.ENOTSUP) {
			t.Skip("access lists: this file system has none")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set(serviceList(uint32(os.Geteuid())))
	wantMode(t, path, 0o440)
	if _, err := ReadSecret(path); err != nil {
		t.Errorf("readable by this user alone: %v", err)
	}
	set(serviceList(otherUser))
	_, err := ReadSecret(path)
	wantErr(t, err, ErrExposed)
}
