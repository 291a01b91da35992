package worker

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/services/internal/redact"
)

// recorderBytes is what the recorder of a job with the default limit may take.
const recorderBytes = 32 << 20

// However much a job writes, the worker's memory does not follow: 500 MB are
// kept as head and tail.
func TestHugeOutputStaysSmall(t *testing.T) {
	const written = 500_000_000
	r := newRecorder(filepath.Join(t.TempDir(), "spool"), DefaultConfig().MaxOutputBytes, time.Now(), redact.New(redact.Value{Name: "A", Text: "some-FAKE-value-0123456789"}))
	var published sync.WaitGroup
	published.Go(func() {
		r.publish(context.Background(), slog.New(slog.DiscardHandler), func(context.Context, chunk) error { return nil })
	})
	piece := bytes.Repeat([]byte("a line of a long log, and nothing in it but words\n"), 32<<10/50)
	before := heap()
	most := uint64(0)
	for n := 0; n < written; n += len(piece) {
		_, _ = r.stdout().Write(piece)
		if n%(64*len(piece)) == 0 {
			most = max(most, heap())
		}
	}
	out, _, fault := r.close()
	must(t, fault)
	published.Wait()
	if most > before+recorderBytes {
		t.Errorf("%d MiB are in use, %d before", most>>20, before>>20)
	}
	if out.Bytes < written || out.StoredBytes != DefaultConfig().MaxOutputBytes || out.StoredBytes+out.CutBytes != out.Bytes {
		t.Errorf("described as %+v", out)
	}
}

// heap is what the Go heap takes, the not yet collected part included.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
