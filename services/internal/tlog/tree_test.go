package tlog

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// naiveRoot is RFC 6962 section 2.1, written down.
func naiveRoot(leaves [][]byte) Hash {
	switch n := len(leaves); n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, leaves[0]...))
	default:
		k := 1
		for k*2 < n {
			k *= 2
		}
		l, r := naiveRoot(leaves[:k]), naiveRoot(leaves[k:])
		return sha256.Sum256(append(append([]byte{1}, l[:]...), r[:]...))
	}
}

// TestThreeTreesAgree compares the frontier with the definition and with x/mod: roots,
// stored hashes, and a frontier loaded from them, for every size up to 5000. The
// definition, which hashes the whole tree each time, has its say at every size up to 300
// and then at some, at those beside powers of two among them.
func TestThreeTreesAgree(t *testing.T) {
	var f frontier
	var stored []byte
	var leaves [][]byte
	reader := func() tlog.HashReader { return hashFile{bytes.NewReader(stored)} }
	for n := int64(0); n <= 5000; n++ {
		root := f.root()
		if n <= 300 || n%97 == 0 || (n-1)&n == 0 || (n-1)&(n-2) == 0 || n&(n+1) == 0 {
			if want := naiveRoot(leaves); root != want {
				t.Fatalf("size %d: root %x, by definition %x", n, root, want)
			}
		}
		theirs, err := tlog.TreeHash(n, reader())
		must(t, err)
		if n > 0 && Hash(theirs) != root {
			t.Fatalf("size %d: root %x, x/mod says %x", n, root, theirs)
		}
		loaded, err := loadFrontier(n, reader())
		must(t, err)
		if loaded.root() != root {
			t.Fatalf("size %d: another root after loading", n)
		}
		proveAll(t, n, theirs, leaves, reader())

		leaf := fmt.Appendf(nil, "leaf %d", n)
		theirHashes, err := tlog.StoredHashes(n, leaf, reader())
		must(t, err)
		before := len(stored)
		h, _ := leafHash(leaf, nil)
		stored = f.append(h, stored)
		var want []byte
		for _, h := range theirHashes {
			want = append(want, h[:]...)
		}
		if !bytes.Equal(stored[before:], want) {
			t.Fatalf("leaf %d: stored hashes differ from x/mod", n)
		}
		leaves = append(leaves, leaf)
	}
}

// proveAll checks every inclusion proof of some sizes, and that each tree has grown out
// of some smaller ones.
func proveAll(t *testing.T, n int64, root tlog.Hash, leaves [][]byte, r tlog.HashReader) {
	t.Helper()
	if n%37 != 0 || n > 300 && n%1110 != 0 {
		return
	}
	for old := int64(1); old <= n; old += 1 + n/50 {
		p, err := tlog.ProveTree(n, old, r)
		must(t, err)
		must(t, tlog.CheckTree(p, n, root, old, tlog.Hash(naiveRoot(leaves[:old]))))
	}
	for i, leaf := range leaves {
		p, err := tlog.ProveRecord(n, int64(i), r)
		must(t, err)
		h, _ := leafHash(leaf, nil)
		must(t, tlog.CheckRecord(p, n, root, int64(i), h))
	}
}
