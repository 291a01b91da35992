package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/banksman/banksman/services/internal/site"
)

// A backup of a stranger writes nowhere but where a backup's files lie.
func TestNothingIsWrittenElsewhere(t *testing.T) {
	l := site.Layout{Dir: "/site"}
	for name, want := range map[string]string{
		"site/banksman.toml": "/site/banksman.toml", "site/keys/root.sign": "/site/keys/root.sign",
		"logs/epoch-1/raw.log": "/site/state/audit/log/raw.log", "logs/epoch-12/checkpoint": "/site/state/audit/epoch-12/checkpoint",
		"streams/BANKSMAN_OUTPUT": "/site/state/BANKSMAN_OUTPUT.archive",
	} {
		if got, err := place(l, name); err != nil || got != want {
			t.Errorf("%s lies at %s, %v", name, got, err)
		}
	}
	for _, name := range []string{
		"", "site", "site/", "site/..", "site/../x", "site//etc/x", "/etc/passwd", "site/keys/../../../x", "site/state/bus/x", "site/run/x", "site/state",
		"logs/epoch-1/hashes", "logs/epoch-0/raw.log", "logs/epoch-1/../raw.log", "logs/raw.log", "streams/BANKSMAN", "streams/x", "else/x", "manifest.json",
	} {
		if got, err := place(l, name); !errors.Is(err, errName) {
			t.Errorf("%q lies at %s, %v", name, got, err)
		}
	}
}

// Whatever the file is, an archive that no backup made is refused by name.
func TestStrangersFileIsRefused(t *testing.T) {
	for name, fill := range map[string]func(*tar.Writer){
		"empty": func(*tar.Writer) {},
		"a link": func(w *tar.Writer) {
			add(t, w, tar.Header{Name: "site/x", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}, "")
		},
		"a way up": func(w *tar.Writer) { add(t, w, tar.Header{Name: "site/../../x", Typeflag: tar.TypeReg}, "x") },
		"twice": func(w *tar.Writer) {
			add(t, w, tar.Header{Name: "site/x", Typeflag: tar.TypeReg}, "x")
			add(t, w, tar.Header{Name: "site/x", Typeflag: tar.TypeReg}, "y")
		},
		"nothing says what is in it": func(w *tar.Writer) {
			add(t, w, tar.Header{Name: "site/x", Typeflag: tar.TypeReg}, "x")
			add(t, w, tar.Header{Name: manifestName, Typeflag: tar.TypeReg}, `{"format":"`+format+`","epoch":0}`)
		},
		"more behind the manifest": func(w *tar.Writer) {
			add(t, w, tar.Header{Name: manifestName, Typeflag: tar.TypeReg}, `{"format":"`+format+`","epoch":0}`)
			add(t, w, tar.Header{Name: "site/x", Typeflag: tar.TypeReg}, "x")
		},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		fill(w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		from := filepath.Join(dir, "backup")
		if err := os.WriteFile(from, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Unpack(t.Context(), from, site.Layout{Dir: filepath.Join(dir, "site")}); !errors.Is(err, ErrSpoilt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func add(t *testing.T, w *tar.Writer, h tar.Header, content string) {
	t.Helper()
	h.Size = int64(len(content))
	if err := w.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
}
