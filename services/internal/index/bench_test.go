package index

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
)

// BenchmarkAsk asks an index with few and with many ended jobs behind the same open
// ones: the times must not differ much.
func BenchmarkAsk(b *testing.B) {
	for _, ended := range []int{1000, 100000} {
		path := filepath.Join(b.TempDir(), "i")
		x := open(b, path)
		seq := uint64(0)
		var batch []lifecycle.Job
		for i := range ended {
			seq += 6
			batch = append(batch, job(fmt.Sprintf("%08x-ended", i*2654435761), "p", lifecycle.Succeeded, seq))
			if len(batch) == 1000 {
				apply(b, x, seq, batch...)
				batch = batch[:0]
			}
		}
		for i := range 20 {
			seq += 6
			batch = append(batch, job(fmt.Sprintf("open%d", i), "p", lifecycle.Approved, seq))
		}
		apply(b, x, seq+6, batch...)
		run := func(what string, f func() error) {
			b.Run(fmt.Sprintf("%s/%d", what, ended), func(b *testing.B) {
				for b.Loop() {
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("inbox", func() error {
			_, _, err := x.List(Query{Status: []lifecycle.Status{lifecycle.Pending}, Limit: 50})
			return err
		})
		run("newest", func() error { _, _, err := x.List(Query{Limit: 20}); return err })
		run("ready", func() error { _, err := x.Ready("p", 20, t0, seq+6); return err })
		run("get", func() error { _, err := x.Job("open7"); return err })
		run("apply", func() error {
			seq++
			j := batch[3]
			j.LastSeq = seq
			return x.Apply(Batch{Jobs: []lifecycle.Job{j}, To: Position{Through: seq + 6, Leaves: int64(seq + 7)}})
		})
		run("reopen", func() error {
			if err := x.Close(); err != nil {
				return err
			}
			var err error
			x, err = Open(path)
			return err
		})
	}
}
