package witness

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	modtlog "golang.org/x/mod/sumdb/tlog"

	"github.com/banksman/banksman/services/internal/tlog"
)

// tree is a log in memory whose history can be told in two ways.
type tree struct {
	t      *testing.T
	signer note.Signer
	vkey   string
	hashes []modtlog.Hash
}

func (t *tree) ReadHashes(at []int64) (out []modtlog.Hash, err error) {
	for _, i := range at {
		out = append(out, t.hashes[i])
	}
	return out, nil
}

func newTree(t *testing.T, origin string) *tree {
	t.Helper()
	skey, vkey, err := note.GenerateKey(nil, origin)
	if err != nil {
		t.Fatal(err)
	}
	s, err := note.NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	return &tree{t: t, signer: s, vkey: vkey}
}

// told is the same log's key with another history.
func (t *tree) told(n int64, word string) *tree {
	other := &tree{t: t.t, signer: t.signer, vkey: t.vkey}
	for i := range n {
		hs, err := modtlog.StoredHashes(i, fmt.Appendf(nil, "%s %d", word, i), other)
		if err != nil {
			t.t.Fatal(err)
		}
		other.hashes = append(other.hashes, hs...)
	}
	return other
}

func (t *tree) head(size int64) tlog.Checkpoint {
	t.t.Helper()
	root, err := modtlog.TreeHash(size, t)
	if err != nil {
		t.t.Fatal(err)
	}
	b := t.signed(fmt.Sprintf("%s\n%d\n%s\n", t.signer.Name(), size, root))
	return tlog.Checkpoint{Note: b, Size: size, Root: tlog.Hash(root)}
}

// signed signs any text with the log's key.
func (t *tree) signed(text string) []byte {
	t.t.Helper()
	b, err := note.Sign(&note.Note{Text: text}, t.signer)
	if err != nil {
		t.t.Fatal(err)
	}
	return b
}

func (t *tree) grown(to int64) Grown {
	return func(old int64) (modtlog.TreeProof, error) { return modtlog.ProveTree(to, old, t) }
}

var fixed = time.Unix(1_800_000_000, 0)

