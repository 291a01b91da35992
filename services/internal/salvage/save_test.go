package salvage_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/salvage"
)

// dirty changes one file, deletes another and adds some that are hard to name.
func (g *ground) dirty(dir string) map[string]string {
	g.t.Helper()
	g.write(dir+"/a.txt", "changed\n")
	g.must(os.Remove(g.path(dir, "sub", "b.txt")))
	want := map[string]string{"a.txt": "changed\n"}
	for name, text := range map[string]string{
		"new file.txt": "spaces\n", "line\nbreak": "newline\n", "-rf": "dash\n", ":(top)x": "magic\n", "ünï/çödé": "utf-8\n", "empty": "", "deep/er/file": "deep\n", "*": "star\n",
	} {
		g.write(dir+"/"+name, text)
		want[name] = text
	}
	g.write(dir+"/run.sh", "#!/bin/sh\n")
	g.must(os.Chmod(g.path(dir, "run.sh"), 0o755))
	g.must(os.Symlink("nowhere", g.path(dir, "dangling")))
	want["run.sh"], want["dangling"] = "x #!/bin/sh\n", "-> nowhere"
	return want
}

// Whatever state a repository is in, everything is kept and nothing of the
// user's is touched.
func TestEverythingIsKeptAndNothingIsTouched(t *testing.T) {
	for name, c := range map[string]struct {
		dir  string
		make func(g *ground)
		also map[string]string // further content of the salvage
		base bool              // a commit is checked out
	}{
		"plain":         {"r", func(g *ground) { g.repo("r") }, nil, true},
		"detached head": {"r", func(g *ground) { g.repo("r"); g.git("r", "checkout", "-q", "--detach") }, nil, true},
		"unborn branch": {"r", func(g *ground) {
			g.repo("r")
			g.must(os.RemoveAll(g.path("r", ".git")))
			g.git("r", "init", "-q")
		}, nil, false},
		"unborn branch, staged": {"r", func(g *ground) {
			g.repo("r")
			g.must(os.RemoveAll(g.path("r", ".git")))
			g.git("r", "init", "-q")
			g.git("r", "add", "a.txt")
		}, nil, false},
		"linked work tree": {"w", func(g *ground) { g.repo("r"); g.git("r", "worktree", "add", "-q", "../w") }, nil, true},
		"submodule": {"r/mod", func(g *ground) {
			g.repo("lib")
			g.repo("r")
			g.git("r", "submodule", "--quiet", "add", "../lib", "mod")
		}, nil, true},
		"locked index":  {"r", func(g *ground) { g.repo("r"); g.write("r/.git/index.lock", "held") }, nil, true},
		"lost index":    {"r", func(g *ground) { g.repo("r"); g.must(os.Remove(g.path("r", ".git", "index"))) }, nil, true},
		"broken index":  {"r", func(g *ground) { g.repo("r"); g.write("r/.git/index", "DIRC nonsense") }, nil, true},
		"split index":   {"r", func(g *ground) { g.repo("r"); g.git("r", "update-index", "--split-index") }, nil, true},
		"a stash":       {"r", func(g *ground) { g.repo("r"); g.write("r/a.txt", "s\n"); g.git("r", "stash", "-q") }, nil, true},
		"staged change": {"r", func(g *ground) { g.repo("r"); g.write("r/c.txt", "c\n"); g.git("r", "add", "c.txt") }, map[string]string{"c.txt": "c\n"}, true},
		"sparse checkout": {"r", func(g *ground) {
			g.repo("r")
			g.write("r/far/away.txt", "far\n")
			g.git("r", "add", "-A")
			g.git("r", "commit", "-qm", "far")
			g.git("r", "sparse-checkout", "set", "--no-cone", "/*", "!/far/")
		}, map[string]string{"far/away.txt": "far\n"}, true},
		"merge with a conflict": {"r", func(g *ground) {
			g.repo("r")
			g.git("r", "checkout", "-qb", "side")
			g.write("r/c.txt", "side\n")
			g.git("r", "add", "-A")
			g.git("r", "commit", "-qm", "side")
			g.git("r", "checkout", "-q", "main")
			g.write("r/c.txt", "main\n")
			g.git("r", "add", "-A")
			g.git("r", "commit", "-qm", "main")
			if _, err := g.try("r", "merge", "-q", "side"); err == nil {
				g.t.Fatal("no conflict")
			}
			g.write("r/c.txt", "half resolved\n")
		}, map[string]string{"c.txt": "half resolved\n"}, true},
		"no identity": {"r", func(g *ground) { g.repo("r"); g.git("r", "config", "user.useConfigOnly", "true") }, nil, true},
		"signing that hangs": {"r", func(g *ground) {
			g.repo("r")
			g.write("gpg", "#!/bin/sh\nsleep 600\n")
			g.must(os.Chmod(g.path("gpg"), 0o755))
			g.git("r", "config", "commit.gpgsign", "true")
			g.git("r", "config", "gpg.program", g.path("gpg"))
		}, nil, true},
		"hooks and monitor": {"r", func(g *ground) {
			g.repo("r")
			g.write("trap", "#!/bin/sh\ntouch "+g.path("ran")+"\nexit 1\n")
			g.must(os.Chmod(g.path("trap"), 0o755))
			for _, h := range []string{"pre-commit", "reference-transaction", "post-index-change", "fsmonitor-watchman"} {
				g.must(os.Symlink(g.path("trap"), g.path("r", ".git", "hooks", h)))
			}
			g.git("r", "config", "core.hooksPath", g.path("r", ".git", "hooks"))
			g.git("r", "config", "core.fsmonitor", g.path("trap"))
			g.git("r", "config", "alias.add", "!"+g.path("trap"))
			g.must(os.RemoveAll(g.path("ran")))
		}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			c.make(g)
			want := g.dirty(c.dir)
			for path, text := range c.also {
				want[path] = text
			}
			before := g.owned(".")
			s, err := g.save(c.dir, "demo-1")
			if err != nil {
				t.Fatal(err)
			}
			g.untouched(".", before)
			g.must(os.RemoveAll(g.path(c.dir, "no-such")))
			if _, err := os.Stat(g.path("ran")); err == nil {
				t.Error("a program of the repository ran")
			}
			if s.Ref != "refs/banksman/salvage/demo/demo-1" || s.Base == "" == c.base || s.Missed != 0 {
				t.Errorf("%+v", s)
			}
			g.must(os.RemoveAll(g.path("r", ".git", "index.lock")))
			if got := g.git(c.dir, "rev-parse", s.Ref); got != s.Commit {
				t.Errorf("the ref names %s, want %s", got, s.Commit)
			}
			compare(t, g.restored(c.dir, s), want)
		})
	}
}

