package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// What cannot be kept on disk stays in memory, and is published from there.
func TestSpoolThatCannotBeKeptIsNotLost(t *testing.T) {
	s := &spool{path: filepath.Join(t.TempDir(), "no", "folder")}
	for n := range 3 {
		must(t, s.push(chunk{n: n + 1, stream: "stdout", data: []byte("x")}))
	}
	if s.persist() == nil {
		t.Fatal("kept in a folder that does not exist")
	}
	for n := range 3 {
		c, ok, err := s.front()
		if err != nil || !ok || c.n != n+1 {
			t.Fatalf("chunk %d: %+v, %v, %v", n+1, c, ok, err)
		}
		s.advance(c)
	}
}

// The folder of attempts goes away while a job runs: its result arrives, and the
// next job runs.
func TestRemovedStateDoesNotLoseAResult(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	id, open := atGate(y, "gate")
	y.seal()
	y.Await(id, "running", running)
	must(t, os.RemoveAll(w.shift.journal.Dir()))
	open()
	if j := y.ends(id); j.Status != lifecycle.Succeeded {
		t.Errorf("status %q", j.Status)
	}
	next := y.propose([]string{"echo", "x"})
	y.allow(next)
	y.seal()
	if j := y.ends(next); j.Status != lifecycle.Succeeded {
		t.Errorf("the next job is %q", j.Status)
	}
	w.leave()
	nothingIn(t, w.shift.journal.Dir())
}

// A job removes its own working directory, and another one is proposed there.
func TestRemovedWorkDirectory(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "").run()
	dir := y.work("here")
	must(t, os.Mkdir(dir, 0o755))
	in := func(p *events.JobProposed) { p.Cwd = dir }
	id := y.propose([]string{"sh", "-c", "rm -r " + dir + "; echo still here; exit 3"}, in)
	y.approve(id)
	y.seal()
	if j := y.ends(id); j.Status != lifecycle.Failed || j.Current().Result.ExitCode != 3 || string(y.output(id, 1, "stdout")) != "still here\n" {
		t.Errorf("status %q, %+v", j.Status, j.Current().Result)
	}
	later := y.propose([]string{"echo", "x"}, in)
	y.Await(later, "declined", func(j lifecycle.Job) bool { return len(j.Declines) == 1 })
}

// The disk of the worker's state fills up: what runs ends with its result and its
// output, nothing new starts and the board says why, and work goes on by itself
// once there is room.
func TestFullDiskStopsStartsAndLosesNothing(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "")
	dir := w.shift.journal.Dir()
	disk := lab.NewDisk(t, dir, "64k")
	w.run()
	gate := y.work("gate")
	must(t, unix.Mkfifo(gate, 0o600))
	id := y.propose([]string{"sh", "-c", fmt.Sprintf("read line < %s; head -c 500000 /dev/zero; echo end", gate)})
	y.approve(id)
	y.seal()
	y.Await(id, "running", running)
	free := disk.Fill()
	next := y.propose([]string{"echo", "x"})
	y.allow(next)
	y.seal()
	w.shows("that nothing starts", func(line string) bool { return strings.Contains(line, "cannot record attempts") })
	f, err := os.OpenFile(gate, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("\n")
	must(t, err)
	must(t, f.Close())
	j := y.ends(id)
	if r := j.Current().Result; j.Status != lifecycle.Succeeded || r.Stdout.Bytes != 500004 || r.Stdout.StoredBytes+r.Stdout.CutBytes != 500004 {
		t.Errorf("status %q, %+v", j.Status, r)
	}
	if got := y.output(id, 1, "stdout"); len(got) != 500004 || !strings.HasSuffix(string(got), "end\n") {
		t.Errorf("%d bytes of output", len(got))
	}
	if j := y.Job(next); j.Status != lifecycle.Approved {
		t.Errorf("the other job is %q", j.Status)
	}
	free()
	if j := y.ends(next); j.Status != lifecycle.Succeeded || len(j.Attempts) != 1 {
		t.Errorf("after there was room the other job is %q", j.Status)
	}
	w.leave()
	nothingIn(t, dir)
}