func newSigner(t *testing.T, name string) *Signer {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSigner(name, pub, func(m []byte) []byte { return ed25519.Sign(priv, m) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve runs a witness on loopback.
func serve(t *testing.T, s *Signer, dir string, logs ...string) *Client {
	t.Helper()
	server, err := NewServer(dir, s, logs, func() time.Time { return fixed })
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(server)
	t.Cleanup(h.Close)
	return &Client{Witness: Witness{Name: "w", Key: s.Verifier(), URL: h.URL}, HTTP: h.Client()}
}

// refused checks the status of a refusal.
func refused(t *testing.T, err error, status int) {
	t.Helper()
	var r *Refused
	if !errors.As(err, &r) || r.Status != status {
		t.Errorf("want status %d, got %v", status, err)
	}
}

func stale(t *testing.T, err error, size int64) {
	t.Helper()
	var s *Stale
	if !errors.As(err, &s) || s.Size != size {
		t.Errorf("want status 409 with size %d, got %v", size, err)
	}
}

// TestWitnessRemembers walks through every answer that the specification names.
func TestWitnessRemembers(t *testing.T) {
	base := newTree(t, "log.example.org")
	truth, lie := base.told(20, "truth"), base.told(20, "lie")
	dir := t.TempDir()
	key := newSigner(t, "w.example.org")
	c := serve(t, key, dir, base.vkey)
	ctx := t.Context()

	empty := truth.head(0)
	_, err := c.Add(ctx, 0, nil, empty.Note)
	if err != nil {
		t.Errorf("a head of no leaves: %v", err)
	}
	made := strings.Replace(string(empty.Note), "\n0\n47DE", "\n0\n57DE", 1)
	_, err = c.Add(ctx, 0, nil, base.signed(made[:strings.Index(made, "\n\n")+1]))
	refused(t, err, http.StatusUnprocessableEntity)

	line, err := c.Cosign(ctx, 0, truth.head(5), truth.grown(5))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open(append(truth.head(5).Note, line...), note.VerifierList(key.Verifier())); err != nil {
		t.Error(err)
	}
	if _, err := c.Cosign(ctx, 5, truth.head(9), truth.grown(9)); err != nil {
		t.Errorf("growth: %v", err)
	}
	if _, err := c.Cosign(ctx, 0, truth.head(12), truth.grown(12)); err != nil {
		t.Errorf("growth after the witness said its size: %v", err)
	}
	if _, err := c.Cosign(ctx, 12, truth.head(12), truth.grown(12)); err != nil {
		t.Errorf("the same head again: %v", err)
	}
	_, err = c.Cosign(ctx, 9, truth.head(9), truth.grown(9))
	stale(t, err, 12)
	_, err = c.Add(ctx, 12, nil, lie.head(12).Note)
	stale(t, err, 12)
	_, err = c.Cosign(ctx, 12, lie.head(20), lie.grown(20))
	refused(t, err, http.StatusUnprocessableEntity)
	_, err = c.Add(ctx, 12, modtlog.TreeProof{{}}, truth.head(12).Note)
	refused(t, err, http.StatusUnprocessableEntity)
	_, err = c.Add(ctx, 13, nil, truth.head(12).Note)
	refused(t, err, http.StatusBadRequest)
	_, err = c.Add(ctx, 0, nil, newTree(t, "other.example.org").told(3, "x").head(3).Note)
	refused(t, err, http.StatusNotFound)
	stranger := newTree(t, "log.example.org").told(14, "truth")
	_, err = c.Add(ctx, 12, nil, stranger.head(14).Note)
	refused(t, err, http.StatusForbidden)

	again := serve(t, key, dir, base.vkey)
	_, err = again.Cosign(ctx, 5, truth.head(11), truth.grown(11))
	stale(t, err, 12)
	if misfits, _ := filepath.Glob(filepath.Join(dir, "*.misfit")); len(misfits) != 1 {
		t.Errorf("evidence against the log: %v", misfits)
	}
}

func TestWitnessNeverCosignsTwoHistories(t *testing.T) {
	base := newTree(t, "log.example.org")
	dir := t.TempDir()
	key := newSigner(t, "w.example.org")
	clients := []*Client{serve(t, key, dir, base.vkey), serve(t, key, dir, base.vkey)}
	var group sync.WaitGroup
	var mu sync.Mutex
	won := map[string]bool{}
	for i := range 16 {
		word := []string{"truth", "lie"}[i%2]
		c, told := clients[i/2%2], base.told(8, word)
		group.Go(func() {
			if _, err := c.Add(t.Context(), 0, nil, told.head(8).Note); err == nil {
				mu.Lock()
				won[word] = true
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(won) != 1 {
		t.Errorf("cosigned: %v", won)
	}
}

func TestClientBelievesOnlyItsWitness(t *testing.T) {
	base := newTree(t, "log.example.org").told(3, "x")
	other := serve(t, newSigner(t, "w.example.org"), t.TempDir(), base.vkey)
	other.Witness.Key = newSigner(t, "w.example.org").Verifier()
	if line, err := other.Cosign(t.Context(), 0, base.head(3), base.grown(3)); err == nil {
		t.Errorf("another witness's word was taken: %s", line)
	}
}

func TestPolicyQuorum(t *testing.T) {
	base := newTree(t, "log.example.org").told(3, "x")
	head := base.head(3)
	n, _ := note.Open(head.Note, note.VerifierList())
	if n != nil {
		t.Fatal("opened without a key")
	}
	text := string(head.Note[:strings.Index(string(head.Note), "\n\n")+1])
	a, b, c := newSigner(t, "a"), newSigner(t, "b"), newSigner(t, "c")
	file := fmt.Sprintf("# a test\nlog %s https://log.example.org/\nwitness A %s https://a.example.org/\nwitness B %s\n\twitness  C %s\ngroup G 2 A B C\nquorum G\n",
		base.vkey, a.Verifier(), b.Verifier(), c.Verifier())
	p, err := ParsePolicy([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	note1 := string(head.Note) + a.line([]byte(text), fixed)
	if _, err := p.Judge([]byte(note1), fixed); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("one of two: %v", err)
	}
	note2 := note1 + c.line([]byte(text), fixed.Add(time.Hour))
	if at, err := p.Judge([]byte(note2), fixed.Add(2*time.Hour)); err != nil || !at.Equal(fixed) {
		t.Errorf("two of three: %v %v, want the older of the two", at, err)
	}
	if at, err := p.Judge([]byte(note2+b.line([]byte(text), fixed.Add(30*time.Minute))), fixed.Add(2*time.Hour)); err != nil || !at.Equal(fixed.Add(30*time.Minute)) {
		t.Errorf("three of three: %v %v", at, err)
	}
	if _, err := p.Judge([]byte(note2), fixed); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("a cosignature of the future: %v", err)
	}
	if _, err := p.Judge([]byte(note1+c.line([]byte(text+"x"), fixed)), fixed); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("a cosignature of another head: %v", err)
	}
	if at, err := (&Policy{}).Judge(head.Note, fixed); err != nil || !at.IsZero() {
		t.Errorf("no policy: %v %v", at, err)
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	w := newSigner(t, "a").Verifier().String()
	v := newSigner(t, "b").Verifier().String()
	for _, bad := range []string{
		"", "quorum a\n", "quorum none\nquorum none\n", "witness none " + w + "\nquorum none\n", "witness a " + w + "\nwitness a " + v + "\nquorum a\n",
		"witness a " + w + "\nwitness b " + w + "\nquorum a\n", "witness a " + w + "x\nquorum a\n", "log x\nquorum none\n",
		"witness a " + w + "\ngroup g 2 a\nquorum g\n", "witness a " + w + "\ngroup g 0 a\nquorum g\n", "witness a " + w + "\ngroup g 01 a\nquorum g\n",
		"witness a " + w + "\ngroup g any a\ngroup h any a\nquorum h\n", "group g any g\nquorum g\n", "nonsense\nquorum none\n", "witness a " + w + "\ngroup g any a a\nquorum g\n",
	} {
		if _, err := ParsePolicy([]byte(bad)); err == nil {
			t.Errorf("accepted: %q", bad)
		}
	}
}

// TestWeakKeysAreRefused: for a key of small order anybody can make signatures, so it is
// neither a log nor a witness.
func TestWeakKeysAreRefused(t *testing.T) {
	neutral, four := make([]byte, 32), make([]byte, 32)
	neutral[0] = 1
	for _, raw := range [][]byte{neutral, four} {
		witnessKey := newVerifier("w", raw).String()
		logKey, err := note.NewEd25519VerifierKey("log.example.org", raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseVerifier(witnessKey); err == nil || !strings.Contains(err.Error(), "small order") {
			t.Errorf("as a witness: %v", err)
		}
		for _, line := range []string{"witness w " + witnessKey, "log " + logKey} {
			if _, err := ParsePolicy([]byte(line + "\nquorum none\n")); err == nil || !strings.Contains(err.Error(), "small order") {
				t.Errorf("%s: %v", line, err)
			}
		}
		if _, err := NewServer(t.TempDir(), newSigner(t, "w"), []string{logKey}, time.Now); err == nil || !strings.Contains(err.Error(), "small order") {
			t.Errorf("as a log to be witnessed: %v", err)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte("quorum none\n"))
	f.Add([]byte("witness a b+00000000+BA\ngroup g any a\nquorum g\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ParsePolicy(b); err == nil {
			p.Judge([]byte("x\n1\ny\n\n— a b\n"), fixed)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte("old 0\n\nlog\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n— log AAAA\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &Server{logs: map[string][]note.Verifier{}}
		if status, _ := s.add(b); status != http.StatusBadRequest && status != http.StatusNotFound {
			t.Errorf("status %d", status)
		}
	})
}
