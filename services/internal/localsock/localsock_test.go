package localsock

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLongAndShortPaths(t *testing.T) {
	for _, depth := range []int{1, 60} {
		path := filepath.Join(t.TempDir(), strings.Repeat("deep/", depth), "a.sock")
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err == nil {
				io.WriteString(c, "hello")
				c.Close()
			}
			c, err = l.Accept() // the second Listen's question
			if err == nil {
				c.Close()
			}
		}()
		c, err := Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(c)
		if string(got) != "hello" {
			t.Errorf("read %q", got)
		}
		if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
			t.Errorf("socket mode %v, want 0600", info.Mode())
		}
		if _, err := Listen(path); !errors.Is(err, ErrInUse) {
			t.Errorf("second Listen: %v, want ErrInUse", err)
		}
		l.Close()
		if _, err := os.Lstat(path); err == nil {
			t.Error("Close left the socket behind")
		}
		if _, err := Dial(context.Background(), path); !Gone(err) {
			t.Errorf("dial after close: %v, want Gone", err)
		}
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*listener).Listener.Close() // as a killed process leaves it
	l, err = Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
