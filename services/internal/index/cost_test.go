package index

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
)

// crowded is an index with so many ended jobs and a few open ones, of which it returns one.
func crowded(t testing.TB, ended int) (x *Index, through uint64, one lifecycle.Job) {
	t.Helper()
	x = open(t, filepath.Join(t.TempDir(), "i"))
	var batch []lifecycle.Job
	for i := range ended {
		through += 6
		// Ids that are spread make every page of their bucket a page that changes.
		batch = append(batch, job(fmt.Sprintf("%08x-ended", uint32(i)*2654435761), "p", lifecycle.Succeeded, through))
		if len(batch) == 5000 {
			apply(t, x, through, batch...)
			batch = batch[:0]
		}
	}
	for i := range 20 {
		through += 6
		batch = append(batch, job(fmt.Sprintf("open%d", i), "p", lifecycle.Approved, through))
	}
	through += 6
	apply(t, x, through, batch...)
	return x, through, batch[len(batch)-1]
}

// TestQuestionsCostWhatTheirAnswerIsLong counts allocations, which reading ended jobs
// multiplies and which no other work on the machine changes. A walk over their keys alone
// allocates nothing; the comparison of package bench, with a million jobs, sees that.
func TestQuestionsCostWhatTheirAnswerIsLong(t *testing.T) {
	const few = 300
	many := 15_000
	if os.Getenv("BANKSMAN_SOAK") != "" {
		many = 1_000_000
	}
	small, large := costs(t, few), costs(t, many)
	for what, n := range large {
		// Keys in deeper trees cost a little, applying splits pages now and then, and opening
		// reads the list of free pages.
		if bound := small[what]*1.2 + 500; n > bound {
			t.Errorf("%s allocates %.0f times with %d ended jobs and %.0f times with %d", what, n, many, small[what], few)
		}
	}
}

// costs says how often each question allocates.
func costs(t *testing.T, ended int) map[string]float64 {
	t.Helper()
	x, through, one := crowded(t, ended)
	out := map[string]float64{}
	for what, ask := range map[string]func() error{
		"inbox": func() error {
			_, _, err := x.List(Query{Status: []lifecycle.Status{lifecycle.Pending}, Limit: 50})
			return err
		},
		"of status": func() error {
			_, _, err := x.List(Query{Status: []lifecycle.Status{lifecycle.Succeeded}, Limit: 50})
			return err
		},
		"of pool": func() error { _, _, err := x.List(Query{Pool: "p", Limit: 50}); return err },
		"newest":  func() error { _, _, err := x.List(Query{Limit: 50}); return err },
		"older":   func() error { _, _, err := x.List(Query{Limit: 50, Before: "open0"}); return err },
		"ready":   func() error { _, err := x.Ready("p", 20, t0, through); return err },
		"counts":  func() error { _, err := x.Counts(); return err },
		"one":     func() error { _, err := x.Job(one.ID); return err },
		"prefix":  func() error { _, err := x.Job("open7"); return err },
		"apply": func() error {
			through++
			one.LastSeq = through
			return x.Apply(Batch{Jobs: []lifecycle.Job{one}, To: Position{Through: through, Leaves: int64(through) + 1}})
		},
		"reopen": func() error {
			if err := x.Close(); err != nil {
				return err
			}
			var err error
			x, err = Open(x.path)
			return err
		},
	} {
		var failed error
		out[what] = testing.AllocsPerRun(10, func() {
			if err := ask(); err != nil {
				failed = err
			}
		})
		if failed != nil {
			t.Fatalf("%s: %v", what, failed)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}