func compare(t *testing.T, got, want map[string]string) {
	t.Helper()
	for path, text := range want {
		if got[path] != text {
			t.Errorf("%q holds %q, want %q", path, got[path], text)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok && !slices.Contains([]string{".gitmodules", "mod"}, path) {
			t.Errorf("%q is kept, which was not to be", path)
		}
	}
}

func TestNothingToKeep(t *testing.T) {
	g := newGround(t)
	g.repo("clean")
	g.must(os.Mkdir(g.path("plain"), 0o755))
	g.must(os.Mkdir(g.path("fresh"), 0o755))
	g.git("fresh", "init", "-q")
	g.git(".", "init", "-q", "--bare", "bare.git")
	g.must(os.Chtimes(g.path("clean", "a.txt"), timeLater, timeLater))
	for _, dir := range []string{"clean", "clean/sub", "plain", "fresh", "bare.git"} {
		if s, err := g.save(dir, "demo-1"); err != nil || s != (salvage.Saved{}) {
			t.Errorf("%s: %+v, %v", dir, s, err)
		}
	}
	if got := g.git("clean", "for-each-ref", "refs/banksman"); got != "" {
		t.Errorf("refs %q", got)
	}
}

func TestIgnoredFilesAreNotKept(t *testing.T) {
	g := newGround(t)
	g.repo("r")
	g.write("home/.config/git/ignore", "*.swp\n")
	g.write("r/.gitignore", ".env\nnode_modules/\n")
	g.write("r/sub/.gitignore", "*.log\n")
	for _, path := range []string{".env", "node_modules/x/y", "sub/a.log", "z.swp"} {
		g.write("r/"+path, "secret\n")
	}
	g.write("r/sub/kept", "kept\n")
	s, err := g.save("r", "demo-1")
	if err != nil || s.Files != 3 {
		t.Fatalf("%+v, %v", s, err)
	}
	compare(t, g.restored("r", s), map[string]string{
		"a.txt": "a\n", "sub/b.txt": "b\n", ".gitignore": ".env\nnode_modules/\n", "sub/.gitignore": "*.log\n", "sub/kept": "kept\n",
	})
	if s.Bytes != int64(len(".env\nnode_modules/\n*.log\nkept\n")) {
		t.Errorf("%d bytes", s.Bytes)
	}
}

func TestNestedRepositoriesAreNamedOnly(t *testing.T) {
	g := newGround(t)
	g.repo("r")
	g.repo("r/nested")
	g.write("r/nested/dirty", "x\n")
	g.must(os.Mkdir(g.path("r", "unborn"), 0o755))
	g.git("r/unborn", "init", "-q")
	g.write("r/unborn/file", "x\n")
	g.write("r/kept", "kept\n")
	before := g.owned("r")
	s, err := g.save("r", "demo-1")
	if err != nil || s.Nested != 1 || s.Missed != 1 || s.Files != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	g.untouched("r", before)
}

func TestARefIsWrittenOnceAndTheSameContentIsKeptOnce(t *testing.T) {
	g := newGround(t)
	g.repo("r")
	g.write("r/x", "1\n")
	first, err := g.save("r", "demo-9")
	g.must(err)
	again, err := g.save("r", "demo-9")
	if err != nil || !again.Before || again.Commit != first.Commit || again.Files != first.Files || again.Bytes != first.Bytes {
		t.Errorf("again %+v, %v", again, err)
	}
	if same, err := g.save("r", "demo-10"); err != nil || same != (salvage.Saved{}) {
		t.Errorf("unchanged leftovers are kept again: %+v, %v", same, err)
	}
	g.write("r/x", "2\n")
	if other, err := g.save("r", "demo-9"); err != nil || other.Commit != first.Commit {
		t.Errorf("the ref of a round was overwritten: %+v, %v", other, err)
	}
	second, err := g.save("r", "demo-11")
	if err != nil || second.Commit == first.Commit || g.git("r", "show", second.Ref+":x") != "2" || g.git("r", "show", first.Ref+":x") != "1" {
		t.Errorf("%+v, %v", second, err)
	}
	g.write("r/x", "1\n")
	if back, err := g.save("r", "demo-12"); err != nil || back.Ref == "" {
		t.Errorf("what was kept two rounds ago is not kept now: %+v, %v", back, err)
	}
	if log := g.git("r", "reflog", "show", first.Ref); strings.Count(log, "\n") != 0 || !strings.Contains(log, "banksman salvage") {
		t.Errorf("reflog %q", log)
	}
	g.git("r", "gc", "-q", "--prune=now")
	if g.git("r", "show", first.Ref+":x") != "1" {
		t.Error("gc took what was kept")
	}
}

func TestForeignVariablesAndTreesAreLeftAlone(t *testing.T) {
	g := newGround(t)
	g.repo("r")
	g.repo("decoy")
	g.write("r/x", "x\n")
	t.Setenv("GIT_DIR", g.path("decoy", ".git"))
	t.Setenv("GIT_WORK_TREE", g.path("decoy"))
	t.Setenv("GIT_INDEX_FILE", g.path("decoy", ".git", "index"))
	before := g.owned("decoy")
	s, err := g.save("r", "demo-1")
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		g.must(os.Unsetenv(name))
	}
	if err != nil || g.git("r", "show", s.Ref+":x") != "x" {
		t.Errorf("%+v, %v", s, err)
	}
	g.untouched("decoy", before)
	// A repository whose configuration points at other files keeps nothing.
	g.write("keys/secret", "secret\n")
	g.git("r", "config", "core.worktree", g.path("keys"))
	var f *salvage.Failure
	if _, err := g.save("r", "demo-2"); !errors.As(err, &f) || f.Code != salvage.CodeForeign {
		t.Errorf("%v", err)
	}
}

