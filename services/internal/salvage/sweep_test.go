package salvage

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Only what git names as temporary and has begun meanwhile is swept, in the folder that
// the work trees of a repository share.
func TestSweepTakesWhatIsHalfWritten(t *testing.T) {
	root := t.TempDir()
	linked := filepath.Join(root, "[repo]", "worktrees", "other")
	objects := filepath.Join(root, "[repo]", "objects")
	since := time.Now()
	files := map[string]bool{ // whether it stays
		"77/tmp_obj_a":    false,
		"pack/tmp_pack_b": false,
		"pack/tmp_idx_c":  false,
		"77/tmp_obj_old":  true,
		"77/3ad6b2e6f1c9a7e0d5b4c3a2918f7e6d5c4b3a": true,
		"pack/pack-1.pack":                          true,
	}
	for name := range files {
		path := filepath.Join(objects, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	old := since.Add(-time.Minute)
	if err := os.Chtimes(filepath.Join(objects, "77/tmp_obj_old"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(linked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(linked, "commondir"), []byte("../..\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	(&tree{dir: linked}).sweep(since)
	for name, stays := range files {
		if _, err := os.Stat(filepath.Join(objects, name)); (err == nil) != stays {
			t.Errorf("%s: %v, want it to stay: %v", name, err, stays)
		}
	}
}
