package index

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)

func job(id, pool string, status lifecycle.Status, seq uint64) lifecycle.Job {
	j := lifecycle.Job{
		ID: id, Pool: pool, Status: status, ProposedSeq: seq, ProposedAt: t0.Add(time.Duration(seq) * time.Second), LastSeq: seq,
		Proposal: &events.JobProposed{Argv: []string{"/bin/echo", id}, Env: map[string]string{"A": "1", "B": "2"}, Pool: pool, TimeoutS: 1, MaxAttempts: 1, ExpiresS: 1e6, Cwd: "/"},
	}
	if status == lifecycle.Approved {
		j.Resolution = &events.JobResolved{Cwd: "/"}
		j.Approvals = []lifecycle.Approval{{Actor: "gate", Basis: "policy", Seq: seq + 1, At: t0, Expires: t0.Add(24 * 365 * time.Hour), MaxAttempts: 1}}
	}
	return j
}

func open(t testing.TB, path string) *Index {
	t.Helper()
	x, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func apply(t testing.TB, x *Index, through uint64, jobs ...lifecycle.Job) {
	t.Helper()
	if err := x.Apply(Batch{Jobs: jobs, To: Position{Through: through, Leaves: int64(through) + 1}}); err != nil {
		t.Fatal(err)
	}
}

func ids(jobs []lifecycle.Job) string {
	var out []string
	for _, j := range jobs {
		out = append(out, j.ID)
	}
	return strings.Join(out, " ")
}

func TestJobSurvivesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "index.db")
	x := open(t, path)
	if x.Anew() == "" {
		t.Error("a new index does not say so")
	}
	want := job("aaa", "default", lifecycle.Approved, 7)
	apply(t, x, 9, want)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = open(t, path)
	if x.Anew() != "" || x.Through() != 9 {
		t.Fatalf("after a close: anew %q, through %d", x.Anew(), x.Through())
	}
	got, err := x.Job("aaa")
	if err != nil {
		t.Fatal(err)
	}
	wantBytes, _ := encodeJob(want)
	gotBytes, _ := encodeJob(got)
	if !bytes.Equal(wantBytes, gotBytes) {
		t.Errorf("the job changed on its way:\n%s\n%s", wantBytes, gotBytes)
	}
}

func TestPrefix(t *testing.T) {
	x := open(t, filepath.Join(t.TempDir(), "i"))
	apply(t, x, 9, job("abc1", "p", lifecycle.Pending, 1), job("abc2", "p", lifecycle.Pending, 2), job("b", "p", lifecycle.Pending, 3), job("bc", "p", lifecycle.Pending, 4))
	for prefix, want := range map[string]string{"abc1": "abc1", "abc2": "abc2", "b": "b", "bc": "bc"} {
		if j, err := x.Job(prefix); err != nil || j.ID != want {
			t.Errorf("%q finds %q, %v", prefix, j.ID, err)
		}
	}
	var many *ErrAmbiguous
	if _, err := x.Job("ab"); !errors.As(err, &many) || !slices.Equal(many.Candidates, []string{"abc1", "abc2"}) || many.More {
		t.Errorf("ab: %v", err)
	}
	for _, none := range []string{"x", "", "abc3"} {
		if _, err := x.Job(none); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", none, err)
		}
	}
}

func TestAmbiguityIsBounded(t *testing.T) {
	x := open(t, filepath.Join(t.TempDir(), "i"))
	var jobs []lifecycle.Job
	for i := range 50 {
		jobs = append(jobs, job(fmt.Sprintf("j%02d", i), "p", lifecycle.Failed, uint64(i+1)))
	}
	apply(t, x, 60, jobs...)
	var many *ErrAmbiguous
	if _, err := x.Job("j"); !errors.As(err, &many) || len(many.Candidates) != maxCandidates || !many.More {
		t.Errorf("%v", err)
	}
}

func TestOrder(t *testing.T) {
	x := open(t, filepath.Join(t.TempDir(), "i"))
	apply(t, x, 9)
	err := x.Apply(Batch{To: Position{Through: 8, Leaves: 20}})
	if !errors.Is(err, ErrOrder) || x.Through() != 9 {
		t.Errorf("a batch that leads back: %v, through %d", err, x.Through())
	}
}

