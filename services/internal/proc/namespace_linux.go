package proc

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stewardCaps are what a steward under an ordinary uid keeps across exec, inside its own user namespace only, to mount
// covers, to make the program's namespaces, and to look after processes in them.
var stewardCaps = [...]uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL, unix.CAP_SYS_PTRACE,
	unix.CAP_SYS_RESOURCE, unix.CAP_DAC_OVERRIDE,
}

// nest asks for new namespaces in which every uid and gid is what it is outside. A process that may set any id maps all
// that it has itself; another one can map only its own.
func nest(attr *syscall.SysProcAttr, flags uintptr) error {
	attr.Cloneflags = flags
	full, err := maySetIDs()
	if err != nil {
		return err
	}
	if !full {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		return nil
	}
	if attr.UidMappings, err = ownMap("/proc/self/uid_map"); err != nil {
		return err
	}
	attr.GidMappings, err = ownMap("/proc/self/gid_map")
	setgroups, _ := os.ReadFile("/proc/self/setgroups")
	attr.GidMappingsEnableSetgroups = strings.TrimSpace(string(setgroups)) != "deny"
	return err
}

// ownMap is the identity over all ids that this process's own namespace has.
func ownMap(path string) ([]syscall.SysProcIDMap, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read which ids this process has: %w", err)
	}
	var out []syscall.SysProcIDMap
	for line := range strings.Lines(string(text)) {
		var inside, outside, count int
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		out = append(out, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: count})
	}
	return out, nil
}

// maySetIDs reports whether this process has root's freedom over ids in its own namespace.
func maySetIDs() (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false, fmt.Errorf("read the capabilities of this process: %w", err)
	}
	const want = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID
	return os.Geteuid() == 0 && data[0].Effective&want == want, nil
}

// cover mounts an empty read-only file system over each hidden folder and puts the exposed paths back. It runs in a mount
// namespace of the steward's own.
func cover(hide, expose []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts of the job from those of the machine: %w", err)
	}
	shown, err := openExposed(expose)
	defer closeAll(shown)
	if err != nil {
		return err
	}
	hide = outermost(hide)
	for _, path := range hide {
		if err := unix.Mount("banksman", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=1m"); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	for i, path := range expose {
		if err := show(shown[i], path); err != nil {
			return fmt.Errorf("expose %s inside a hidden folder: %w", path, err)
		}
	}
	for _, path := range hide {
		flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
		if err := unix.Mount("", path, "", flags, ""); err != nil {
			return fmt.Errorf("make the cover of %s read-only: %w", path, err)
		}
	}
	return nil
}

func openExposed(expose []string) ([]*os.File, error) {
	var out []*os.File
	for _, path := range expose {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return out, fmt.Errorf("open %s, which is to be exposed: %w", path, err)
		}
		out = append(out, os.NewFile(uintptr(fd), path))
	}
	return out, nil
}

// show binds an opened path to its old place in a cover.
func show(file *os.File, path string) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	} else if place, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600); err != nil {
		return err
	} else if err := place.Close(); err != nil {
		return err
	}
	return unix.Mount(fdPath(file), path, "", unix.MS_BIND|unix.MS_REC, "")
}

// outermost drops folders that lie inside another one of the list.
func outermost(paths []string) []string {
	sorted := slices.SortedFunc(slices.Values(paths), func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	var out []string
	for _, path := range sorted {
		if !slices.ContainsFunc(out, func(outer string) bool { return within(path, outer) }) {
			out = append(out, path)
		}
	}
	return out
}

func within(path, outer string) bool { return path == outer || strings.HasPrefix(path, outer+"/") }

// Namespaces tries to hide a folder that exists, and returns nil or why that does not work on this machine.
func Namespaces(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("try to hide a folder: %w", err)
	}
	h, err := hire(setup{Hide: []string{real}})
	if err != nil {
		return fmt.Errorf("try to hide %s in a user and mount namespace: %w", real, err)
	}
	h.dismiss()
	return nil
}
