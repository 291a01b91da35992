package worker

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/banksman/banksman/services/internal/proc"
)

// Walls of an attempt, as its start names them.
const (
	wallHidden    = "hidden"
	wallLandlock  = "landlock"
	wallUser      = "user"
	wallContainer = "container"
)

// reaches says whether jobs are kept to a part of the file system.
func (c *Config) reaches() bool { return len(c.ReachRead)+len(c.ReachWrite) > 0 }

// validateReach checks reach_read and reach_write.
func (c *Config) validateReach() error {
	for key, list := range map[string][]string{"reach_read": c.ReachRead, "reach_write": c.ReachWrite} {
		for _, path := range list {
			first, _, _ := strings.Cut(path, "/")
			switch {
			case strings.ContainsRune(path, 0):
				return fmt.Errorf("%s: a path holds a NUL byte", key)
			case first != "" && first != wordCwd && first != wordHome && first != wordTmp || path == "":
				return fmt.Errorf("%s: %q is no absolute path; begin it with a slash, %s, %s or %s", key, path, wordCwd, wordHome, wordTmp)
			case c.Scratch == "" && (first == wordHome || first == wordTmp):
				return fmt.Errorf("%s: %s needs the key scratch", key, first)
			}
		}
	}
	return nil
}

// enclose keeps an attempt to what the configuration lets jobs reach.
func (s *shift) enclose(spec *proc.Spec, p room) error {
	if !s.cfg.reaches() {
		return nil
	}
	words := strings.NewReplacer(wordCwd, spec.Dir, wordHome, p.home(), wordTmp, p.tmp())
	reach := &proc.Reach{}
	for key, list := range map[string]struct {
		from []string
		to   *[]string
	}{"reach_read": {s.cfg.ReachRead, &reach.Read}, "reach_write": {s.cfg.ReachWrite, &reach.Write}} {
		for _, path := range list.from {
			real, err := filepath.EvalSymlinks(words.Replace(path))
			if err != nil {
				return &proc.StartError{Code: proc.CodeNoReach, Path: spec.Path, Detail: key + " in [worker]: " + cause(err)}
			}
			*list.to = append(*list.to, real)
		}
	}
	if len(reach.Read) == 0 {
		reach.Read = []string{"/"}
	}
	spec.Reach = reach
	return nil
}

// walls are what will stand around the jobs of this worker.
func (s *shift) walls() []string {
	var list []string
	for _, w := range []struct {
		name   string
		stands bool
	}{
		{wallHidden, s.cfg.Hide}, {wallLandlock, s.cfg.reaches()}, {wallUser, s.account != nil}, {wallContainer, len(s.cfg.ExecPrefix) > 0},
	} {
		if w.stands {
			list = append(list, w.name)
		}
	}
	return slices.Clip(list)
}
