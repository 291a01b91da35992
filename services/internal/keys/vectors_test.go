package keys

import (
	"bufio"
	"compress/gzip"
	"crypto/ed25519"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPublishedSignatures checks what we verify with against the vectors of RFC 8032's
// authors, which lie beside the standard library's source: each signature is made again
// and believed, and none is once a bit of it, of its message or of its key has changed.
func TestPublishedSignatures(t *testing.T) {
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("sign.input.gz: go does not say where it lies: %v", err)
	}
	f, err := os.Open(filepath.Join(strings.TrimSpace(string(root)), "src/crypto/ed25519/testdata/sign.input.gz"))
	if err != nil {
		t.Skipf("sign.input.gz: this toolchain comes without it: %v", err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(packed)
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var field [4][]byte
		for i, text := range strings.SplitN(lines.Text(), ":", 5)[:4] {
			if field[i], err = hex.DecodeString(text); err != nil {
				t.Fatalf("line %d: %v", n+1, err)
			}
		}
		private, public, msg, sig := field[0], field[1], field[2], field[3][:ed25519.SignatureSize]
		s := newSigner(ed25519.NewKeyFromSeed(private[:ed25519.SeedSize]))
		if s.Public() != NewPublicKey(public) || string(s.Sign(msg)) != string(sig) {
			t.Errorf("line %d: another key or signature", n+1)
		}
		if !s.Public().Verify(msg, sig) {
			t.Errorf("line %d: not believed", n+1)
		}
		bit := n % (8 * ed25519.SignatureSize)
		flip := func(b []byte) { b[bit/8%len(b)] ^= 1 << (bit % 8) }
		if flip(sig); s.Public().Verify(msg, sig) {
			t.Errorf("line %d: believed with bit %d of the signature changed", n+1, bit)
		}
		flip(sig)
		if flip(public); NewPublicKey(public).Verify(msg, sig) {
			t.Errorf("line %d: believed by another key", n+1)
		}
		if len(msg) == 0 {
			continue
		}
		if flip(msg); s.Public().Verify(msg, sig) {
			t.Errorf("line %d: believed of another message", n+1)
		}
	}
	if err := lines.Err(); err != nil || n < 100 {
		t.Errorf("%d lines, %v", n, err)
	}
}
