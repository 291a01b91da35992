package secretref

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// MaxBytes is the longest secret.
const MaxBytes = 64 << 10

// ErrUnknown is a reference to a secret that is not configured.
var ErrUnknown = errors.New("no such secret is configured")

// scheme is how a value says that it is a reference.
const scheme = "secret:"

// Reference returns the name of the secret that a value stands for.
func Reference(value string) (name string, ok bool) {
	name, ok = strings.CutPrefix(value, scheme)
	return name, ok && validName(name)
}

func validName(name string) bool {
	return name != "" && len(name) <= 64 && name[0] != '.' && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	})
}

// source is where one secret comes from.
type source struct {
	text string // as configured
	path string // of a file or a credential
	argv []string
}

// parse reads a source.
func parse(text, credentials string) (source, error) {
	kind, rest, _ := strings.Cut(text, ":")
	s := source{text: text}
	switch kind {
	case "file":
		if !filepath.IsAbs(rest) {
			return s, fmt.Errorf("%q: behind file: stands an absolute path", text)
		}
		s.path = rest
	case "cred":
		if !validName(rest) {
			return s, fmt.Errorf("%q: behind cred: stands a credential's name", text)
		}
		if credentials != "" {
			s.path = filepath.Join(credentials, rest)
		}
	case "cmd":
		s.argv = strings.Fields(rest)
		if len(s.argv) == 0 || !filepath.IsAbs(s.argv[0]) {
			return s, fmt.Errorf("%q: behind cmd: stands a program's absolute path", text)
		}
	default:
		return s, fmt.Errorf("a secret's source begins with file:, cred: or cmd: and then says where")
	}
	return s, nil
}

// Check says what is wrong with names and sources.
func Check(sources map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if !validName(name) {
			return fmt.Errorf("secret %q: a name is 1 to 64 letters, digits, '_', '-' and '.'", name)
		}
		if _, err := parse(sources[name], ""); err != nil {
			return fmt.Errorf("secret %s: %w", name, err)
		}
	}
	return nil
}

// Run starts a program and returns what it printed.
type Run func(ctx context.Context, argv []string) ([]byte, error)

// Set is the secrets of one process. It is safe for concurrent use.
type Set struct {
	sources map[string]source
	run     Run

	mu     sync.Mutex
	values map[string][]string // newest first, at most two
}

// New makes a set. Credentials is the folder of the service manager, may be
// empty.
func New(sources map[string]string, credentials string, run Run) (*Set, error) {
	if err := Check(sources); err != nil {
		return nil, err
	}
	s := &Set{sources: map[string]source{}, run: run, values: map[string][]string{}}
	for name, text := range sources {
		s.sources[name], _ = parse(text, credentials)
	}
	return s, nil
}

// Load fetches every secret once, so that a missing one is noticed before it is
// needed.
func (s *Set) Load(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(s.sources)) {
		if _, err := s.Get(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Get fetches a secret anew.
func (s *Set) Get(ctx context.Context, name string) (string, error) {
	src, ok := s.sources[name]
	if !ok {
		return "", fmt.Errorf("fetch secret %s: %w", name, ErrUnknown)
	}
	data, err := s.fetch(ctx, src)
	if err != nil {
		return "", fmt.Errorf("fetch secret %s from %s: %w", name, src.text, err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case value == "":
		return "", fmt.Errorf("fetch secret %s from %s: it is empty", name, src.text)
	case len(value) > MaxBytes:
		return "", fmt.Errorf("fetch secret %s from %s: it has more than %d bytes", name, src.text, MaxBytes)
	case strings.ContainsRune(value, 0):
		return "", fmt.Errorf("fetch secret %s from %s: it holds a NUL byte, which no variable can", name, src.text)
	}
	s.remember(name, value)
	return value, nil
}

func (s *Set) fetch(ctx context.Context, src source) ([]byte, error) {
	switch {
	case src.argv != nil:
		return s.run(ctx, src.argv)
	case src.path == "":
		return nil, errors.New("the service manager has given no credentials; $CREDENTIALS_DIRECTORY is not set")
	}
	f, err := os.Open(src.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return nil, errors.Join(err, errors.New("it is no file"))
	}
	return io.ReadAll(io.LimitReader(f, MaxBytes+3))
}

func (s *Set) remember(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.values[name]
	if len(known) == 0 || known[0] != value {
		s.values[name] = append([]string{value}, known[:min(len(known), 1)]...)
	}
}

// Known calls each for every value that was fetched, in the order of names.
func (s *Set) Known(each func(name, value string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		for _, value := range s.values[name] {
			each(name, value)
		}
	}
}
