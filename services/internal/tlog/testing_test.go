package tlog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

const testOrigin = "log.example.org/banksman/epoch-1"

// keys makes a signer from a fixed seed and its verifier.
func keys(tb testing.TB, name string) (note.Signer, note.Verifiers) {
	tb.Helper()
	skey, vkey, err := note.GenerateKey(seedReader(name), name)
	must(tb, err)
	signer, err := note.NewSigner(skey)
	must(tb, err)
	verifier, err := note.NewVerifier(vkey)
	must(tb, err)
	return signer, note.VerifierList(verifier)
}

// seedReader yields the same bytes for the same name.
func seedReader(name string) *strings.Reader {
	h := sha256.Sum256([]byte(name))
	return strings.NewReader(strings.Repeat(string(h[:]), 4))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func genesis() Genesis {
	return Genesis{Origin: testOrigin, Stream: "BANKSMAN", Created: time.Unix(1_790_000_000, 1), Config: sha256.Sum256([]byte("config"))}
}

// record is message number seq of the test stream; each depends only on its number.
func record(seq uint64) (Record, Meta) {
	job := ""
	if seq%5 != 0 {
		job = fmt.Sprintf("job%d", seq%7)
	}
	m := Meta{
		ID: fmt.Sprintf("gate.s1.%d", seq), Expect: fmt.Sprint(seq - 1), Job: job,
		CEDigest: sha256.Sum256(fmt.Append(nil, "ce", seq)),
		ActorKey: "UKEY", ActorSig: fmt.Sprintf("sig%d", seq),
	}
	rec := Record{
		Seq: seq, Time: time.Unix(1_790_000_000, int64(seq)*1000), Subject: "bm.job.pool." + job + ".proposed.gate",
		Header:  map[string][]string{"ce-id": {m.ID}, "bm-sig": {m.ActorSig}, "multi": {"a", "b"}},
		Payload: fmt.Appendf(nil, `{"n":%d}`, seq),
	}
	switch seq % 11 {
	case 3:
		rec.Header = nil
	case 4:
		rec.Payload = nil
	}
	return rec, m
}

// feed appends the records after the log's last one, up to and including to, and the gap
// of sequences 13 and 14, which the test stream does not hold.
func feed(tb testing.TB, l *Log, to uint64) {
	tb.Helper()
	for seq := l.LastSeq() + 1; seq <= to; seq = l.LastSeq() + 1 {
		if seq == 13 {
			_, err := l.AppendGap(13, 14)
			must(tb, err)
			continue
		}
		rec, m := record(seq)
		_, err := l.Append(rec, m)
		must(tb, err)
	}
}

// sealedLog makes a log of the records up to to, sealed, and closes it.
func sealedLog(tb testing.TB, dir string, to uint64) Checkpoint {
	tb.Helper()
	signer, _ := keys(tb, testOrigin)
	l, err := Create(dir, genesis(), signer, FileLock(dir))
	must(tb, err)
	feed(tb, l, to)
	cp, err := l.Seal()
	must(tb, err)
	must(tb, l.Close())
	return cp
}

func verifyDir(tb testing.TB, dir string) Report {
	tb.Helper()
	_, verifiers := keys(tb, testOrigin)
	r, err := Verify(context.Background(), dir, verifiers, nil)
	must(tb, err)
	return r
}

func wantClean(tb testing.TB, dir string) Report {
	tb.Helper()
	r := verifyDir(tb, dir)
	if !r.OK() {
		tb.Fatalf("verify %s: %v", dir, r.Problems)
	}
	return r
}

// files reads a whole folder.
func files(tb testing.TB, dir string) map[string][]byte {
	tb.Helper()
	out := map[string][]byte{}
	list, err := os.ReadDir(dir)
	must(tb, err)
	for _, f := range list {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		must(tb, err)
		out[f.Name()] = b
	}
	return out
}

// place makes dir hold exactly these files.
func place(tb testing.TB, dir string, content map[string][]byte) {
	tb.Helper()
	must(tb, os.RemoveAll(dir))
	must(tb, os.MkdirAll(dir, 0o755))
	for name, b := range content {
		must(tb, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
}

// memoryDir is a folder in memory where the system has one, for tests that write
// thousands of folders; what a disk would do is not their subject.
func memoryDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tlog")
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
