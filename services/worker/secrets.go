package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/redact"
	"github.com/banksman/banksman/services/internal/secretref"
)

// fetchWithin bounds a program that prints a secret.
const fetchWithin = 30 * time.Second

// openSecrets fetches every configured secret once: a worker that lacks one says
// so at its start and not in the middle of a job.
func (s *shift) openSecrets(ctx context.Context) error {
	set, err := secretref.New(s.cfg.Secrets, os.Getenv("CREDENTIALS_DIRECTORY"), s.printed)
	if err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	if err := set.Load(ctx); err != nil {
		return fmt.Errorf("start the worker: %w; see the key secrets in [worker]", err)
	}
	s.secrets = set
	if s.rules, err = s.rules.Own(s.env.Site.SecretPatterns...); err != nil {
		return fmt.Errorf("start the worker: %w; see the key secret_patterns in [site]", err)
	}
	if weak := s.rules.With(s.known()...).Weak(); len(weak) > 0 {
		s.log.Warn("these secrets are too short or too plain to be kept out of output; give them more than 7 bytes", "secrets", weak)
	}
	return nil
}

// printed runs a program to its end and returns what it wrote.
func (s *shift) printed(ctx context.Context, argv []string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(argv[0])
	if err != nil {
		return nil, err
	}
	out := &brief{most: secretref.MaxBytes + 3}
	p, err := s.crew.Start(ctx, proc.Spec{
		Argv: argv, Path: real, Found: argv[0], Dir: "/", Env: []string{"PATH=" + s.cfg.search(), "HOME=" + os.Getenv("HOME")},
		Stdout: out, TimeLimit: fetchWithin, Umask: s.cfg.Umask,
	})
	if err != nil {
		return nil, err
	}
	outcome, err := p.Wait()
	switch {
	case err != nil:
		return nil, err
	case outcome.TimedOut:
		return nil, fmt.Errorf("it printed nothing complete within %v", fetchWithin)
	case outcome.ExitCode != 0 || outcome.Signal != "":
		return nil, fmt.Errorf("it ended with status %d %s", outcome.ExitCode, outcome.Signal)
	}
	return out.data, nil
}

// brief keeps the beginning of what is written to it.
type brief struct {
	most int
	data []byte
}

func (b *brief) Write(p []byte) (int, error) {
	b.data = append(b.data, p[:min(len(p), b.most-len(b.data))]...)
	return len(p), nil
}

// kit is what an attempt starts with.
type kit struct {
	env   []string
	rules *redact.Rules
	err   error // why it cannot start
}

// outfit replaces the references of a job's own variables by the secrets, which
// are stored nowhere, and makes the rules that keep them out of its output.
func (s *shift) outfit(ctx context.Context, own map[string]string) kit {
	var k kit
	own = maps.Clone(own)
	for _, variable := range slices.Sorted(maps.Keys(own)) {
		name, ok := secretref.Reference(own[variable])
		if !ok {
			continue
		}
		value, err := s.secrets.Get(ctx, name)
		if errors.Is(err, secretref.ErrUnknown) {
			err = fmt.Errorf("%w on this worker; add it to the key secrets in [worker]", err)
		}
		if err != nil && k.err == nil {
			k.err = fmt.Errorf("set variable %s: %w", variable, err)
		}
		own[variable] = value
	}
	k.env, k.rules = s.environment(own), s.rules.With(s.known()...)
	return k
}

// known lists every value that output must not show: the configured secrets and
// what the worker passes on of its own environment under telling names.
func (s *shift) known() (list []redact.Value) {
	s.secrets.Known(func(name, value string) { list = append(list, redact.Value{Name: name, Text: value}) })
	for _, name := range s.cfg.EnvPass {
		if value, ok := os.LookupEnv(name); ok && redact.Telling(name) {
			list = append(list, redact.Value{Name: name, Text: value})
		}
	}
	return list
}
