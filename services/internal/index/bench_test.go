package index

import (
	"fmt"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
)

// BenchmarkAsk asks an index with few and with many ended jobs behind the same open
// ones: the times must not differ much.
func BenchmarkAsk(b *testing.B) {
	for _, ended := range []int{1000, 100000} {
		x, seq, one := crowded(b, ended)
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
		run("ready", func() error { _, err := x.Ready("p", 20, t0, seq); return err })
		run("get", func() error { _, err := x.Job("open7"); return err })
		run("apply", func() error {
			seq++
			one.LastSeq = seq
			return x.Apply(Batch{Jobs: []lifecycle.Job{one}, To: Position{Through: seq + 6, Leaves: int64(seq + 7)}})
		})
		run("reopen", func() error {
			if err := x.Close(); err != nil {
				return err
			}
			var err error
			x, err = Open(x.path)
			return err
		})
	}
}
