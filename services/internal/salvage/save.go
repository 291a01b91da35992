package salvage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// RefPrefix begins every private ref.
const RefPrefix = "refs/banksman/salvage/"

// Ref is the private ref of a round.
func Ref(project, round string) string { return RefPrefix + project + "/" + round }

// Order says what to keep and where.
type Order struct {
	Dir     string // absolute folder in the work tree; the whole tree is kept
	Project string
	Round   string
	Message string // of the commit
	Now     time.Time
	Git     Run // nil for Direct
}

// Saved is what was kept. Its zero value says that there was nothing to keep.
type Saved struct {
	Ref    string
	Commit string
	Base   string // the commit that was checked out, empty for none
	Files  int    // paths that differ from Base
	Bytes  int64  // size of their content
	Nested int    // repositories inside that differ and are named only
	Missed int    // paths that git could not read
	Before bool   // the ref was there already: the round was salvaged before
}

// Failure is why nothing was kept.
type Failure struct {
	Code string // stable, see the constants
	Dir  string
	Err  error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("salvage %s: %v; the files lie where the agent left them", f.Dir, f.Err)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Codes of failures.
const (
	CodeTime    = "time_limit"
	CodeGit     = "git_failed"    // git refused
	CodeNoGit   = "git_missing"   // git could not be executed
	CodeForeign = "foreign_tree"  // the repository's tree is not the folder's
	CodeFiles   = "files_failed"  // temporary files could not be made
	CodeOwner   = "other_owner"   // the repository belongs to another user
	CodeMissing = "no_work_dir"   // the folder is gone
	CodeHeld    = "ref_elsewhere" // the ref exists and names other content
)

// Save keeps what is left in the work tree. Without a repository, and when
// nothing differs from what is checked out, it returns the zero Saved. What
// the newest ref of the project holds already, on the same base, is not kept
// twice.
func Save(ctx context.Context, o Order) (Saved, error) {
	if o.Git == nil {
		o.Git = Direct
	}
	s, err := save(ctx, o)
	if err == nil {
		return s, nil
	}
	var f *Failure
	if errors.As(err, &f) {
		return Saved{}, f
	}
	f = &Failure{Code: CodeGit, Dir: o.Dir, Err: err}
	exit, ok := refused(err)
	switch {
	case ctx.Err() != nil:
		f.Code = CodeTime
	case !ok:
		f.Code = CodeNoGit
	case strings.Contains(exit.Stderr, "dubious ownership"):
		f.Code = CodeOwner
	}
	return Saved{}, f
}

func save(ctx context.Context, o Order) (Saved, error) {
	found, err := repository(o.Dir)
	if err != nil || !found {
		return Saved{}, err
	}
	g := newGit(o.Git, o.Dir, o.Now)
	t, err := find(ctx, g, o.Dir)
	if err != nil || t == nil || t.clean(ctx) {
		return Saved{}, err
	}
	if err := t.checkedOut(ctx); err != nil {
		return Saved{}, err
	}
	tmp, err := os.MkdirTemp("", "banksman-salvage-")
	if err != nil {
		return Saved{}, &Failure{CodeFiles, o.Dir, err}
	}
	defer os.RemoveAll(tmp)
	began := time.Now()
	saved, err := t.keep(ctx, o, filepath.Join(tmp, "index"))
	if err != nil {
		t.sweep(began)
	}
	return saved, err
}

// repository says whether a folder lies in a git work tree, without git: only
// so can a refusal of git be told from there being none.
func repository(dir string) (bool, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return false, &Failure{CodeMissing, dir, errors.Join(errors.New("the folder is not there"), err)}
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if at == filepath.Dir(at) {
			return false, nil
		}
	}
}

// tree is a work tree whose repository is known.
type tree struct {
	g    *git
	top  string
	dir  string // the repository's own folder for this work tree
	head string // commit that is checked out, empty for none
	base string // its tree, or the empty one
}

