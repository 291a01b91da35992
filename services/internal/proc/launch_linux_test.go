package proc

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"
)

// copied makes a file of its own with a shell in it.
func copied(t *testing.T) (path, digest string) {
	t.Helper()
	sh, err := Resolve("sh", "/", os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sh)
	if err != nil {
		t.Fatal(err)
	}
	path = written(t, place(t)+"/program", string(text), 0o755)
	return path, digestOf(t, path)
}

func TestBoundToDigest(t *testing.T) {
	program, digest := copied(t)
	script := written(t, place(t)+"/script", "#!/bin/sh\necho \"ran $0 $1\"\n", 0o755)
	link := place(t) + "/link"
	if err := os.Symlink(script, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec        Spec
		bound, text string
	}{
		{Spec{Argv: []string{"x", "-c", "echo $0"}, Path: program, ExpectSHA256: digest}, BoundFD, "x\n"},
		{Spec{Argv: []string{"x", "-c", "echo $0"}, Path: program, ExpectSHA256: digest, Sealed: true}, BoundSealed, "x\n"},
		{Spec{Argv: []string{"x", "-c", "echo $0"}, Path: program}, "", "x\n"},
		{Spec{Argv: []string{"x", "1"}, Path: script, ExpectSHA256: digestOf(t, script)}, BoundChecked, "ran " + script + " 1\n"},
		{Spec{Argv: []string{"x", "1"}, Path: script, Found: link, ExpectSHA256: digestOf(t, script)}, BoundChecked, "ran " + link + " 1\n"},
	} {
		out := newTap()
		c.spec.Dir, c.spec.Stdout, c.spec.Stderr = "/", out, out
		if outcome := ran(t, c.spec); outcome.Bound != c.bound || outcome.ExitCode != 0 || out.String() != c.text {
			t.Errorf("bound %q, exit %d, output %q; want %q and %q", outcome.Bound, outcome.ExitCode, out, c.bound, c.text)
		}
	}
}

func TestRetargetedLinkIsRefused(t *testing.T) {
	script := written(t, place(t)+"/script", "#!/bin/sh\n", 0o755)
	other := written(t, place(t)+"/other", "#!/bin/sh\n", 0o755)
	link := place(t) + "/link"
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Spec{Argv: []string{"x"}, Path: script, Found: link, Dir: "/", ExpectSHA256: digestOf(t, script)})
	codeIs(t, err, CodeDigestChanged)
}

// executed runs what was prepared after change has had its chance, stopped before the first instruction, and returns the
// verdict of the last look and, if that was good, the output.
func executed(t *testing.T, j *job, change func()) (string, error) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l, err := prepare(j)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	change()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	pid, err := l.exec([]*os.File{os.Stdin, write, write}, false, true)
	write.Close()
	if err != nil {
		return "", err
	}
	if err := awaitStop(pid); err != nil {
		t.Fatal(err)
	}
	verdict := l.recheck()
	if verdict != nil {
		syscall.Kill(pid, syscall.SIGKILL)
	} else if err := syscall.PtraceDetach(pid); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(read)
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return string(text), verdict
}

// TestReplacedBetweenDigestAndExec changes a program in the moment that matters.
func TestReplacedBetweenDigestAndExec(t *testing.T) {
	const impostor = "#!/bin/sh\necho impostor\n"
	approved := func(path, digest string) *job {
		return &job{Argv: []string{"x", "-c", "echo approved"}, Path: path, Dir: "/", ExpectSHA256: digest, Umask: 0o022}
	}
	rename := func(path string) {
		written(t, path+".new", impostor, 0o755)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("binary renamed over", func(t *testing.T) {
		path, digest := copied(t)
		if text, err := executed(t, approved(path, digest), func() { rename(path) }); err != nil || text != "approved\n" {
			t.Errorf("output %q, %v", text, err)
		}
	})
	t.Run("binary written in place", func(t *testing.T) {
		path, digest := copied(t)
		text, err := executed(t, approved(path, digest), func() {
			file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			io.WriteString(file, "more")
		})
		codeIs(t, err, CodeDigestChanged)
		if text != "" {
			t.Errorf("it ran and printed %q", text)
		}
	})
	t.Run("sealed copy", func(t *testing.T) {
		path, digest := copied(t)
		j := approved(path, digest)
		j.Sealed = true
		if text, err := executed(t, j, func() { written(t, path, impostor, 0o755) }); err != nil || text != "approved\n" {
			t.Errorf("output %q, %v", text, err)
		}
	})
	for name, change := range map[string]func(string){
		"script renamed over":     rename,
		"script written in place": func(path string) { written(t, path, impostor, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, place(t)+"/script", "#!/bin/sh\necho approved\n", 0o755)
			text, err := executed(t, approved(path, digestOf(t, path)), func() { change(path) })
			codeIs(t, err, CodeDigestChanged)
			if text != "" {
				t.Errorf("it ran and printed %q", text)
			}
		})
	}
	t.Run("further file", func(t *testing.T) {
		path, digest := copied(t)
		data := written(t, place(t)+"/data", "approved", 0o644)
		j := approved(path, digest)
		j.Files = []FileDigest{{Path: data, SHA256: digestOf(t, data)}}
		_, err := executed(t, j, func() { written(t, data, "changed", 0o644) })
		codeIs(t, err, CodeDigestChanged)
	})
	t.Run("working directory", func(t *testing.T) {
		path, digest := copied(t)
		dir := place(t) + "/work"
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		j := approved(path, digest)
		j.Dir, j.Argv[2] = dir, "pwd -P"
		text, err := executed(t, j, func() {
			if err := errors.Join(os.Rename(dir, dir+".old"), os.Symlink("/etc", dir)); err != nil {
				t.Fatal(err)
			}
		})
		if err != nil || text != dir+".old\n" {
			t.Errorf("ran in %q, %v", text, err)
		}
	})
}
