package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// symlinkHops bounds how many symbolic links one path may pass through; the
// kernel's own bound is the same.
const symlinkHops = 40

// MakePrivateDir makes the folder path, and the missing ones above it, with mode
// 0700. An existing folder is accepted only when it is a real folder (no
// symbolic link), belongs to this user and has mode 0700 or less; it is not
// silently tightened, since whatever lies in it may have been seen already.
//
// The folders above are checked too, because who can rename a parent can put
// another folder in its place: each must belong to root or this user, and must
// not be writable by group or others unless it is sticky, as /tmp is.
func MakePrivateDir(path string) error {
	folder, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("keys: make folder %s: %w", path, err)
	}
	if err := makeMissing(folder); err != nil {
		return err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("keys: make folder: %w", err)
	}
	if err := requirePrivate(folder, info); err != nil {
		return err
	}
	return checkTrail(folder)
}

// makeMissing makes folder and its missing ancestors. The existing ones are
// checked before anything is made.
func makeMissing(folder string) error {
	_, err := os.Lstat(folder)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keys: make folder: %w", err)
	}
	parent := filepath.Dir(folder)
	if err := makeMissing(parent); err != nil {
		return err
	}
	if err := checkTrail(parent); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keys: make folder: %w", err)
	}
	return nil
}

// requirePrivate checks the last element of the path of a private folder.
func requirePrivate(folder string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return unsafe(folder, "it is a symbolic link", "name the folder itself")
	case !info.IsDir():
		return unsafe(folder, "it is not a folder", "name another one")
	case ownerOf(info) != os.Geteuid():
		return unsafe(folder, fmt.Sprintf("it belongs to user %d", ownerOf(info)), "name one of your own")
	case info.Mode().Perm()&0o077 != 0:
		return unsafe(folder, fmt.Sprintf("others may enter it (mode %04o)", info.Mode().Perm()), "run chmod 700 "+folder)
	}
	return nil
}

// checkTrail walks the absolute path folder element by element, following
// symbolic links as the kernel does, and checks each folder on the way.
func checkTrail(folder string) error {
	here, rest := "/", elements(folder)
	if err := checkStep("/", nil); err != nil {
		return err
	}
	for hops := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			here = filepath.Dir(here)
			continue
		}
		next := filepath.Join(here, name)
		info, err := os.Lstat(next)
		if err != nil {
			return fmt.Errorf("keys: check folder %s: %w", folder, err)
		}
		if err := checkStep(next, info); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			here = next
			continue
		}
		if hops++; hops > symlinkHops {
			return unsafe(folder, "its path has too many symbolic links", "name the folder itself")
		}
		target, err := os.Readlink(next)
		if err != nil {
			return fmt.Errorf("keys: check folder %s: %w", folder, err)
		}
		if filepath.IsAbs(target) {
			here = "/"
		}
		rest = append(elements(target), rest...)
	}
	return nil
}

// checkStep judges one element of a path: nobody but root and this user may be
// able to exchange it or what lies in it.
func checkStep(path string, info fs.FileInfo) error {
	if info == nil {
		var err error
		if info, err = os.Lstat(path); err != nil {
			return fmt.Errorf("keys: check folder: %w", err)
		}
	}
	if owner := ownerOf(info); owner != 0 && owner != os.Geteuid() {
		return unsafe(path, fmt.Sprintf("it belongs to user %d, who could exchange what lies below", owner),
			"use a folder below one of your own")
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil // its mode means nothing; its owner and its folder are checked
	}
	if !info.IsDir() {
		return unsafe(path, "it is not a folder", "name another one")
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return unsafe(path, fmt.Sprintf("others may write to it (mode %04o) and could exchange what lies below", info.Mode().Perm()),
			"run chmod go-w "+path)
	}
	return nil
}

// elements splits a path without cleaning it: "a/../b" is not "b" when a is a
// symbolic link.
func elements(path string) []string {
	var names []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}

func unsafe(folder, reason, next string) error {
	return fmt.Errorf("keys: %w: %s: %s; %s", ErrUnsafeFolder, folder, reason, next)
}

// ownerOf returns the numeric user id that owns a file, -1 if unknown.
func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
