package secretref

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGet(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one", "first-value\n")
	write("empty", "\n")
	write("nul", "hidden\x00value")
	write("long", strings.Repeat("hidden", MaxBytes))
	run := func(_ context.Context, argv []string) ([]byte, error) {
		if argv[0] == "/bin/false" {
			return nil, errors.New("it failed")
		}
		return []byte(strings.Join(argv, "|") + "\r\n"), nil
	}
	s, err := New(map[string]string{
		"FILE": "file:" + dir + "/one", "CRED": "cred:one", "CMD": "cmd:/usr/bin/pass  show x", "EMPTY": "cred:empty", "NUL": "cred:nul",
		"LONG": "cred:long", "GONE": "cred:gone", "DIR": "file:" + dir, "BAD": "cmd:/bin/false",
	}, dir, run)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"FILE": "first-value", "CRED": "first-value", "CMD": "/usr/bin/pass|show|x"} {
		if got, err := s.Get(t.Context(), name); got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"EMPTY", "NUL", "LONG", "GONE", "DIR", "BAD"} {
		got, err := s.Get(t.Context(), name)
		if err == nil || got != "" || !strings.Contains(err.Error(), "secret "+name) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := s.Get(t.Context(), "OTHER"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown: %v", err)
	}
	if err := s.Load(t.Context()); err == nil {
		t.Error("a missing secret was not noticed")
	}
	write("one", "second-value")
	write("one", "third-value")
	for range 2 {
		if _, err := s.Get(t.Context(), "FILE"); err != nil {
			t.Fatal(err)
		}
	}
	var known []string
	s.Known(func(name, value string) { known = append(known, name+"="+value) })
	if want := []string{"CMD=/usr/bin/pass|show|x", "CRED=first-value", "FILE=third-value", "FILE=first-value"}; !slices.Equal(known, want) {
		t.Errorf("known: %q", known)
	}
}

func TestWithoutCredentials(t *testing.T) {
	s, err := New(map[string]string{"A": "cred:a"}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "A"); err == nil || !strings.Contains(err.Error(), "CREDENTIALS_DIRECTORY") {
		t.Errorf("%v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, bad := range []map[string]string{
		{"": "file:/a"}, {"a b": "file:/a"}, {"../x": "file:/a"}, {"A": "plain-value"}, {"A": "file:a"}, {"A": "cred:../a"}, {"A": "cmd:"}, {"A": "cmd:pass x"},
	} {
		err := Check(bad)
		if err == nil || strings.Contains(err.Error(), "plain-value") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if err := Check(nil); err != nil {
		t.Error(err)
	}
}

func TestReference(t *testing.T) {
	for value, name := range map[string]string{"secret:DB_PASSWORD": "DB_PASSWORD", "secret:a-b.c": "a-b.c", "secret:": "", "secret:a b": "", "Secret:A": "", "x secret:A": "", "": ""} {
		got, ok := Reference(value)
		if ok != (name != "") || ok && got != name {
			t.Errorf("%q: %q %v", value, got, ok)
		}
	}
}
