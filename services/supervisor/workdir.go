package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// workDir returns the real path of a project's folder. A folder that holds
// banksman's own, or lies in it, would let an agent change its own judge.
func workDir(dir string, own ...string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("work_dir %s: %w; make the folder or correct the configuration", dir, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("work_dir %s: %w", dir, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("work_dir %s is no folder", dir)
	}
	for _, private := range own {
		if resolved, err := filepath.EvalSymlinks(private); err == nil {
			private = resolved
		}
		if within(real, private) || within(private, real) {
			return "", fmt.Errorf("work_dir %s and banksman's folder %s: neither may lie in the other, or the agent could change its own judge; move one of them", real, private)
		}
	}
	return real, nil
}

func within(path, outer string) bool {
	return path == outer || strings.HasPrefix(path, strings.TrimSuffix(outer, "/")+"/")
}

// errTaken is a work folder that another supervisor of this machine uses.
var errTaken = errors.New("another supervisor on this machine works in it")

// lockFolder claims a folder for this process without putting a file into it.
// The kernel gives the claim back when the process ends.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("claim the work folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errTaken
		}
		return nil, fmt.Errorf("claim the work folder %s: %w", dir, err)
	}
	return f, nil
}
