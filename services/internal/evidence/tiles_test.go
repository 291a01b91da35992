package evidence

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	modtlog "golang.org/x/mod/sumdb/tlog"

	"github.com/banksman/banksman/services/internal/tlog"
)

// TestTilesAreTheLog reads a tiled copy the way a stranger does: the checkpoint's root
// is recomputed from the tiles alone, and the entries hash to the lowest of them.
func TestTilesAreTheLog(t *testing.T) {
	y := newYard(t)
	for i := range 600 {
		y.propose(fmt.Sprintf("job-%d", i))
	}
	dir := filepath.Join(t.TempDir(), "tiles")
	done, err := WriteTiles(t.Context(), y.seal(), dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	_, cp, err := tlog.ParseCheckpoint(b)
	if err != nil {
		t.Fatal(err)
	}
	if done.Size != 602 || cp.Size != 602 || done.Files != 8 {
		t.Errorf("%+v", done)
	}
	read := tileReader{dir}
	tree := modtlog.Tree{N: cp.Size, Hash: modtlog.Hash(cp.Root)}
	root, err := modtlog.TreeHash(cp.Size, modtlog.TileHashReader(tree, read))
	if err != nil || root != tree.Hash {
		t.Errorf("the tiles lead to %v, %v", root, err)
	}
	hashes, err := modtlog.TileHashReader(tree, read).ReadHashes([]int64{modtlog.StoredHashIndex(0, 300)})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadFile(filepath.Join(dir, "tile", "entries", "001"))
	if err != nil {
		t.Fatal(err)
	}
	for range 300 - 256 {
		entries = entries[2+(int(entries[0])<<8|int(entries[1])):]
	}
	if n := int(entries[0])<<8 | int(entries[1]); modtlog.RecordHash(entries[2:2+n]) != hashes[0] {
		t.Error("entry 300 is not leaf 300")
	}
	if _, err := WriteTiles(t.Context(), y.seal(), dir); err == nil {
		t.Error("a folder that is there was overwritten")
	}
}

// tileReader is modtlog.TileReader over a folder.
type tileReader struct{ dir string }

func (r tileReader) Height() int { return 8 }

func (r tileReader) ReadTiles(tiles []modtlog.Tile) (out [][]byte, err error) {
	for _, t := range tiles {
		b, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(tilePath(fmt.Sprint(t.L), t.N, t.W))))
		if err != nil {
			return nil, err
		}
		out = append(out, bytes.Clone(b))
	}
	return out, nil
}

func (r tileReader) SaveTiles([]modtlog.Tile, [][]byte) {}

func TestTilePath(t *testing.T) {
	for want, got := range map[string]string{
		"tile/0/000":                     tilePath("0", 0, 256),
		"tile/0/x001/234":                tilePath("0", 1234, 256),
		"tile/entries/x001/x234/067.p/8": tilePath("entries", 1234067, 8),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