// find asks git for the work tree and binds every later call to it. A bare
// repository has none and nothing to keep.
func find(ctx context.Context, g *git, dir string) (*tree, error) {
	t := &tree{g: g}
	said, err := g.line(ctx, "rev-parse", "--is-inside-work-tree", "--is-bare-repository", "--show-toplevel", "--absolute-git-dir")
	lines := strings.Split(said, "\n")
	switch {
	case len(lines) > 1 && lines[0] == "false" && lines[1] == "true":
		return nil, nil
	case len(lines) > 1 && lines[0] == "false":
		return nil, &Failure{CodeForeign, dir, errors.New("the repository says that its files lie elsewhere")}
	case err != nil:
		return nil, err
	case len(lines) == 4:
		t.top, t.dir = lines[2], lines[3]
	default: // a path holds a line break
		if t.top, err = g.line(ctx, "rev-parse", "--show-toplevel"); err != nil {
			return nil, err
		}
		if t.dir, err = g.line(ctx, "rev-parse", "--absolute-git-dir"); err != nil {
			return nil, err
		}
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || real != t.top && !strings.HasPrefix(real, strings.TrimSuffix(t.top, "/")+"/") {
		return nil, &Failure{CodeForeign, dir, fmt.Errorf("the repository says that its files lie in %s", t.top)}
	}
	g.dir = t.top
	g.with("GIT_DIR="+t.dir, "GIT_WORK_TREE="+t.top)
	return t, nil
}

// clean says whether nothing differs from what is checked out. It is one call
// where keeping is many; a repository that it cannot judge is not clean.
func (t *tree) clean(ctx context.Context) bool {
	var out head
	err := t.g.stream(ctx, nil, &out, "status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none")
	return err == nil && out.b.Len() == 0
}

// checkedOut reads the commit that is checked out, and its tree.
func (t *tree) checkedOut(ctx context.Context) error {
	said, err := t.g.line(ctx, "rev-parse", "--revs-only", "HEAD^{commit}", "HEAD^{tree}")
	if err != nil {
		return err
	}
	commit, base, ok := strings.Cut(said, "\n")
	if t.head, t.base = commit, base; !ok {
		t.head = ""
		t.base, err = t.emptyTree(ctx)
	}
	return err
}

// copyIndex starts from the user's index, so that sparse checkouts stay
// sparse and unchanged files need not be read. Its modification time says
// which entries git must look at again, so it is kept.
func (t *tree) copyIndex(to string) (copied bool, err error) {
	from, err := os.Open(filepath.Join(t.dir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return false, err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(out, from)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	return err == nil, err
}

// keep makes the commit and its ref.
func (t *tree) keep(ctx context.Context, o Order, index string) (Saved, error) {
	t.g.with("GIT_INDEX_FILE=" + index)
	now, missed, err := t.snapshot(ctx, index)
	if err != nil {
		return Saved{}, err
	}
	if now == t.base {
		return Saved{}, nil
	}
	s := Saved{Ref: Ref(o.Project, o.Round), Base: t.head, Missed: missed}
	if done, err := t.before(ctx, o, now, &s); err != nil || done {
		return s, err
	}
	args := []string{"commit-tree", now, "-m", o.Message}
	if t.head != "" {
		args = append(args, "-p", t.head)
	}
	if s.Commit, err = t.g.line(ctx, args...); err != nil {
		return Saved{}, err
	}
	if err := t.count(ctx, t.base, now, &s); err != nil {
		return Saved{}, err
	}
	return s, t.g.stream(ctx, nil, io.Discard, "update-ref", "--create-reflog", "-m", "banksman salvage", s.Ref, s.Commit, "")
}

// before looks at what was kept earlier: this round's own ref, or the same
// content under the project's newest one. Done says that nothing is left to do.
func (t *tree) before(ctx context.Context, o Order, now string, s *Saved) (done bool, err error) {
	list, err := t.g.line(ctx, "for-each-ref", "--count=1", "--sort=-version:refname", "--format=%(refname) %(tree) %(parent)", RefPrefix+o.Project+"/")
	if err != nil {
		return false, err
	}
	newest := strings.Fields(list)
	same := len(newest) > 1 && newest[1] == now && strings.Join(newest[2:], " ") == t.head
	if same && newest[0] != s.Ref {
		*s = Saved{}
		return true, nil
	}
	commit, err := t.g.line(ctx, "rev-parse", "--verify", "--quiet", s.Ref+"^{commit}")
	if err != nil {
		if _, ok := refused(err); ok {
			return false, nil
		}
		return false, err
	}
	base, err := t.g.line(ctx, "rev-parse", "--verify", "--quiet", commit+"^1^{commit}")
	if err != nil {
		if _, ok := refused(err); !ok {
			return false, err
		}
		base = ""
	}
	s.Commit, s.Base, s.Before = commit, base, true
	from := base
	if from == "" {
		if from, err = t.emptyTree(ctx); err != nil {
			return false, err
		}
	}
	return true, t.count(ctx, from, commit, s)
}
