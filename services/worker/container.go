package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/banksman/banksman/services/internal/proc"
)

// Words of exec_prefix that are replaced for each attempt.
const (
	wordCwd     = "{cwd}"
	wordCidfile = "{cidfile}"
	wordHome    = "{home}"
	wordTmp     = "{tmp}"
	wordEnv     = "{env}" // a whole argument; becomes --env NAME for each variable
)

// stopWithin bounds the program that stops a container.
const stopWithin = 30 * time.Second

// validateContainer checks exec_prefix and exec_stop.
func (c *Config) validateContainer() error {
	has := func(word string) bool {
		return slices.ContainsFunc(c.ExecPrefix, func(arg string) bool { return strings.Contains(arg, word) })
	}
	for key, argv := range map[string][]string{"exec_prefix": c.ExecPrefix, "exec_stop": c.ExecStop} {
		for _, arg := range argv {
			if strings.ContainsRune(arg, 0) {
				return fmt.Errorf("%s: an argument holds a NUL byte", key)
			}
		}
		if len(argv) > 0 && !filepath.IsAbs(argv[0]) {
			return fmt.Errorf("%s: name the program by its absolute path, not as %q", key, argv[0])
		}
	}
	switch {
	case c.Scratch == "" && (has(wordCidfile) || has(wordHome) || has(wordTmp)):
		return fmt.Errorf("exec_prefix: %s, %s and %s need the key scratch", wordCidfile, wordHome, wordTmp)
	case len(c.ExecStop) > 0 && !has(wordCidfile):
		return fmt.Errorf("exec_stop: without %s in exec_prefix nobody knows which container to stop", wordCidfile)
	case has(wordCidfile) && len(c.ExecStop) == 0:
		return fmt.Errorf("exec_stop: %s in exec_prefix names a container, and nothing here can stop it", wordCidfile)
	}
	return nil
}

// wrap lets the prefix run what would have been executed. The approved program is
// checked just before and just after, by its path: what a container makes of that
// path is the prefix's matter.
func (s *shift) wrap(spec *proc.Spec, found string, p room) error {
	if len(s.cfg.ExecPrefix) == 0 {
		return nil
	}
	prefix := s.prefix(spec, p)
	real, err := filepath.EvalSymlinks(prefix[0])
	if err != nil {
		return &proc.StartError{Code: proc.CodeNoProgram, Path: prefix[0], Detail: "exec_prefix in [worker]: " + cause(err)}
	}
	if found == "" {
		found = spec.Path
	}
	spec.Files = append(spec.Files, proc.FileDigest{Path: spec.Path, SHA256: spec.ExpectSHA256})
	spec.Argv = append(append(prefix, found), spec.Argv[1:]...)
	spec.Path, spec.Found, spec.ExpectSHA256 = real, prefix[0], ""
	return nil
}

// prefix is exec_prefix for one attempt.
func (s *shift) prefix(spec *proc.Spec, p room) []string {
	words := strings.NewReplacer(wordCwd, spec.Dir, wordCidfile, p.cidfile(), wordHome, p.home(), wordTmp, p.tmp())
	var out []string
	for _, arg := range s.cfg.ExecPrefix {
		if arg != wordEnv {
			out = append(out, words.Replace(arg))
			continue
		}
		for _, entry := range spec.Env {
			name, _, _ := strings.Cut(entry, "=")
			out = append(out, "--env", name)
		}
	}
	return out
}

// stopContainer ends the container of an attempt whose own processes have ended:
// it is no child of theirs. False means that it may still run.
func (s *shift) stopContainer(ctx context.Context, job string, p room) bool {
	if len(s.cfg.ExecStop) == 0 || p.dir == "" {
		return true
	}
	id, err := os.ReadFile(p.cidfile())
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(strings.TrimSpace(string(id))) == 0 {
		return true // it never came to be
	}
	if err == nil {
		err = s.runStop(ctx, strings.TrimSpace(string(id)))
	}
	if err != nil {
		s.log.Error("the container of a job could not be stopped; look for it", "job", job, "container", string(id), "error", err)
	}
	return err == nil
}

func (s *shift) runStop(ctx context.Context, id string) error {
	argv := append(slices.Clone(s.cfg.ExecStop), id)
	real, err := filepath.EvalSymlinks(argv[0])
	if err != nil {
		return err
	}
	said := &brief{most: 4096}
	p, err := s.crew.Start(ctx, proc.Spec{
		Argv: argv, Path: real, Found: argv[0], Dir: "/", Env: s.environment(nil), Stderr: said, TimeLimit: stopWithin,
	})
	if err != nil {
		return err
	}
	o, err := p.Wait()
	if err == nil && (o.ExitCode != 0 || o.Signal != "") {
		err = fmt.Errorf("%s ended with status %d %s: %s", argv[0], o.ExitCode, o.Signal, strings.TrimSpace(string(said.data)))
	}
	return err
}
