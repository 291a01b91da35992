package salvage_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/salvage"
)

// ground is a folder of repositories. Tests run the real git as the user
// would; what the user owns is compared byte for byte.
type ground struct {
	t   *testing.T
	dir string
}

// timeLater makes git look at a file again.
var timeLater = time.Unix(1780000000, 0)

func newGround(t *testing.T) *ground {
	t.Helper()
	need.Program(t, "git")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	return &ground{t: t, dir: dir}
}

func (g *ground) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) path(parts ...string) string {
	return filepath.Join(append([]string{g.dir}, parts...)...)
}

// try runs git as the user.
func (g *ground) try(dir string, args ...string) (string, error) {
	g.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=User", "-c", "user.email=user@example.org", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = g.path(dir)
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

func (g *ground) git(dir string, args ...string) string {
	g.t.Helper()
	out, err := g.try(dir, args...)
	if err != nil {
		g.t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return out
}

func (g *ground) write(path, text string) {
	g.t.Helper()
	g.must(os.MkdirAll(filepath.Dir(g.path(path)), 0o755))
	g.must(os.WriteFile(g.path(path), []byte(text), 0o644))
}

// repo makes a repository with two files and a commit.
func (g *ground) repo(dir string) {
	g.t.Helper()
	g.write(dir+"/a.txt", "a\n")
	g.write(dir+"/sub/b.txt", "b\n")
	g.git(dir, "init", "-q", "-b", "main")
	g.git(dir, "add", "-A")
	g.git(dir, "commit", "-qm", "first")
}

func (g *ground) save(dir, round string, change ...func(*salvage.Order)) (salvage.Saved, error) {
	g.t.Helper()
	o := salvage.Order{Dir: g.path(dir), Project: "demo", Round: round, Message: "leftovers", Now: time.Unix(1770000000, 0)}
	for _, f := range change {
		f(&o)
	}
	return salvage.Save(g.t.Context(), o)
}

// owned is everything below a folder that belongs to the user: files with
// mode, content and modification time, links, and all of .git but objects and
// what salvage may add.
func (g *ground) owned(dir string) map[string]string {
	g.t.Helper()
	out := map[string]string{}
	root := g.path(dir)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		inGit := strings.Contains("/"+rel, "/.git/")
		if d.IsDir() && inGit && (d.Name() == "objects" || d.Name() == "banksman") {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if !inGit { // the folders of refs and reflogs may be new
				out[rel] = info.Mode().String()
			}
		case strings.HasPrefix(d.Name(), "sharedindex."):
			out[rel] = "" // git renews its time whenever it is read, so that nobody cleans it up
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			out[rel] = "link " + to
			return err
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			out[rel] = fmt.Sprintf("%s %x %s", info.Mode(), sha256.Sum256(text), info.ModTime())
			return err
		default:
			out[rel] = info.Mode().String()
		}
		return nil
	})
	g.must(err)
	return out
}

// untouched compares what the user owns with what it was.
func (g *ground) untouched(dir string, before map[string]string) {
	g.t.Helper()
	after := g.owned(dir)
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if after[path] != before[path] {
			g.t.Errorf("%s was changed: %s, was %s", path, after[path], before[path])
		}
	}
	for path := range after {
		if _, was := before[path]; !was {
			g.t.Errorf("%s was added", path)
		}
	}
}

// restored checks a salvage out elsewhere and returns its files by path.
func (g *ground) restored(dir string, s salvage.Saved) map[string]string {
	g.t.Helper()
	to := g.t.TempDir()
	g.git(dir, "--work-tree="+to, "-c", "core.bare=false", "read-tree", "--index-output="+filepath.Join(to, "..index"), s.Commit)
	index := "GIT_INDEX_FILE=" + filepath.Join(to, "..index")
	cmd := exec.Command("git", "--work-tree="+to, "checkout-index", "-a", "--prefix="+to+"/tree/")
	cmd.Dir, cmd.Env = g.path(dir), append(os.Environ(), index)
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("restore: %v\n%s", err, out)
	}
	out := map[string]string{}
	root := filepath.Join(to, "tree")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			out[rel] = "-> " + to
			return err
		}
		text, err := os.ReadFile(path)
		out[rel] = string(text)
		if info.Mode()&0o100 != 0 {
			out[rel] = "x " + out[rel]
		}
		return err
	})
	g.must(err)
	return out
}
