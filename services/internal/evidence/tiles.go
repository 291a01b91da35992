package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	modtlog "golang.org/x/mod/sumdb/tlog"

	"github.com/banksman/banksman/services/internal/tlog"
)

// Tiled says what a tiled copy holds.
type Tiled struct {
	Dir   string `json:"dir"`
	Size  int64  `json:"size"`
	Files int    `json:"files"`
}

// WriteTiles writes the log up to its signed head in the layout of C2SP tlog-tiles,
// which other people's tools read and serve as plain files. Payloads are not in it:
// entries hold their digests. The folder must not exist yet.
func WriteTiles(ctx context.Context, r *tlog.Reader, dir string) (done Tiled, err error) {
	if _, err := os.Lstat(dir); err == nil {
		return done, fmt.Errorf("export tiles to %s: the folder is there already; name another", dir)
	}
	cp, err := r.Checkpoint()
	if err != nil {
		return done, err
	}
	draft, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".")
	if err != nil {
		return done, fmt.Errorf("export tiles: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(draft))
		}
	}()
	done = Tiled{Dir: dir, Size: cp.Size}
	put := func(path string, content []byte) error {
		path = filepath.Join(draft, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		done.Files++
		return os.WriteFile(path, content, 0o644)
	}
	for _, tile := range modtlog.NewTiles(8, 0, cp.Size) {
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		b, err := modtlog.ReadTileData(tile, r.Hashes())
		if err == nil {
			err = put(tilePath(fmt.Sprint(tile.L), tile.N, tile.W), b)
		}
		if err != nil {
			return done, fmt.Errorf("export tiles to %s: %w", dir, err)
		}
	}
	for from := int64(0); from < cp.Size; from += page {
		n := min(page, cp.Size-from)
		b, err := r.Bundle(from, from+n)
		if err == nil {
			err = put(tilePath("entries", from/page, int(n)), b)
		}
		if err != nil {
			return done, fmt.Errorf("export tiles to %s: %w", dir, err)
		}
	}
	if err := put(checkpointFile, cp.Note); err != nil {
		return done, fmt.Errorf("export tiles to %s: %w", dir, err)
	}
	return done, os.Rename(draft, dir)
}

// tilePath is where a tile lies: its number in groups of three digits, all but the last
// with an "x", and the width where it is not full.
func tilePath(level string, n int64, width int) string {
	digits := fmt.Sprintf("%03d", n%1000)
	for n >= 1000 {
		n /= 1000
		digits = fmt.Sprintf("x%03d/%s", n%1000, digits)
	}
	path := strings.Join([]string{"tile", level, digits}, "/")
	if width < page {
		path += fmt.Sprintf(".p/%d", width)
	}
	return path
}