func TestFailuresAreNeverNothing(t *testing.T) {
	g := newGround(t)
	g.repo("r")
	g.write("r/x", "x\n")
	refuses := func(name string) func(*salvage.Order) {
		return func(o *salvage.Order) {
			o.Git = func(ctx context.Context, c salvage.Command) (int, error) {
				if slices.Contains(c.Args, name) {
					c.Stderr.Write([]byte("fatal: no room\n"))
					return 128, nil
				}
				return salvage.Direct(ctx, c)
			}
		}
	}
	for _, step := range []string{"--show-toplevel", "--is-inside-work-tree", "add", "write-tree", "commit-tree", "update-ref", "diff-tree", "cat-file", "for-each-ref"} {
		before := g.owned("r")
		_, err := g.save("r", "demo-1", refuses(step))
		var f *salvage.Failure
		if !errors.As(err, &f) || f.Code != salvage.CodeGit || !strings.Contains(err.Error(), "no room") {
			t.Errorf("%s: %v", step, err)
		}
		g.untouched("r", before)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var f *salvage.Failure
	if _, err := salvage.Save(ended, salvage.Order{Dir: g.path("r"), Project: "demo", Round: "demo-1"}); !errors.As(err, &f) || f.Code != salvage.CodeTime {
		t.Errorf("%v", err)
	}
	if _, err := g.save("gone", "demo-1"); !errors.As(err, &f) || f.Code != salvage.CodeMissing {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", filepath.Join(g.dir, "nothing"))
	if _, err := g.save("r", "demo-1"); !errors.As(err, &f) || f.Code != salvage.CodeNoGit {
		t.Errorf("%v", err)
	}
}
