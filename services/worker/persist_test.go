package worker

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/banksman/banksman/services/internal/redact"
)

// Output that was kept survives the process once the attempt has ended, and goes
// on being published, also the chunk that is on its way at that moment.
func TestPersistedOutputSurvivesAndFlowsOn(t *testing.T) {
	for _, full := range []bool{false, true} { // memory alone, memory and file
		r := newRecorder(filepath.Join(t.TempDir(), "spool"), 64<<20, time.Now(), redact.New())
		size := 3 * chunkBytes
		if full {
			size = (spoolInMemory + 5) * chunkBytes
		}
		text := bytes.Repeat([]byte("0123456789abcdef"), size/16)
		if _, err := r.stdout().Write(text); err != nil {
			t.Fatal(err)
		}
		if _, err := r.stderr().Write([]byte("end\n")); err != nil {
			t.Fatal(err)
		}
		r.close()
		var first chunk
		for range 2 { // the first is delivered, the second on its way
			c, ok, _, _, err := r.next(time.Now())
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			if first.n == 0 {
				first = c
				r.queue.advance(c)
			}
		}
		if err := r.persist(); err != nil {
			t.Fatal(err)
		}
		later, err := leftRecorder(r.queue.path) // the process dies here
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []*recorder{later, r} {
			name := map[bool]string{true: "this life", false: "the next life"}[from == r]
			got := map[string][]byte{"stdout": first.data}
			for n := first.n + 1; ; n++ {
				c, ok, err := from.queue.front()
				if !ok || err != nil {
					break
				}
				if c.n != n {
					t.Fatalf("%s: chunk %d came as %d", name, c.n, n)
				}
				got[c.stream] = append(got[c.stream], c.data...)
				if from == r {
					from.queue.advance(c)
				} else {
					from.queue.read += frameBytes + int64(len(c.data)) // leaves the file to this life
				}
			}
			if !bytes.Equal(got["stdout"], text) || string(got["stderr"]) != "end\n" {
				t.Errorf("%s publishes %d bytes of %d and %q", name, len(got["stdout"]), len(text), got["stderr"])
			}
		}
		later.discard()
		r.discard()
	}
}
