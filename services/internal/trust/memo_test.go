package trust

import (
	"fmt"
	"testing"
)

func TestMemoRemembersExactlyWhatVerified(t *testing.T) {
	var m memo
	yes, no := func() bool { return true }, func() bool { return false }
	if m.verified("key", []byte("text"), []byte("sig"), no) {
		t.Fatal("a signature counts that did not verify")
	}
	if !m.verified("key", []byte("text"), []byte("sig"), yes) || !m.verified("key", []byte("text"), []byte("sig"), no) {
		t.Error("a signature that verified is not remembered")
	}
	for _, other := range [][3]string{
		{"kex", "text", "sig"}, {"key", "texx", "sig"}, {"key", "text", "six"}, {"ke", "ytext", "sig"}, {"key", "texts", "ig"}, {"", "keytext", "sig"},
	} {
		if m.verified(other[0], []byte(other[1]), []byte(other[2]), no) {
			t.Errorf("%q counts, which nobody checked", other)
		}
	}
}

func TestMemoIsBounded(t *testing.T) {
	var m memo
	for i := range 5 * generation {
		m.verified("key", fmt.Append(nil, i), nil, func() bool { return true })
	}
	if n := len(m.young) + len(m.old); n > 2*generation {
		t.Errorf("it holds %d signatures", n)
	}
	if !m.verified("key", fmt.Append(nil, 4*generation+1), nil, func() bool { return false }) {
		t.Error("the newest signatures are forgotten")
	}
}
