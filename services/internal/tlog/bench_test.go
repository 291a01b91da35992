package tlog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// benchRecord is a 1 KiB event with the headers that events have.
func benchRecord() (Record, Meta) {
	sig := string(make([]byte, 0, 86))
	for len(sig) < 86 {
		sig += "A"
	}
	rec := Record{
		Subject: "bm.job.ci.01jz8k3v5m9q7w2x4y6a8b0c1d.finished.w1", Time: time.Unix(1_790_000_000, 0),
		Header: map[string][]string{
			"ce-specversion": {"1.0"}, "ce-id": {"w1.0123456789abcdef.42"}, "ce-type": {"job.finished"}, "ce-source": {"w1"},
			"ce-time": {"2026-11-29T12:00:00Z"}, "ce-dataschema": {"job.finished.v1"}, "bm-sig": {sig},
			"traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		},
		Payload: make([]byte, 1024),
	}
	return rec, Meta{ID: "w1.0123456789abcdef.42", Expect: "41", ActorKey: sig[:56], ActorSig: sig}
}

// BenchmarkFloorHash is what no log of 1 KiB events can be faster than: one hash of the
// payload, two of an entry of 600 bytes, and one node.
func BenchmarkFloorHash(b *testing.B) {
	payload, entry := make([]byte, 1024), make([]byte, 600)
	var node Hash
	start := cpu_s()
	for b.Loop() {
		sha256.Sum256(payload)
		sha256.Sum256(entry)
		sha256.Sum256(entry)
		node = tlog.NodeHash(node, node)
	}
	rate(b, start, 1)
}

// BenchmarkFloorSync is the disk: append 4 KiB and make it durable.
func BenchmarkFloorSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	must(b, err)
	defer f.Close()
	page := make([]byte, 4096)
	for b.Loop() {
		_, err := f.Write(page)
		must(b, err)
		must(b, syncData(f))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "syncs/s")
}

// BenchmarkFloorSeal is what a seal cannot do without: a durable append, and a
// checkpoint file that takes the place of the one before.
func BenchmarkFloorSeal(b *testing.B) {
	dir := b.TempDir()
	f, err := os.Create(filepath.Join(dir, "f"))
	must(b, err)
	defer f.Close()
	page, checkpoint := make([]byte, 4096), make([]byte, 200)
	var took spread
	for b.Loop() {
		begun := time.Now()
		_, err := f.Write(page)
		must(b, err)
		must(b, syncData(f))
		must(b, disk{}.replace(filepath.Join(dir, "checkpoint"), checkpoint))
		took = append(took, time.Since(begun))
	}
	took.report(b)
}

// BenchmarkSeal seals each 1 KiB event by itself.
func BenchmarkSeal(b *testing.B) {
	l := benchLog(b, b.TempDir())
	defer l.Close()
	feed := newFeed(l)
	var took spread
	for b.Loop() {
		feed.append(b)
		begun := time.Now()
		_, err := l.Seal()
		must(b, err)
		took = append(took, time.Since(begun))
	}
	took.report(b)
}

// spread is what a series of equal steps took.
type spread []time.Duration

func (s spread) report(b *testing.B) {
	slices.Sort(s)
	b.ReportMetric(float64(s[len(s)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(s[len(s)*99/100].Microseconds()), "p99-us")
}

// BenchmarkAppend appends 1 KiB events, seven to a job, and makes every so many of them
// durable, without a head over them.
func BenchmarkAppend(b *testing.B) {
	benchAppend(b, func(l *Log) error { return errors.Join(l.flush(), l.syncTruth()) })
}

// BenchmarkAppendSealed is BenchmarkAppend with a head over every so many events.
func BenchmarkAppendSealed(b *testing.B) {
	benchAppend(b, func(l *Log) error { _, err := l.Seal(); return err })
}

func benchAppend(b *testing.B, settle func(*Log) error) {
	for _, batch := range []int{1, 8, 64, 256, 1024} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			l := benchLog(b, b.TempDir())
			defer l.Close()
			feed := newFeed(l)
			start := cpu_s()
			for b.Loop() {
				feed.append(b)
				if l.Size()%int64(batch) == 0 {
					must(b, settle(l))
				}
			}
			rate(b, start, 1)
		})
	}
}

// BenchmarkFoldTree is the arithmetic alone: digests, entry, chain, leaf and tree.
func BenchmarkFoldTree(b *testing.B) {
	rec, m := benchRecord()
	m.Job = "01jz8k3v5m9q7w2x4y6a8b0000"
	var tree frontier
	var prev Hash
	var block, entry, scratch, stored []byte
	start := cpu_s()
	for b.Loop() {
		rec.Seq++
		block = AppendHeaderBlock(block[:0], rec.Header)
		e := entryOf(&rec, &m, block, prev, int64(rec.Seq))
		entry = e.append(entry[:0])
		prev = sha256.Sum256(entry)
		var leaf Hash
		leaf, scratch = leafHash(entry, scratch)
		stored = tree.append(leaf, stored[:0])
	}
	rate(b, start, 1)
}

// BenchmarkFold is BenchmarkAppend with files in memory: entry, digests, tree, reading
// back, and copying it all to the kernel and back.
func BenchmarkFold(b *testing.B) {
	dir := memoryDir(b)
	signer, _ := keys(b, testOrigin)
	l, err := create(dir, genesis(), signer, &memLock{}, noSync)
	must(b, err)
	defer l.Close()
	feed := newFeed(l)
	start := cpu_s()
	for b.Loop() {
		feed.append(b)
		if l.Size()%1024 == 0 {
			_, err := l.Seal()
			must(b, err)
		}
	}
	rate(b, start, 1)
}

