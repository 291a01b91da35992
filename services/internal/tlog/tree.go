package tlog

import (
	"crypto/sha256"
	"fmt"
	"io"

	"golang.org/x/mod/sumdb/tlog"
)

// frontier is the right edge of an RFC 6962 tree: the root of a complete subtree for
// each bit of the size. It is all that appending needs, whatever the size.
type frontier struct {
	n    int64
	edge [63]Hash // edge[i] counts only if bit i of n is set
}

// append adds a leaf hash and appends to out the hashes that x/mod's tlog stores for
// it: its own, then one for each subtree that it completes.
func (f *frontier) append(h Hash, out []byte) []byte {
	out = append(out, h[:]...)
	level := 0
	for ; f.n>>level&1 == 1; level++ {
		h = tlog.NodeHash(f.edge[level], h)
		out = append(out, h[:]...)
	}
	f.edge[level] = h
	f.n++
	return out
}

// root returns the tree hash; that of the empty tree is the SHA-256 of nothing.
func (f *frontier) root() Hash {
	if f.n == 0 {
		return sha256.Sum256(nil)
	}
	var root Hash
	empty := true
	for level := range f.edge {
		switch {
		case f.n>>level&1 == 0:
		case empty:
			root, empty = f.edge[level], false
		default:
			root = tlog.NodeHash(f.edge[level], root)
		}
	}
	return root
}

// loadFrontier reads the right edge of the tree of size n from stored hashes.
func loadFrontier(n int64, r tlog.HashReader) (*frontier, error) {
	f := &frontier{n: n}
	var at []int64
	var levels []int
	for level := range f.edge {
		if n>>level&1 == 1 {
			at = append(at, tlog.StoredHashIndex(level, n>>level-1))
			levels = append(levels, level)
		}
	}
	hs, err := r.ReadHashes(at)
	if err != nil {
		return nil, err
	}
	for i, level := range levels {
		f.edge[level] = hs[i]
	}
	return f, nil
}

// leafHash is the RFC 6962 hash of a leaf. scratch saves an allocation and is returned
// for the next call.
func leafHash(entry, scratch []byte) (Hash, []byte) {
	scratch = append(append(scratch[:0], 0), entry...)
	return sha256.Sum256(scratch), scratch
}

// hashFile reads stored hashes at their place in the file.
type hashFile struct{ f io.ReaderAt }

// ReadHashes implements x/mod's tlog.HashReader.
func (h hashFile) ReadHashes(at []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(at))
	for i, x := range at {
		if _, err := h.f.ReadAt(out[i][:], x*tlog.HashSize); err != nil {
			return nil, fmt.Errorf("%w: hashes: read stored hash %d: %w", ErrDamaged, x, err)
		}
	}
	return out, nil
}

// TreeProof shows how a tree grew out of a smaller one, see [Reader.ProveGrowth].
type TreeProof = tlog.TreeProof