func TestReady(t *testing.T) {
	x := open(t, filepath.Join(t.TempDir(), "i"))
	tainted := job("bad", "p", lifecycle.Approved, 3)
	tainted.Tainted = true
	apply(t, x, 99, job("two", "p", lifecycle.Approved, 20), job("one", "p", lifecycle.Approved, 10), tainted,
		job("other", "q", lifecycle.Approved, 1), job("pending", "p", lifecycle.Pending, 2))
	for _, c := range []struct {
		limit  int
		at     time.Time
		sealed uint64
		want   string
	}{
		{10, t0, 99, "one two"}, {1, t0, 99, "one"}, {10, t0, 11, "one"}, {10, t0, 10, ""}, {10, t0.Add(366 * 24 * time.Hour), 99, ""},
	} {
		got, err := x.Ready("p", c.limit, c.at, c.sealed)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("ready(%d, %v, %d) = %v, %v, want %q", c.limit, c.at, c.sealed, got, err, c.want)
		}
	}
}

// TestAgainstNaive compares every question with a plain map.
func TestAgainstNaive(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		x := open(t, filepath.Join(dir, fmt.Sprint(n)))
		defer x.Close()
		all := map[string]lifecycle.Job{}
		seq := uint64(0)
		statuses := lifecycle.Statuses[1:]
		for range rapid.IntRange(1, 12).Draw(r, "batches") {
			batch := map[string]lifecycle.Job{}
			for range rapid.IntRange(0, 6).Draw(r, "events") {
				seq++
				id := fmt.Sprintf("j%d", rapid.IntRange(0, 20).Draw(r, "id"))
				j, known := all[id]
				if !known {
					j = job(id, rapid.SampledFrom([]string{"p", "q"}).Draw(r, "pool"), "", seq)
					j.Proposal.Proposer = events.Proposer{Kind: "agent", ID: rapid.SampledFrom([]string{"a", "ab"}).Draw(r, "proposer")}
				}
				j.Status, j.LastSeq = rapid.SampledFrom(statuses).Draw(r, "status"), seq
				all[id], batch[id] = j, j
			}
			var jobs []lifecycle.Job
			for _, j := range batch {
				jobs = append(jobs, j)
			}
			apply(t, x, seq, jobs...)
		}
		counts := map[lifecycle.Status]int64{}
		for _, j := range all {
			counts[j.Status]++
		}
		got, err := x.Counts()
		if err != nil || !cmp.Equal(got, counts) {
			r.Fatalf("counts %v, want %v, %v", got, counts, err)
		}
		q := Query{Limit: rapid.IntRange(1, 5).Draw(r, "limit"), Pool: rapid.SampledFrom([]string{"", "p", "q", "none"}).Draw(r, "query pool")}
		q.Proposer = rapid.SampledFrom([]string{"", "agent:a", "agent:ab", "agent:none"}).Draw(r, "query proposer")
		q.Status = rapid.SliceOfNDistinct(rapid.SampledFrom(statuses), 0, 3, rapid.ID).Draw(r, "query status")
		var want []lifecycle.Job
		for _, j := range all {
			if (q.Pool == "" || j.Pool == q.Pool) && (q.Proposer == "" || j.Proposal.Proposer.String() == q.Proposer) && (len(q.Status) == 0 || slices.Contains(q.Status, j.Status)) {
				want = append(want, j)
			}
		}
		slices.SortFunc(want, func(a, b lifecycle.Job) int { return int(b.ProposedSeq) - int(a.ProposedSeq) })
		var listed []lifecycle.Job
		for {
			page, more, err := x.List(q)
			if err != nil || len(page) > q.Limit || more && len(page) == 0 {
				r.Fatalf("list %+v: %d jobs, more %v, %v", q, len(page), more, err)
			}
			listed = append(listed, page...)
			if !more {
				break
			}
			q.Before = page[len(page)-1].ID
		}
		if ids(listed) != ids(want) {
			r.Fatalf("listed %s, want %s", ids(listed), ids(want))
		}
	})
}

func TestOtherBootBeginsAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "i")
	x := open(t, path)
	apply(t, x, 9, job("a", "p", lifecycle.Failed, 1))
	// A process that dies closes nothing; the kernel drops its lock.
	if err := x.db.Close(); err != nil {
		t.Fatal(err)
	}
	x.db = nil
	x = open(t, path)
	if x.Anew() != "" || x.Through() != 9 {
		t.Fatalf("after a kill: anew %q, through %d", x.Anew(), x.Through())
	}
	x.db.Close()
	x.db = nil
	if err := os.WriteFile(path+".boot", []byte("another-boot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x = open(t, path)
	if x.Anew() == "" || x.Through() != 0 {
		t.Errorf("after another boot: anew %q, through %d", x.Anew(), x.Through())
	}
	if _, err := x.Job("a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("after another boot: %v", err)
	}
}

// TestDamage flips bytes and cuts the file: whatever happens, the index says so or
// answers what was stored, and Reset makes it usable.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "i")
	x := open(t, path)
	var jobs []lifecycle.Job
	for i := range 40 {
		jobs = append(jobs, job(fmt.Sprintf("job%02d", i), "p", lifecycle.Approved, uint64(i+1)))
	}
	apply(t, x, 99, jobs...)
	want, _, err := x.Get("job07")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantBytes, _ := encodeJob(want)
	seen := 0
	try := func(name string, bad []byte) {
		p := filepath.Join(dir, "bad")
		if err := errors.Join(os.WriteFile(p, bad, 0o600), os.WriteFile(p+".boot", []byte(closedMark), 0o600)); err != nil {
			t.Fatal(err)
		}
		x, err := Open(p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer x.Close()
		got, _, err := x.Get("job07")
		if err == nil && x.Anew() == "" && got.ID != "" {
			if b, _ := encodeJob(got); !bytes.Equal(b, wantBytes) {
				t.Errorf("%s: another job came back", name)
			}
			return
		}
		seen++
		if err := x.Reset(); err != nil {
			t.Fatalf("%s: reset: %v", name, err)
		}
		apply(t, x, 99, jobs...)
		if got, err := x.Job("job07"); err != nil || got.ID != "job07" {
			t.Errorf("%s: after a reset: %v", name, err)
		}
	}
	for at := 0; at < len(whole); at += 509 {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x41
		try(fmt.Sprintf("byte %d", at), bad)
	}
	for _, size := range []int{0, 1, 100, 4096, 8192, len(whole) / 2} {
		try(fmt.Sprintf("cut at %d", size), whole[:size])
	}
	at := bytes.Index(whole, []byte(`"job07"`))
	bad := bytes.Clone(whole)
	bad[at+4] = '8'
	try("another id", bad)
	if seen < 5 {
		t.Errorf("only %d of the damages were noticed", seen)
	}
}

func TestFacts(t *testing.T) {
	x := open(t, filepath.Join(t.TempDir(), "i"))
	must := func(facts map[string][]byte, through uint64) {
		t.Helper()
		if err := x.Apply(Batch{Facts: facts, To: Position{Through: through}}); err != nil {
			t.Fatal(err)
		}
	}
	must(map[string][]byte{"a/1": []byte("x"), "a/2": {}, "b": []byte("z")}, 1)
	must(map[string][]byte{"a/1": nil}, 2)
	var got []string
	err := x.Facts("a/", func(k string, v []byte) error { got = append(got, k+"="+string(v)); return nil })
	if err != nil || !slices.Equal(got, []string{"a/2="}) {
		t.Errorf("facts %v, %v", got, err)
	}
	if v, found, err := x.Fact("b"); err != nil || !found || string(v) != "z" {
		t.Errorf("fact b: %q %v %v", v, found, err)
	}
	if _, found, err := x.Fact("a/1"); err != nil || found {
		t.Errorf("a removed fact is %v, %v", found, err)
	}
}

func TestOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "i")
	open(t, path)
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second owner: %v", err)
	}
}

// TestDamageWhileOpen overwrites the file under an open index: it answers ErrDamaged or
// what was stored, and Reset ends in time and makes it usable.
func TestDamageWhileOpen(t *testing.T) {
	for name, junk := range map[string]byte{"ones": 0xff, "zeros": 0} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "i")
			x := open(t, path)
			var jobs []lifecycle.Job
			for i := range 300 {
				jobs = append(jobs, job(fmt.Sprintf("job%03d", i), "p", lifecycle.Approved, uint64(i+1)))
			}
			apply(t, x, 999, jobs...)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(bytes.Repeat([]byte{junk}, int(info.Size())-8192), 8192); err != nil {
				t.Fatal(err)
			}
			if j, found, err := x.Get("job007"); found && err == nil && j.ID != "job007" {
				t.Errorf("another job: %q", j.ID)
			}
			if _, _, err := x.List(Query{Limit: 10}); err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("list: %v", err)
			}
			if err := x.Apply(Batch{Jobs: jobs[:1], To: Position{Through: 1000, Leaves: 1001}}); !errors.Is(err, ErrDamaged) {
				t.Errorf("apply: %v", err)
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
			apply(t, x, 999, jobs...)
			if j, err := x.Job("job007"); err != nil || j.ID != "job007" {
				t.Errorf("after a reset: %v", err)
			}
		})
	}
}
