package interop

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/services/internal/evidence"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/witness"
)

// vectors shows each published test vector of a kind; they lie in the other author's
// module.
func vectors(t *testing.T, kind string, show func(name string, content []byte)) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/transparency-dev/merkle").Output()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	n, dir := 0, filepath.Join(strings.TrimSpace(string(out)), "testdata", kind)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil {
			n++
			show(strings.TrimPrefix(path, dir+"/"), b)
		}
		return err
	})
	if err != nil || n < 90 {
		t.Fatalf("%d vectors of %s: %v", n, kind, err)
	}
}

// headOf signs the head of a tree that a vector names. The root is written down as it
// is, whatever its length.
func headOf(t *testing.T, signer note.Signer, size uint64, root []byte) []byte {
	t.Helper()
	b, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", signer.Name(), size, base64.StdEncoding.EncodeToString(root))}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// lines writes hashes, of whatever length, as proofs hold them.
func lines(hashes [][]byte) (s string) {
	for _, h := range hashes {
		s += base64.StdEncoding.EncodeToString(h) + "\n"
	}
	return s
}

// rootOf makes a root of what is too short or too long for one.
func rootOf(b []byte) []byte {
	if len(b) != sha256.Size {
		h := sha256.Sum256(b)
		b = h[:]
	}
	return b
}

// leaves are the entries of the tree that the vectors were made from, by their hash.
func leaves(t *testing.T) map[string][]byte {
	t.Helper()
	m := map[string][]byte{}
	for _, text := range []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		m[string(rfc6962.DefaultHasher.HashLeaf(b))] = b
	}
	return m
}

func checkpointSigner(t *testing.T) (s note.Signer, vkey string) {
	t.Helper()
	skey, vkey, err := note.GenerateKey(nil, origin)
	if err == nil {
		s, err = note.NewSigner(skey)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, vkey
}

// TestInclusionVectors reads each published inclusion proof as a file of a bundle would
// be read, and checks it as that would be checked.
func TestInclusionVectors(t *testing.T) {
	known := leaves(t)
	signer, _ := checkpointSigner(t)
	right := 0
	var unknown []string
	vectors(t, "inclusion", func(name string, content []byte) {
		var v struct {
			LeafIdx, TreeSize uint64
			Root, LeafHash    []byte
			Proof             [][]byte
			WantErr           bool
		}
		if err := json.Unmarshal(content, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		entry, ok := known[string(v.LeafHash)]
		if !ok && !v.WantErr {
			unknown = append(unknown, name) // a leaf hash that is made up
			return
		}
		note := headOf(t, signer, v.TreeSize, v.Root)
		_, head, err := tlog.ParseCheckpoint(note)
		if err == nil {
			var p evidence.Proof
			p, err = evidence.ParseProof(fmt.Appendf(nil, "c2sp.org/tlog-proof@v1\nindex %d\n%s\n%s", v.LeafIdx, lines(v.Proof), note))
			if err == nil {
				err = p.Check(entry, head)
			}
		}
		if ok = ok && err == nil; ok == v.WantErr {
			t.Errorf("%s: %v, want an error: %v", name, err, v.WantErr)
		}
		if ok {
			right++
		}
	})
	if right < 5 || len(unknown) != 1 {
		t.Errorf("%d proofs are right, entries of %v are not known", right, unknown)
	}
}

// TestConsistencyVectors asks our witness, which has cosigned the first of two trees,
// about the second: it says yes where the published answer does, and only there. Some
// vectors have words in place of roots; a hash of the words stands for them. A witness's
// first head is taken on trust, so vectors about growth from nothing do not concern it.
func TestConsistencyVectors(t *testing.T) {
	signer, vkey := checkpointSigner(t)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := witness.NewSigner("w.example.org", public, func(m []byte) []byte { return ed25519.Sign(private, m) })
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	vectors(t, "consistency", func(name string, content []byte) {
		var v struct {
			Size1, Size2 uint64
			Root1, Root2 []byte
			Proof        [][]byte
			WantErr      bool
		}
		if err := json.Unmarshal(content, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v.Size1 == 0 {
			return
		}
		server, err := witness.NewServer(t.TempDir(), w, []string{vkey}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(old uint64, proof string, head []byte) int {
			r := httptest.NewRequest(http.MethodPost, "/add-checkpoint", strings.NewReader(fmt.Sprintf("old %d\n%s\n%s", old, proof, head)))
			answer := httptest.NewRecorder()
			server.ServeHTTP(answer, r)
			return answer.Code
		}
		status := ask(0, "", headOf(t, signer, v.Size1, rootOf(v.Root1)))
		if status == http.StatusOK {
			status = ask(v.Size1, lines(v.Proof), headOf(t, signer, v.Size2, rootOf(v.Root2)))
		}
		if ok := status == http.StatusOK; ok == v.WantErr {
			t.Errorf("%s: status %d, want an error: %v\n%s", name, status, v.WantErr, content)
		} else if ok {
			right++
		}
	})
	if right < 5 {
		t.Errorf("%d proofs are right", right)
	}
}
