package evidence

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
)

// TestStrangersLines: in a checkpoint with the signature line of a key that nobody knows,
// as a witness's is, no bit may be changed unseen but one of that line; and what is said
// about the job is then the same. A line that is malformed may be refused.
func TestStrangersLines(t *testing.T) {
	y := story(t)
	dir := y.export("job-a")
	stranger := []byte("— stranger.example.org " + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 76)) + "\n")
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files { // proofs repeat the checkpoint
		if filepath.Base(f) == checkpointFile || filepath.Ext(f) == ".tlog-proof" {
			edit(t, f, func(b []byte) []byte { return append(b, stranger...) })
		}
	}
	whole := y.verify(dir)
	if !whole.OK() {
		t.Fatalf("a further signature line: %+v", whole)
	}
	good, err := os.ReadFile(filepath.Join(dir, checkpointFile))
	if err != nil {
		t.Fatal(err)
	}
	foreign := len(good) - len(stranger)
	passed, step := 0, 41 // and every bit under soak
	if os.Getenv("BANKSMAN_SOAK") != "" {
		step = 1
	}
	for i := 0; i < 8*len(good); i += step {
		bad := bytes.Clone(good)
		bad[i/8] ^= 1 << (i % 8)
		for _, f := range files { // in all places at once, as a careful forger would
			if filepath.Base(f) == checkpointFile || filepath.Ext(f) == ".tlog-proof" {
				edit(t, f, func(b []byte) []byte { return append(bytes.Clone(b[:len(b)-len(good)]), bad...) })
			}
		}
		r := y.verify(dir)
		if !r.OK() {
			continue
		}
		passed++
		if i/8 < foreign {
			t.Errorf("bit %d of byte %d of the checkpoint: unseen", i%8, i/8)
		}
		if r.Size != whole.Size || r.Job != whole.Job || r.Events != whole.Events {
			t.Errorf("bit %d of byte %d of a stranger's line: %+v", i%8, i/8, r)
		}
	}
	if passed == 0 {
		t.Error("not even the bits of a stranger's line may change; this test shows nothing")
	}
	t.Logf("%d bits say nothing", passed)
}
