package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"syscall"
	"testing"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/services/internal/tlog"
)

// batch is how many events one signed head covers.
const batch = 256

func benchSigner(b *testing.B) note.Signer {
	b.Helper()
	skey, _, err := note.GenerateKey(nil, origin)
	if err != nil {
		b.Fatal(err)
	}
	signer, err := note.NewSigner(skey)
	if err != nil {
		b.Fatal(err)
	}
	return signer
}

// BenchmarkTessera appends entries as large as ours are for an event of 1 KiB.
func BenchmarkTessera(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	driver, err := posix.New(ctx, posix.Config{Path: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	options := tessera.NewAppendOptions().WithCheckpointSigner(benchSigner(b)).WithBatching(batch, time.Second).WithCheckpointInterval(100 * time.Millisecond)
	log, shutdown, _, err := tessera.NewAppender(ctx, driver, options)
	if err != nil {
		b.Fatal(err)
	}
	waiting := make([]tessera.IndexFuture, 0, batch)
	settle := func() {
		for _, f := range waiting {
			if _, err := f(); err != nil {
				b.Fatal(err)
			}
		}
		waiting = waiting[:0]
	}
	n := byte(0)
	start := cpu(b)
	for b.Loop() {
		n++
		waiting = append(waiting, log.Add(ctx, tessera.NewEntry(bytes.Repeat([]byte{n}, 600))))
		if len(waiting) == batch {
			settle()
		}
	}
	if len(waiting) < batch && len(waiting) > 0 {
		settle()
	}
	b.ReportMetric(float64(b.N)/(cpu(b)-start).Seconds(), "events/cpu-s")
	if err := shutdown(ctx); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOwn appends events of 1 KiB with headers and signs a head over each batch.
func BenchmarkOwn(b *testing.B) {
	dir := b.TempDir()
	log, err := tlog.Create(dir, tlog.Genesis{Origin: origin, Stream: "BANKSMAN", Created: time.Unix(1, 0), Config: sha256.Sum256(nil)}, benchSigner(b), tlog.FileLock(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	sig := string(bytes.Repeat([]byte("A"), 86))
	rec := tlog.Record{
		Subject: "bm.job.ci.01jz8k3v5m9q7w2x4y6a8b0c1d.finished.w1", Time: time.Unix(1_790_000_000, 0), Payload: make([]byte, 1024),
		Header: map[string][]string{"ce-specversion": {"1.0"}, "ce-id": {"w1.0123456789abcdef.42"}, "ce-type": {"job.finished"}, "bm-sig": {sig}},
	}
	m := tlog.Meta{ID: "w1.0123456789abcdef.42", Expect: "41", ActorKey: sig[:56], ActorSig: sig, Job: "01jz8k3v5m9q7w2x4y6a8b0c1d"}
	start := cpu(b)
	for b.Loop() {
		rec.Seq++
		if _, err := log.Append(rec, m); err != nil {
			b.Fatal(err)
		}
		if rec.Seq%batch == 0 {
			if _, err := log.Seal(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/(cpu(b)-start).Seconds(), "events/cpu-s")
}

// cpu is the processor time of this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
