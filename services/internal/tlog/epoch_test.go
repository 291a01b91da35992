package tlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// after is the genesis of a log that goes on after another one.
func after(through uint64) Genesis {
	g := genesis()
	g.Origin, g.Old = "log.example.org/banksman/epoch-2", Before{Origin: testOrigin, Size: 7, Root: Hash{9}, Through: through, Why: "requested"}
	return g
}

// carried hands over records of these sequences.
func carried(seqs ...uint64) Carry {
	return func(add func(Record, Meta) error) error {
		for _, seq := range seqs {
			rec := Record{Seq: seq, Time: genesis().Created, Subject: "bm.job.default.a.proposed.proposer", Payload: []byte{byte(seq)}}
			if err := add(rec, Meta{Job: "a"}); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestEpochEntryIsStrict(t *testing.T) {
	g := after(30)
	e := g.entry()
	text := string(e.Encode())
	back, err := ParseEntry([]byte(text))
	if diff := cmp.Diff(e, back); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	for _, change := range []struct{ from, to string }{
		{"old " + testOrigin + " 7 ", "old " + testOrigin + " 07 "}, {" 7 ", " 0 "}, {"through 30", "through 030"},
		{"why requested", "why "}, {"why requested", "why a b"}, {"why requested\n", ""}, {"prev 0", "prev 1"},
		{"/v1 epoch", "/v1 genesis"}, {"old " + testOrigin, "old -"},
	} {
		other := strings.Replace(text, change.from, change.to, 1)
		if other == text {
			t.Fatalf("%q is not in the entry", change.from)
		}
		if _, err := ParseEntry([]byte(other)); err == nil {
			t.Errorf("%q for %q is taken", change.to, change.from)
		}
	}
}

// A log that goes on holds what was carried, with holes, and then every sequence; the
// same after it was opened again, whichever of its derived files are lost.
func TestLogGoesOnAfterAnother(t *testing.T) {
	dir := t.TempDir()
	signer, verifiers := keys(t, "log.example.org/banksman/epoch-2")
	l, err := Continue(dir, after(30), carried(1, 2, 17, 29), signer, FileLock(dir))
	if err != nil {
		t.Fatal(err)
	}
	if l.LastSeq() != 30 || l.SealedSize() != 5 {
		t.Fatalf("it ends at %d with %d sealed leaves", l.LastSeq(), l.SealedSize())
	}
	own := Record{Seq: 31, Time: genesis().Created, Subject: "bm.job.default.a.approved.p1", Payload: []byte("yes")}
	if _, err := l.Append(Record{Seq: 32, Time: own.Time, Subject: own.Subject}, Meta{}); !errors.Is(err, ErrHole) {
		t.Errorf("a hole behind what was carried: %v", err)
	}
	if _, err := l.Append(Record{Seq: 18, Time: own.Time, Subject: own.Subject}, Meta{}); !errors.Is(err, ErrOrder) {
		t.Errorf("something carried late: %v", err)
	}
	if _, err := l.Append(own, Meta{Job: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Seal(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []string{"", hashesName, offsetsName, jobsName} {
		if lost != "" {
			if err := os.Remove(filepath.Join(dir, lost)); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Open(dir, signer, FileLock(dir))
		if err != nil {
			t.Fatalf("without %q: %v", lost, err)
		}
		if again.LastSeq() != 31 || again.Size() != 6 {
			t.Errorf("without %q it ends at %d with %d leaves", lost, again.LastSeq(), again.Size())
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	report, err := Verify(t.Context(), dir, verifiers, nil)
	if err != nil || !report.OK() || report.Old != after(30).Old || report.LastSeq != 31 {
		t.Errorf("%+v, %v", report, err)
	}
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e, _, err := r.Entry(5)
	if err != nil || e.JobPrev != 4 {
		t.Errorf("the job's event before is leaf %d, %v", e.JobPrev, err)
	}
	for leaves, want := range map[int64]uint64{1: 30, 3: 30, 5: 30, 6: 31} {
		if got, err := r.Covers(leaves); err != nil || got != want {
			t.Errorf("%d leaves cover %d, %v", leaves, got, err)
		}
	}
}

// What cannot be carried stops the log before it exists: it is begun anew.
func TestCarryIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	signer, _ := keys(t, "log.example.org/banksman/epoch-2")
	for name, carry := range map[string]Carry{
		"beyond the log before": carried(1, 31), "out of order": carried(5, 4), "twice": carried(5, 5),
		"unreadable": func(func(Record, Meta) error) error { return os.ErrPermission },
	} {
		if _, err := Continue(dir, after(30), carry, signer, FileLock(dir)); err == nil {
			t.Fatalf("%s: taken", name)
		}
	}
	l, err := Continue(dir, after(30), carried(3), signer, FileLock(dir))
	if err != nil {
		t.Fatal(err)
	}
	if l.Size() != 2 {
		t.Errorf("%d leaves", l.Size())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
