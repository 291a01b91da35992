package tlog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

func TestStatesStandAtFixedLeafCounts(t *testing.T) {
	var at []int64
	for leaf := int64(0); leaf <= 1<<16; leaf++ {
		if StateAt(leaf) {
			at = append(at, leaf)
		}
	}
	if at[0] != 1024 || at[1] != 2048 || at[6] != 7*1024 || at[7] != 8*1024 || at[8] != 10*1024 || at[len(at)-1] != 1<<16 {
		t.Errorf("states at %d", at)
	}
	for _, leaf := range at {
		if !StateAt(leaf << 20) {
			t.Errorf("no state at %d", leaf<<20)
		}
	}
	if StateAt(1<<30 + 1024) {
		t.Error("the steps do not grow")
	}
}

func TestStateEntryIsStrict(t *testing.T) {
	e := Entry{Kind: KindState, Prev: Hash{1}, Size: 1024, Seq: 1023, Jobs: 7, Root: Hash{2}}
	text := string(e.Encode())
	if back, err := ParseEntry([]byte(text)); err != nil || back != e {
		t.Fatalf("%+v, %v", back, err)
	}
	for _, change := range []struct{ from, to string }{
		{"size 1024", "size 01024"}, {"size 1024", "size 0"}, {"size 1024\n", ""}, {"jobs 7", "jobs -"}, {"jobs 7", "jobs 1024"},
		{"seq 1023", "seq "}, {"root 02", "root 2"}, {"/v1 state", "/v1 gap"},
	} {
		other := strings.Replace(text, change.from, change.to, 1)
		if _, err := ParseEntry([]byte(other)); err == nil || other == text {
			t.Errorf("%q for %q is taken", change.to, change.from)
		}
	}
}

// hashList holds stored hashes in memory.
type hashList []tlog.Hash

func (l hashList) ReadHashes(at []int64) (out []tlog.Hash, err error) {
	for _, x := range at {
		out = append(out, l[x])
	}
	return out, nil
}

// wantState recomputes the state at a leaf by hand, from the entries before it and with
// x/mod's tree.
func wantState(t *testing.T, dir string, leaf int64) Entry {
	t.Helper()
	r, err := OpenReader(dir)
	must(t, err)
	defer r.Close()
	last := map[string]int64{}
	must(t, r.Entries(1, leaf, func(leaf int64, e Entry) error {
		if e.Job != "" {
			last[fmt.Sprintf("%x", sha256.Sum256([]byte(e.Job)))[:32]] = leaf
		}
		return nil
	}))
	var lines []string
	for digest, leaf := range last {
		lines = append(lines, fmt.Sprintf("job %s last %d\n", digest, leaf))
	}
	var stored hashList
	for n := int64(0); len(lines) > 0; n++ {
		least := 0
		for i := range lines {
			if lines[i] < lines[least] {
				least = i
			}
		}
		more, err := tlog.StoredHashes(n, []byte(lines[least]), stored)
		must(t, err)
		stored, lines = append(stored, more...), append(lines[:least], lines[least+1:]...)
	}
	root, err := tlog.TreeHash(int64(len(last)), stored)
	must(t, err)
	e, _, err := r.Entry(leaf)
	must(t, err)
	want := e
	want.Kind, want.Size, want.Jobs, want.Root = KindState, leaf, int64(len(last)), Hash(root)
	if e != want {
		t.Errorf("leaf %d is %+v, want %+v", leaf, e, want)
	}
	return e
}