func benchLog(b *testing.B, dir string) *Log {
	signer, _ := keys(b, testOrigin)
	l, err := Create(dir, genesis(), signer, FileLock(dir))
	must(b, err)
	return l
}

// benchFeed appends the same record under ever new sequences and jobs.
type benchFeed struct {
	l   *Log
	rec Record
	m   Meta
	job []byte
}

func newFeed(l *Log) *benchFeed {
	f := &benchFeed{l: l, job: []byte("01jz8k3v5m9q7w2x4y6a8b0000")}
	f.rec, f.m = benchRecord()
	return f
}

func (f *benchFeed) append(b *testing.B) {
	f.rec.Seq++
	if f.rec.Seq%7 == 1 {
		f.m.Job = string(strconv.AppendUint(f.job[:16], 1<<32+f.rec.Seq, 10))
	}
	_, err := f.l.Append(f.rec, f.m)
	must(b, err)
}

// BenchmarkVerify checks a log of 20,000 events of 1 KiB.
func BenchmarkVerify(b *testing.B) {
	nothing := func(int64, Entry, *Record) error { return nil }
	b.Run("structure", func(b *testing.B) { benchVerify(b, nil) })
	b.Run("visitor", func(b *testing.B) { benchVerify(b, nothing) })
}

func benchVerify(b *testing.B, visit func(int64, Entry, *Record) error) {
	const events = 20_000
	dir := filledLog(b, events)
	_, verifiers := keys(b, testOrigin)
	start := cpu_s()
	for b.Loop() {
		report, err := Verify(context.Background(), dir, verifiers, visit)
		must(b, err)
		if !report.OK() {
			b.Fatal(report.Problems)
		}
	}
	rate(b, start, events)
}

// BenchmarkVerifyBare is BenchmarkVerify of events without payload.
func BenchmarkVerifyBare(b *testing.B) {
	const events = 20_000
	dir := bareLog(b, events)
	_, verifiers := keys(b, testOrigin)
	start := cpu_s()
	for b.Loop() {
		report, err := Verify(context.Background(), dir, verifiers, nil)
		must(b, err)
		if !report.OK() {
			b.Fatal(report.Problems)
		}
	}
	rate(b, start, events)
}

// BenchmarkOpenWhole opens a log whose derived files are gone, so that every entry is
// read, checked and hashed again.
func BenchmarkOpenWhole(b *testing.B) {
	const events = 20_000
	dir := bareLog(b, events)
	signer, _ := keys(b, testOrigin)
	start := cpu_s()
	for b.Loop() {
		for _, name := range []string{hashesName, offsetsName, jobsName} {
			must(b, os.Remove(filepath.Join(dir, name)))
		}
		l, err := Open(dir, signer, FileLock(dir))
		must(b, err)
		if !l.Recovery().Rebuilt {
			b.Fatal("not everything was read")
		}
		must(b, l.Close())
	}
	rate(b, start, events)
}

func bareLog(b *testing.B, events int) string {
	return filledWith(b, events, func(f *benchFeed) { f.rec.Payload = nil })
}

// BenchmarkOpen shows that the cost of opening does not grow with the log.
func BenchmarkOpen(b *testing.B) {
	signer, _ := keys(b, testOrigin)
	for _, events := range []int{10, 20_000, 200_000} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			dir := filledLog(b, events)
			b.ReportAllocs()
			for b.Loop() {
				l, err := Open(dir, signer, FileLock(dir))
				must(b, err)
				must(b, l.Close())
			}
		})
	}
}

func filledLog(b *testing.B, events int) string {
	return filledWith(b, events, func(*benchFeed) {})
}

func filledWith(b *testing.B, events int, change func(*benchFeed)) string {
	dir := memoryDir(b)
	l := benchLog(b, dir)
	feed := newFeed(l)
	change(feed)
	for range events {
		feed.append(b)
	}
	_, err := l.Seal()
	must(b, err)
	must(b, l.Close())
	return dir
}

// rate reports events per second, on the wall and of this process's own time, which a
// busy machine disturbs less. start is a cpu_s from before the loop.
func rate(b *testing.B, start float64, each int) {
	b.ReportMetric(float64(b.N*each)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(b.N*each)/(cpu_s()-start), "events/cpu-s")
}

func cpu_s() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkDirectory makes the root that one state holds, of so many jobs on disk. Per
// event that is at most eight times the cost of one job, if each event has a job of its own.
func BenchmarkDirectory(b *testing.B) {
	for _, n := range []int64{10_000, 1_000_000} {
		b.Run(strconv.FormatInt(n, 10), func(b *testing.B) {
			t, err := openJobs(disk{}, filepath.Join(b.TempDir(), jobsName))
			must(b, err)
			defer t.close()
			jobs := make(map[jobKey]int64, n)
			for i := range n {
				jobs[keyOf(strconv.FormatInt(i, 10))] = 7 * i
			}
			must(b, t.write(jobs, 7*n))
			for b.Loop() {
				d, err := t.directory()
				must(b, err)
				if d.Root(); d.Jobs() != n {
					b.Fatal(d.Jobs())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/job")
		})
	}
}
