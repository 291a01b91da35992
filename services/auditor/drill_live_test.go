package auditor

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// digestOf covers every file below a folder.
func digestOf(t testing.TB, dir string) (sum [32]byte) {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		h.Write([]byte(path))
		h.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return [32]byte(h.Sum(nil))
}

// TestDrillCopy: every attack on copies of a real log is found, also beside what a
// forged event has spoilt already, and the log itself stays as it was.
func TestDrillCopy(t *testing.T) {
	s := audited(t)
	before := digestOf(t, s.layout.State())
	o := Options{Origin: s.plan.Origin, RootKey: s.plan.RootKey()}
	o.AllEpochs(s.layout)
	r, err := DrillCopy(t.Context(), o, t.TempDir())
	if err != nil || !r.OK || len(r.Attacks) != len(liveAttacks) || r.Detected != len(r.Attacks) {
		t.Errorf("%+v, %v", r, err)
	}
	if digestOf(t, s.layout.State()) != before {
		t.Error("the drill has changed the site")
	}
	// An attack that changes nothing is not found: the drill can fail.
	d := &liveDrill{o: o, dir: t.TempDir()}
	if err := d.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if row, err := d.run(t.Context(), 0, liveAttack{"nothing", func(*liveDrill, drillHost) error { return nil }}); err != nil || row.Found {
		t.Errorf("%+v, %v", row, err)
	}
	edit(t, filepath.Join(s.layout.AuditLog(), "raw.log"), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	if _, err := DrillCopy(t.Context(), o, t.TempDir()); err == nil {
		t.Error("a damaged log was drilled")
	}
}