// Batches, restarts and lost job tables leave no trace, also where a restart falls on a
// state and where a crash leaves the state as the last leaf.
func TestStatesDependOnNothingButTheEntriesBefore(t *testing.T) {
	const to = 3300
	once, often := memoryDir(t), memoryDir(t)
	sealedLog(t, once, to)
	wantClean(t, once)
	for _, leaf := range []int64{1024, 2048, 3072} {
		wantState(t, once, leaf)
	}

	signer, _ := keys(t, testOrigin)
	l, err := Create(often, genesis(), signer, FileLock(often))
	must(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	for l.LastSeq() < to {
		next := l.LastSeq() + 1 + rng.Uint64N(90)
		if due := (l.Size()/1024 + 1) * 1024; l.Size() < due && due-l.Size() < 90 {
			next = l.LastSeq() + uint64(due-l.Size()) + rng.Uint64N(2) // just before the state, or just behind
		}
		feed(t, l, min(next, to))
		if rng.IntN(3) > 0 {
			_, err = l.Seal()
			must(t, err)
		}
		if rng.IntN(2) > 0 {
			must(t, l.Close())
			if rng.IntN(3) == 0 {
				must(t, os.Remove(filepath.Join(often, jobsName)))
			}
			l, err = Open(often, signer, FileLock(often))
			must(t, err)
		}
	}
	_, err = l.Seal()
	must(t, err)
	must(t, l.Close())
	wantClean(t, often)
	for _, name := range []string{entriesName, rawName, checkpointName} {
		if !bytes.Equal(files(t, once)[name], files(t, often)[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

// Wherever a crash cuts the unsealed leaves around a state, and whatever it leaves in its
// place, feeding the same records again leads to the same bytes.
func TestCrashAtAStateLeavesNoTrace(t *testing.T) {
	work, whole := memoryDir(t), memoryDir(t)
	sealedLog(t, whole, 1040)
	want := files(t, whole)
	signer, _ := keys(t, testOrigin)
	l, err := Create(work, genesis(), signer, FileLock(work))
	must(t, err)
	feed(t, l, 1000)
	_, err = l.Seal()
	must(t, err)
	feed(t, l, 1040)
	must(t, l.Close())
	torn := files(t, work)
	r, err := OpenReader(work)
	must(t, err)
	defer r.Close()
	before, _, err := r.Ends(1024)
	must(t, err)
	behind, _, err := r.Ends(1025)
	must(t, err)

	again := func(what string, entries []byte) {
		t.Helper()
		torn[entriesName] = entries
		place(t, work, torn)
		l, err := Open(work, signer, FileLock(work))
		must(t, err)
		sealsAlone := l.Size() == 1025
		if sealsAlone {
			_, err = l.Seal()
			must(t, err)
			if at, err := r.Covers(1025); err != nil || at != l.LastSeq() {
				t.Errorf("%s: the head covers %d of %d: %v", what, at, l.LastSeq(), err)
			}
			must(t, l.Close()) // its head ends with the state
			l, err = Open(work, signer, FileLock(work))
			must(t, err)
		}
		feed(t, l, 1040)
		_, err = l.Seal()
		must(t, err)
		must(t, l.Close())
		got := files(t, work)
		for _, name := range []string{entriesName, rawName, checkpointName} {
			if !bytes.Equal(got[name], want[name]) {
				t.Fatalf("%s: %s differs", what, name)
			}
		}
	}
	good := want[entriesName]
	for cut := before - 3; cut <= behind+3; cut += 7 {
		again(fmt.Sprintf("cut at %d", cut), bytes.Clone(good[:cut]))
	}
	again("cut behind the state", bytes.Clone(good[:behind]))
	bad := bytes.Clone(good)
	bad[behind-5] ^= 1 // a digit of the root; it parses if it stays a digit
	again("another root", bad)
	wantClean(t, work)
}

// A state that says something else than the entries before it, or that stands elsewhere,
// is named by its leaf, whoever chained the rest to it.
func TestVerifyNamesAWrongState(t *testing.T) {
	dir := memoryDir(t)
	sealedLog(t, dir, 1100)
	whole := files(t, dir)
	last := map[jobKey]int64{}
	r, err := OpenReader(dir)
	must(t, err)
	defer r.Close()
	must(t, r.Entries(1, 1024, func(leaf int64, e Entry) error {
		if e.Job != "" && e.Job != "job3" {
			last[keyOf(e.Job)] = leaf
		}
		return nil
	}))
	fewer := directoryOf(last)
	for _, c := range []struct {
		name string
		edit func(i int, e *Entry) bool
		leaf int64
		what What
	}{
		{"root", func(i int, e *Entry) bool {
			if i == 1024 {
				e.Root[7] ^= 1
			}
			return true
		}, 1024, StateMismatch},
		{"a job left out", func(i int, e *Entry) bool {
			if i == 1024 {
				e.Jobs, e.Root = fewer.Jobs(), fewer.Root()
			}
			return true
		}, 1024, StateMismatch},
		{"count", func(i int, e *Entry) bool {
			if i == 1024 {
				e.Jobs++
			}
			return true
		}, 1024, StateMismatch},
		{"size", func(i int, e *Entry) bool {
			if i == 1024 {
				e.Size--
			}
			return true
		}, 1024, SeqHole},
		{"sequence", func(i int, e *Entry) bool {
			if i == 1024 {
				e.Seq--
			}
			return true
		}, 1024, SeqHole},
		{"no state", func(i int, e *Entry) bool { return i != 1024 }, 1024, SeqHole},
		{"one leaf early", func(i int, e *Entry) bool { return i != 1010 }, 1023, SeqHole},
	} {
		torn := map[string][]byte{}
		for name, b := range whole {
			torn[name] = b
		}
		torn[entriesName] = rechain(t, whole[entriesName], c.edit)
		place(t, dir, torn)
		found := false
		for _, p := range verifyDir(t, dir).Problems {
			found = found || p.Leaf == c.leaf && p.What == c.what
		}
		if !found {
			t.Errorf("%s: %v", c.name, verifyDir(t, dir).Problems)
		}
	}
}

// A log of a build that wrote no states is refused, and says why.
func TestLogWithoutStatesIsRefused(t *testing.T) {
	dir := memoryDir(t)
	sealedLog(t, dir, 1100)
	whole := files(t, dir)
	whole[entriesName] = rechain(t, whole[entriesName], func(i int, e *Entry) bool { return i != 1024 })
	place(t, dir, whole)
	signer, _ := keys(t, testOrigin)
	if _, err := Open(dir, signer, FileLock(dir)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "must be a state") {
		t.Errorf("open: %v", err)
	}
}

func TestDirectoryProvesAJob(t *testing.T) {
	for _, n := range []int{1, 2, 3, 64, 100} {
		last := map[jobKey]int64{}
		for i := range n {
			last[keyOf(fmt.Sprint("job", i))] = int64(10 * i)
		}
		d := directoryOf(last)
		state := Entry{Kind: KindState, Size: 2048, Jobs: d.Jobs(), Root: d.Root()}
		for i := range n {
			job := fmt.Sprint("job", i)
			p, err := d.Prove(job)
			must(t, err)
			if err := p.Check(job, &state); err != nil || p.Last != int64(10*i) {
				t.Fatalf("%s of %d: %+v, %v", job, n, p, err)
			}
			for what, spoil := range map[string]func(p *Listed, e *Entry) string{
				"another leaf":  func(p *Listed, _ *Entry) string { p.Last++; return job },
				"another job":   func(*Listed, *Entry) string { return job + "x" },
				"another place": func(p *Listed, _ *Entry) string { p.Index = (p.Index + 1) % int64(n+1); return job },
				"another root":  func(_ *Listed, e *Entry) string { e.Root[0] ^= 1; return job },
				"a gap":         func(_ *Listed, e *Entry) string { e.Kind = KindGap; return job },
			} {
				q, e := p, state
				if err := q.Check(spoil(&q, &e), &e); err == nil {
					t.Errorf("%s of %d: %s passes", job, n, what)
				}
			}
		}
		if _, err := d.Prove("nobody"); !errors.Is(err, ErrRange) {
			t.Errorf("a job that is not there: %v", err)
		}
	}
}

// What is carried from another log gets its states, too: between two carried records, and
// before the first record of the log's own.
func TestStatesAmongCarriedRecords(t *testing.T) {
	signer, verifiers := keys(t, "log.example.org/banksman/epoch-2")
	for _, n := range []uint64{1022, 1023, 1024, 2500} {
		dir := memoryDir(t)
		var seqs []uint64
		for i := range n {
			seqs = append(seqs, 2*i+1)
		}
		l, err := Continue(dir, after(6000), carried(seqs...), signer, FileLock(dir))
		must(t, err)
		for seq := uint64(6001); seq < 6010; seq++ {
			rec, m := record(seq)
			_, err = l.Append(rec, m)
			must(t, err)
			if seq == 6001 { // the state may be the last leaf but one
				must(t, l.Close())
				l, err = Open(dir, signer, FileLock(dir))
				must(t, err)
			}
		}
		_, err = l.Seal()
		must(t, err)
		must(t, l.Close())
		if report, err := Verify(t.Context(), dir, verifiers, nil); err != nil || !report.OK() || report.LastSeq != 6009 {
			t.Errorf("%d carried: %v, %v", n, report.Problems, err)
		}
		wantState(t, dir, 1024)
	}
}

// A state stands before a gap as it does before an event.
func TestStateBeforeAGap(t *testing.T) {
	dir := memoryDir(t)
	signer, _ := keys(t, testOrigin)
	l, err := Create(dir, genesis(), signer, FileLock(dir))
	must(t, err)
	feed(t, l, 1024) // the gap of two sequences takes one leaf
	if l.Size() != 1024 {
		t.Fatalf("%d leaves", l.Size())
	}
	leaf, err := l.AppendGap(1025, 1030)
	must(t, err)
	_, err = l.Seal()
	must(t, err)
	must(t, l.Close())
	if report := wantClean(t, dir); leaf != 1025 || report.Size != 1026 || report.LastSeq != 1030 {
		t.Errorf("the gap is leaf %d: %+v", leaf, report)
	}
	wantState(t, dir, 1024)
}
