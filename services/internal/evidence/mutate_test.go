package evidence

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/banksman/banksman/events"
)

// TestVerifiersAgree changes bundles at random and compares the two verifiers.
func TestVerifiersAgree(t *testing.T) {
	needShell(t)
	rounds := 30
	if os.Getenv("BANKSMAN_SOAK") != "" {
		rounds = 200
	}
	var yards []*yard
	var bundles []string
	for _, y := range []*yard{story(t), told(t), stated(t)} {
		yards, bundles = append(yards, y), append(bundles, y.export("job-a"))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var passed int
	for i := range rounds {
		y, whole := yards[i%3], bundles[i%3]
		dir := filepath.Join(t.TempDir(), "b")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		what := spoil(t, dir, rng)
		r := y.verify(dir)
		ok, said := y.shell(dir)
		if good := letters(r) == ""; good != ok {
			t.Errorf("round %d, %s: Go says %+v, the shell %s", i, what, r, said)
		} else if good {
			passed++
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if passed == rounds {
		t.Error("no change was found")
	}
}

// spoil changes one file at random.
func spoil(t *testing.T, dir string, rng *rand.Rand) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := files[rng.IntN(len(files))].Name()
	other := files[rng.IntN(len(files))].Name()
	at := filepath.Join(dir, name)
	switch rng.IntN(8) {
	case 0:
		remove(t, at)
		return "remove " + name
	case 1:
		b, err := os.ReadFile(filepath.Join(dir, other))
		if err == nil {
			err = os.WriteFile(at, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return name + " becomes " + other
	case 2:
		edit(t, at, func(b []byte) []byte { return b[:rng.IntN(len(b)+1)] })
		return "cut " + name
	case 3:
		edit(t, at, func(b []byte) []byte { return append(b, '\n') })
		return "line feed after " + name
	}
	edit(t, at, func(b []byte) []byte {
		if len(b) > 0 {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		return b
	})
	return "flip a bit of " + name
}

// TestEveryByteOfABundle: no byte of a bundle may be changed unseen, but in a line of
// the checkpoint that belongs to an unknown key.
func TestEveryByteOfABundle(t *testing.T) {
	everyByte(t, story(t))
	everyByte(t, told(t))
}

func everyByte(t *testing.T, y *yard) {
	t.Helper()
	dir := y.export("job-a")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	bits, step := 1, 7 // and every bit of every byte under soak
	if os.Getenv("BANKSMAN_SOAK") != "" {
		bits, step = 8, 1
	}
	for _, f := range files {
		everyByteOf(t, y, filepath.Join(dir, f.Name()), bits, step)
	}
}

// everyByteOf changes one file of a bundle, so many bits of each byte.
func everyByteOf(t *testing.T, y *yard, p string, bits, step int) {
	t.Helper()
	good, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < bits*len(good); at += step {
		i, bit := at/bits, at%bits
		if bits == 1 {
			bit = i % 8
		}
		bad := bytes.Clone(good)
		bad[i] ^= 1 << bit
		if err := os.WriteFile(p, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if r := y.verify(filepath.Dir(p)); r.OK() {
			t.Fatalf("bit %d of byte %d of %s: unseen", bit, i, filepath.Base(p))
		}
	}
	if err := os.WriteFile(p, good, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestShellKnowsTheRights: the shell's table is the table.
func TestShellKnowsTheRights(t *testing.T) {
	text, err := os.ReadFile("../../../scripts/verify.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range events.Roles {
		for _, d := range events.Catalog() {
			if d.Kind.Family() != "job" && d.Kind != "text.erased" {
				continue
			}
			pair := []byte(`"` + string(role) + " " + string(d.Kind) + `"`)
			if got, want := bytes.Contains(text, pair), events.MayPublish(role, d.Kind); got != want {
				t.Errorf("%s: in the shell %v, in the table %v", pair, got, want)
			}
		}
	}
}

func FuzzParseProof(f *testing.F) {
	f.Add([]byte("c2sp.org/tlog-proof@v1\nindex 0\n\nx\n"))
	f.Add([]byte("c2sp.org/tlog-proof@v1\nindex 7\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\norigin\n8\nroot\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ParseProof(b); err == nil && !bytes.Equal(p.Text(), b) {
			t.Errorf("%q reads as %+v", b, p)
		}
	})
}
