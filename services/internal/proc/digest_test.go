package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"a", "b", "work"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, mode := range map[string]os.FileMode{"a/plain": 0o644, "b/plain": 0o755, "b/tool": 0o755, "work/tool": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../b/tool", filepath.Join(dir, "a/linked")); err != nil {
		t.Fatal(err)
	}
	search := strings.Join([]string{"", ".", "work", dir + "/a", dir + "/b"}, ":")
	for _, c := range []struct{ argv0, want, code string }{
		{"tool", "b/tool", ""},
		{"linked", "b/tool", ""},
		{"plain", "b/plain", ""},
		{"./tool", "work/tool", ""},
		{"../a/linked", "b/tool", ""},
		{dir + "/a/linked", "b/tool", ""},
		{"missing", "", CodeNoProgram},
		{"", "", CodeNoProgram},
		{"../a/plain", "", CodeNotExecutable},
		{dir, "", CodeNotExecutable},
		{dir + "/b/tool/x", "", CodeNoProgram},
	} {
		got, err := Resolve(c.argv0, dir+"/work", search)
		if c.code != "" {
			if !errors.Is(err, &StartError{Code: c.code}) {
				t.Errorf("%q: error %v, want %s", c.argv0, err, c.code)
			}
			continue
		}
		if err != nil || got != filepath.Join(dir, c.want) {
			t.Errorf("%q resolves to %q, %v; want %q", c.argv0, got, err, c.want)
		}
	}
}

func TestDigestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, size, err := DigestFile(path)
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; err != nil || size != 3 || got != want {
		t.Errorf("digest %s, size %d, %v", got, size, err)
	}
	if err := os.Truncate(path, MaxDigestBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := DigestFile(path); !errors.Is(err, &StartError{Code: CodeTooLarge}) {
		t.Errorf("error is %v", err)
	}
}

func TestReadInterpreter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	for text, want := range map[string]Interpreter{
		"#!/bin/sh\necho":               {Name: "/bin/sh"},
		"#!  /bin/sh  -e x \n":          {Name: "/bin/sh", Arg: "-e x"},
		"#!/usr/bin/env sh\n":           {Name: "/usr/bin/env", Arg: "sh", Program: "sh"},
		"#!/usr/bin/env -S A=1 sh -e\n": {Name: "/usr/bin/env", Arg: "-S A=1 sh -e", Program: "sh"},
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		got, err := ReadInterpreter(path, dir, "/usr/bin:/bin")
		if err != nil || got == nil || got.Name != want.Name || got.Arg != want.Arg || got.Program != want.Program || got.Path == "" {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
	if err := os.WriteFile(path, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadInterpreter(path, dir, ""); got != nil || err != nil {
		t.Errorf("a binary gives %+v, %v", got, err)
	}
}

func FuzzParseInterpreter(f *testing.F) {
	for _, seed := range []string{"#!/bin/sh\n", "#! /usr/bin/env -S python3 -u\n", "#!\n", "#!", "", "#! \t \n", "#!/a\x00b\n", "\x7fELF"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		in, ok := parseInterpreter(head)
		if !ok {
			return
		}
		if in.Name == "" || strings.ContainsAny(in.Name, " \t\n\x00") || !strings.HasPrefix(in.Line, in.Name) || !strings.HasSuffix(in.Line, in.Arg) {
			t.Errorf("%q gives %+v", head, in)
		}
	})
}
