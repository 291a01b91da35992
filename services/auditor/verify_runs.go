package auditor

import (
	"cmp"
	"slices"
)

// run is a stretch of leaves whose sequences rise by one.
type run struct {
	leaf int64
	seq  uint64
}

// seqOf is the sequence of an event's leaf that was visited; 0 for no leaf.
func (v *verifier) seqOf(leaf int64) uint64 {
	i, found := slices.BinarySearchFunc(v.runs, leaf, func(r run, leaf int64) int { return cmp.Compare(r.leaf, leaf) })
	if !found {
		i--
	}
	if leaf < 0 || i < 0 {
		return 0
	}
	return v.runs[i].seq + uint64(leaf-v.runs[i].leaf)
}

// note remembers which sequence a leaf has.
func (v *verifier) note(leaf int64, seq uint64) {
	if n := len(v.runs); n == 0 || v.seqOf(leaf) != seq {
		v.runs = append(v.runs, run{leaf, seq})
	}
}
