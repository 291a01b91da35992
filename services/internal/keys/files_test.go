package keys

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// folder returns a fresh folder of mode 0700; testing's own are 0755.
func folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustWrite(t testing.TB, path string, data string, mode fs.FileMode) string {
	t.Helper()
	os.Remove(path) // an earlier one may be read-only
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantErr(t testing.TB, err, want error, hints ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
	for _, hint := range hints {
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("error %q does not say %q", err, hint)
		}
	}
}

func wantMode(t testing.TB, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("mode of %s is %04o, want %04o", path, got, want)
	}
}

func wantAlone(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(names) {
		t.Fatalf("%s holds %v, want %v", dir, entries, names)
	}
	for i, entry := range entries {
		if entry.Name() != names[i] {
			t.Errorf("%s holds %v, want %v", dir, entries, names)
		}
	}
}

func TestWriteSecretIsPrivateWholeAndAlone(t *testing.T) {
	dir := folder(t)
	before := syscall.Umask(0) // the modes do not depend on it
	path := filepath.Join(dir, "a", "b", "secret")
	err := WriteSecret(path, []byte("data"))
	syscall.Umask(before)
	if err != nil {
		t.Fatal(err)
	}
	wantMode(t, path, 0o600)
	wantMode(t, filepath.Join(dir, "a"), 0o700)
	wantMode(t, filepath.Join(dir, "a", "b"), 0o700)
	wantAlone(t, filepath.Dir(path), "secret")
	got, err := ReadSecret(path)
	if err != nil || string(got) != "data" {
		t.Fatalf("read %q, %v", got, err)
	}
}

func TestWriteSecretNeverOverwrites(t *testing.T) {
	dir := folder(t)
	file := mustWrite(t, filepath.Join(dir, "file"), "old", 0o600)
	wantErr(t, WriteSecret(file, []byte("new")), ErrExists, file)
	if got, _ := os.ReadFile(file); string(got) != "old" {
		t.Errorf("the file now holds %q", got)
	}
	for name, target := range map[string]string{"link": file, "dangling": filepath.Join(dir, "nowhere")} {
		link := filepath.Join(dir, name)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		wantErr(t, WriteSecret(link, []byte("new")), ErrExists)
	}
	wantAlone(t, dir, "dangling", "file", "link")
}

func TestWriteSecretHasOneWinner(t *testing.T) {
	path := filepath.Join(folder(t), "secret")
	const writers = 16
	results := make([]error, writers)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() { results[i] = WriteSecret(path, bytes.Repeat([]byte{byte('a' + i)}, 5000)) })
	}
	all.Wait()
	winner := -1
	for i, err := range results {
		switch {
		case err == nil && winner < 0:
			winner = i
		case err == nil:
			t.Fatalf("writers %d and %d both succeeded", winner, i)
		default:
			wantErr(t, err, ErrExists)
		}
	}
	got, err := ReadSecret(path)
	if err != nil || winner < 0 || !bytes.Equal(got, bytes.Repeat([]byte{byte('a' + winner)}, 5000)) {
		t.Fatalf("the winner is %d, the file starts with %.3q, error %v", winner, got, err)
	}
	wantAlone(t, filepath.Dir(path), "secret")
}

func TestReadSecretRefusesExposedFiles(t *testing.T) {
	dir := folder(t)
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o610, 0o644, 0o666, 0o601} {
		path := mustWrite(t, filepath.Join(dir, "secret"), "hush", mode)
		_, err := ReadSecret(path)
		wantErr(t, err, ErrExposed, "chmod 600 "+path)
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("the error holds the secret: %v", err)
		}
	}
	for _, mode := range []fs.FileMode{0o600, 0o400, 0o700} {
		if _, err := ReadSecret(mustWrite(t, filepath.Join(dir, "secret"), "hush", mode)); err != nil {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	// What counts is the file behind a symbolic link.
	link := filepath.Join(dir, "link")
	if err := os.Symlink("secret", link); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSecret(link); err != nil {
		t.Errorf("through a link: %v", err)
	}
	os.Chmod(filepath.Join(dir, "secret"), 0o644)
	_, err := ReadSecret(link)
	wantErr(t, err, ErrExposed)
}

func TestReadSecretRefusesWhatIsNoSecretFile(t *testing.T) {
	dir := folder(t)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, "/dev/null"} { // the pipe has no writer: waiting would hang
		if _, err := ReadSecret(path); err == nil || !strings.Contains(err.Error(), "regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err := ReadSecret(filepath.Join(dir, "nowhere"))
	wantErr(t, err, fs.ErrNotExist)
	_, err = ReadSecret(mustWrite(t, filepath.Join(dir, "big"), strings.Repeat("x", secretLimit_bytes+1), 0o600))
	wantErr(t, err, ErrDamaged)
}
