package proc

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockLeast is the oldest Landlock that is used, of Linux 6.2: an earlier one lets a program empty files that it must
// not write to.
const landlockLeast = 3

// What the rules of a [Reach] allow beneath a path.
const (
	landlockRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// landlockOfFile is what a rule about anything but a folder may name.
	landlockOfFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// harmless are devices that every program expects to be able to open.
var harmless = [...]string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// Landlock returns the version of the kernel's Landlock, or why no [Reach] can be had on this machine.
func Landlock() (version int, err error) {
	got, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return judgeLandlock(int(got), errno)
}

func judgeLandlock(version int, errno unix.Errno) (int, error) {
	switch {
	case errno == unix.ENOSYS:
		return 0, errors.New("this kernel has no Landlock; it came with Linux 5.13")
	case errno == unix.EOPNOTSUPP:
		return 0, errors.New("Landlock is switched off; add it to the kernel's lsm= parameter")
	case errno != 0:
		return 0, fmt.Errorf("ask the kernel for Landlock: %w", errno)
	case version < landlockLeast:
		return version, fmt.Errorf("the kernel's Landlock is version %d, which does not stop a program from emptying files; version %d came with Linux 6.2", version, landlockLeast)
	}
	return version, nil
}

// wall builds the rules of a reach and returns their descriptor.
func (r *Reach) wall() (*os.File, error) {
	version, err := Landlock()
	if err != nil {
		return nil, err
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockRead | landlockWrite}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, fmt.Errorf("make a set of Landlock rules: %w", errno)
	}
	rules := os.NewFile(fd, "landlock")
	add := func(path string, access uint64) {
		if err == nil {
			err = allow(rules, path, access&attr.Handled_access_fs)
		}
	}
	for _, path := range harmless {
		if _, missing := os.Stat(path); missing == nil {
			add(path, landlockOfFile)
		}
	}
	for _, path := range r.Read {
		add(path, landlockRead)
	}
	for _, path := range r.Write {
		add(path, landlockRead|landlockWrite|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
	}
	if err != nil {
		rules.Close()
		return nil, err
	}
	return rules, nil
}

// allow adds one rule.
func allow(rules *os.File, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s, which the job is to reach: %w", path, err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("look at %s, which the job is to reach: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= landlockOfFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("let the job reach %s: %w", path, errno)
	}
	return nil
}

// enter puts the calling thread, and all that it starts from now on, behind a wall, for good. A steward in namespaces of
// its own starts the program without a second pair of them, because a thread behind a wall cannot name the ids of a new
// one; so what the second pair takes from the program is taken here: the steward's capabilities, and root's own to mount
// and to trace. Landlock forbids both in any namespace.
func enter(rules *os.File, inside bool) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up the steward's capabilities: %w", err)
	}
	if root, err := maySetIDs(); err != nil {
		return err
	} else if inside && root {
		for _, capability := range []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE} {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
				return fmt.Errorf("give up capability %d: %w", capability, err)
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules.Fd(), 0, 0); errno != 0 {
		return fmt.Errorf("put the job behind its Landlock rules: %w", errno)
	}
	return nil
}
