package salvage

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// temporary are the beginnings of the names that git gives to objects and packs which
// it has not written to the end.
var temporary = []string{"tmp_obj_", "tmp_pack_", "tmp_idx_"}

// sweep removes what a git that failed since then has left half written: on a full disk
// that is what fills it. Errors are dropped, because the failure itself is told.
func (t *tree) sweep(since time.Time) {
	since = since.Add(-time.Second) // file systems count in steps
	for _, begin := range temporary {
		names, _ := filepath.Glob(filepath.Join(globbed(t.objects()), "*", begin+"*"))
		for _, name := range names {
			if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && info.ModTime().After(since) {
				_ = os.Remove(name)
			}
		}
	}
}

// objects is where the repository keeps its objects, gitrepository-layout(5). Work trees
// share those of the repository that they belong to.
func (t *tree) objects() string {
	common, err := os.ReadFile(filepath.Join(t.dir, "commondir"))
	if err != nil {
		return filepath.Join(t.dir, "objects")
	}
	dir := strings.TrimSuffix(string(common), "\n")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(t.dir, dir)
	}
	return filepath.Join(dir, "objects")
}

// globbed is a path as a pattern of itself.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
