package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// room is what an attempt has on disk for itself alone. The zero value is
// nothing.
type room struct{ dir string }

func (p room) home() string    { return filepath.Join(p.dir, "home") }
func (p room) tmp() string     { return filepath.Join(p.dir, "tmp") }
func (p room) cidfile() string { return filepath.Join(p.dir, "cid") }

// room is where an attempt has its own folders, whether they exist or not.
func (s *shift) room(r record) room {
	if s.cfg.Scratch == "" {
		return room{}
	}
	return room{filepath.Join(s.cfg.Scratch, "banksman-"+r.Name())}
}

// furnish makes the attempt's folders.
func (s *shift) furnish(r record) (room, error) {
	p := s.room(r)
	if p.dir == "" {
		return p, nil
	}
	for _, dir := range []string{p.dir, p.home(), p.tmp()} {
		err := os.Mkdir(dir, 0o700)
		if err == nil && s.account != nil {
			err = os.Chown(dir, int(s.account.id.UID), int(s.account.id.GID))
		}
		if err != nil {
			return p, errors.Join(fmt.Errorf("make the attempt's own folder: %w; see the key scratch in [worker]", err), p.clear())
		}
	}
	return p, nil
}

// clear removes the folders, also what the job has made unwritable in them.
func (p room) clear() error {
	if p.dir == "" {
		return nil
	}
	if err := os.RemoveAll(p.dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // what this leaves, the removal tells
		}
		return nil
	})
	return os.RemoveAll(p.dir)
}

// leaveNothing clears a room at the end of its attempt.
func (s *shift) leaveNothing(p room) {
	if err := p.clear(); err != nil {
		s.log.Warn("the folders of an attempt could not be removed; remove them by hand", "folder", p.dir, "error", err)
	}
}

// settle lets the environment name the attempt's own folders and its user,
// unless the job sets these variables itself.
func (s *shift) settle(env []string, own map[string]string, p room) []string {
	set := map[string]string{}
	if s.account != nil {
		set = s.account.variables()
	}
	if p.dir != "" {
		set["HOME"], set["TMPDIR"] = p.home(), p.tmp()
	}
	for name := range own {
		delete(set, name)
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, replaced := set[name]
		return replaced
	})
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}
