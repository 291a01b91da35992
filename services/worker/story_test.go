package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/proc"
)

// rules allow echo and ask for everything in the ground's bin and for sh.
const rules = `version = 1
[[rule]]
id = "echo"
program = "echo"
decision = "allow"
[[rule]]
id = "deploy"
program = ["%s/bin/deploy", "sh"]
code_args = ["script"]
decision = "ask"
`

const noRules = `version = 1
[[rule]]
id = "nothing"
program = ["echo", "deploy", "sh"]
decision = "deny"
reason = "not today"
`

func TestAllowedJobRunsAndItsOutputArrives(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "").run()
	id := y.propose([]string{"echo", "hello", "world"})
	y.allow(id)
	y.seal()
	j := y.ends(id)
	a := j.Current()
	if j.Status != lifecycle.Succeeded || a == nil || a.Result == nil {
		t.Fatalf("status %q, attempt %+v", j.Status, a)
	}
	got := y.output(id, 1, "stdout")
	if string(got) != "hello world\n" {
		t.Errorf("output %q", got)
	}
	want := events.Output{Bytes: 12, StoredBytes: 12, SHA256: events.Digest(got), Chunks: 1}
	if a.Result.Stdout != want {
		t.Errorf("output described as %+v, want %+v", a.Result.Stdout, want)
	}
	if a.Started.Bound != proc.BoundFD || a.Started.Sealed < j.LastApproval() {
		t.Errorf("started %+v", a.Started)
	}
	if j.Resolution.Cwd != filepath.Join(y.ground, "work") || j.Resolution.Program.Path == "" {
		t.Errorf("resolution %+v", j.Resolution)
	}
}

// The rule's ceiling on output holds where the worker would keep more.
func TestPolicyBoundsTheOutputThatIsKept(t *testing.T) {
	y := newYard(t, strings.Replace(rules, "program = \"echo\"\n", "program = \"echo\"\nmax_output_bytes = 4\n", 1))
	y.hire("worker", "").run()
	id := y.propose([]string{"echo", "hello", "world"})
	y.allow(id)
	y.seal()
	j := y.ends(id)
	a := j.Current()
	if a == nil || a.Result == nil {
		t.Fatalf("attempt %+v", a)
	}
	out := a.Result.Stdout
	if got := y.output(id, 1, "stdout"); string(got) != "hed\n" || out.Bytes != 12 || out.StoredBytes != 4 || out.CutBytes != 8 {
		t.Errorf("kept %q, described as %+v", got, out)
	}
}

func TestChangedProgramIsNotExecuted(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "").run()
	deploy := y.program("deploy", "touch "+y.work("ran"))
	id := y.propose([]string{deploy})
	y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	y.program("deploy", "touch "+y.work("ran-changed"))
	y.approve(id)
	y.seal()
	j := y.ends(id)
	if j.Status != lifecycle.DeadLetter || !strings.Contains(j.Ending, deploy) || len(j.Attempts) != 0 {
		t.Errorf("status %q, ending %q, attempts %v", j.Status, j.Ending, j.Attempts)
	}
	nothingIn(t, filepath.Join(y.ground, "work"))
}

func TestChangedScriptArgumentIsNotExecuted(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "").run()
	must(t, os.WriteFile(y.work("x.sh"), []byte("touch ran\n"), 0o644))
	id := y.propose([]string{"sh", "x.sh"})
	j := y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	if len(j.Resolution.Files) != 1 || j.Resolution.Files[0].Arg != 1 {
		t.Fatalf("files %+v", j.Resolution.Files)
	}
	must(t, os.WriteFile(y.work("x.sh"), []byte("touch ran-changed\n"), 0o644))
	y.approve(id)
	y.seal()
	if j := y.ends(id); j.Status != lifecycle.DeadLetter || !strings.Contains(j.Ending, "argument 1") {
		t.Errorf("status %q, ending %q", j.Status, j.Ending)
	}
}

func TestAnotherWorkerThatSeesOtherFilesDeclines(t *testing.T) {
	y := newYard(t, rules)
	first := y.hire("worker", "").run()
	deploy := y.program("deploy", "touch "+y.work("ran"))
	id := y.propose([]string{deploy})
	y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	first.leave()
	y.program("deploy", "touch "+y.work("ran-changed"))
	y.approve(id)
	y.seal()
	y.hire("other", "elsewhere").run()
	j := y.Await(id, "declined", func(j lifecycle.Job) bool { return len(j.Declines) > 0 })
	if d := j.Declines[0]; d.Actor != "other" || d.Code != codeProgramChanged || j.Status != lifecycle.Approved {
		t.Errorf("decline %+v in status %q", d, j.Status)
	}
	nothingIn(t, filepath.Join(y.ground, "work"))
}

func TestStricterPolicyStopsAnApprovedJob(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "").run()
	id := y.propose([]string{"echo", "x"})
	y.allow(id)
	y.publish(noRules)
	y.seal()
	if j := y.ends(id); j.Status != lifecycle.DeadLetter || !strings.Contains(j.Ending, "not today") {
		t.Errorf("status %q, ending %q", j.Status, j.Ending)
	}
}

func TestForgedApprovalStartsNothing(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	id := y.propose([]string{"echo", "x"})
	j := y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	forger := y.Conn("gate").Appender(y.Signing("reader")) // the right subject, another key
	_, err := forger.Append(t.Context(), events.For("job.approved", "default", id, "gate"), j.LastSeq, y.approval(id, "policy"))
	must(t, err)
	y.seal()
	after := y.propose([]string{"echo", "after"}) // shows that the worker has got past the forged one
	y.allow(after)
	y.seal()
	y.ends(after)
	w.leave()
	if j := y.Job(id); !j.Tainted || len(j.Attempts) != 0 {
		t.Errorf("tainted %v, attempts %v", j.Tainted, j.Attempts)
	}
}

func TestApprovedJobWaitsForTheSeal(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	y.seal()
	id := y.propose([]string{"echo", "x"})
	y.allow(id)
	w.shows("a job that waits", func(line string) bool { return strings.Contains(line, "waiting for seal since 20") })
	y.sealAs("auditor", "closed")
	w.shows("closed dispatch", func(line string) bool { return strings.Contains(line, "dispatch closed") })
	if j := y.Job(id); j.Status != lifecycle.Approved {
		t.Fatalf("status %q before the seal", j.Status)
	}
	y.seal()
	if j := y.ends(id); j.Status != lifecycle.Succeeded {
		t.Errorf("status %q after the seal", j.Status)
	}
}

// After the bus went away, the newest seal in it says nothing until the auditor has
// looked at what came back.
func TestNoJobStartsUntilTheAuditorHasLooked(t *testing.T) {
	y := newYard(t, rules)
	y.closed.Store(true)
	w := y.hire("worker", "").run()
	id := y.propose([]string{"echo", "x"})
	y.allow(id)
	y.seal()
	w.shows("the auditor's word", func(line string) bool { return strings.Contains(line, "dispatch closed") })
	if j := y.Job(id); j.Status != lifecycle.Approved {
		t.Fatalf("status %q against the auditor's word", j.Status)
	}
	y.closed.Store(false)
	if j := y.ends(id); j.Status != lifecycle.Succeeded {
		t.Errorf("status %q afterwards", j.Status)
	}
	y.closed.Store(true) // it is asked once on each connection; from now on seals tell
	next := y.propose([]string{"echo", "y"})
	y.allow(next)
	y.seal()
	y.ends(next)
}

func TestForgedSealCoversNothing(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	y.seal()
	id := y.propose([]string{"echo", "x"})
	y.allow(id)
	restore := y.Lend("auditor", y.Conn("auditor").Appender(y.Signing("reader")))
	y.seal()
	w.shows("a job that waits", func(line string) bool { return strings.Contains(line, "waiting for seal") })
	if j := y.Job(id); j.Status != lifecycle.Approved {
		t.Fatalf("status %q under a forged seal", j.Status)
	}
	restore()
	y.seal()
	y.ends(id)
}

func TestExpiredApprovalStartsNothing(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	id := y.propose([]string{"sh", "-c", "touch " + y.work("ran")})
	y.approve(id, func(a *events.JobApproved) { a.ValidS = 1 })
	w.shows("a job that waits", func(line string) bool { return strings.Contains(line, "waiting for seal") })
	j := y.Job(id)
	must(t, sleep(t.Context(), time.Until(j.ApprovalExpires().Add(100*time.Millisecond))))
	y.seal()
	y.Await(id, "refused", func(j lifecycle.Job) bool { return j.LastSeq > j.LastApproval() })
	w.leave()
	if j := y.Job(id); j.Status != lifecycle.Approved || len(j.Attempts) != 0 || j.Tainted {
		t.Errorf("status %q, attempts %v, tainted %v", j.Status, j.Attempts, j.TaintCode)
	}
	nothingIn(t, filepath.Join(y.ground, "work"))
	nothingIn(t, w.shift.journal.Dir())
}

func TestTwoWorkersStartAJobOnce(t *testing.T) {
	y := newYard(t, rules)
	a, b := y.hire("worker", "one"), y.hire("worker", "two")
	a.run()
	id := y.propose([]string{"sh", "-c", "echo ran >> " + y.work("log")})
	y.approve(id)
	y.seal()
	b.run()
	// Both are told of it at once, beside the queue.
	a.shift.later(t.Context(), id, time.Time{})
	b.shift.later(t.Context(), id, time.Time{})
	y.ends(id)
	a.leave()
	b.leave()
	starts, err := y.Conn("reader").Read(t.Context(), 1, "bm.job.default."+id+".started.>", 10)
	must(t, err)
	text, _ := os.ReadFile(y.work("log"))
	if len(starts) != 1 || string(text) != "ran\n" {
		t.Errorf("%d starts, the job wrote %q", len(starts), text)
	}
}

func TestResultArrivesAfterTheBusWasAway(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	gate := y.work("gate")
	must(t, unix.Mkfifo(gate, 0o600))
	id := y.propose([]string{"sh", "-c", "echo begun; read line < " + gate + "; echo $line; exit 3"})
	y.approve(id)
	y.seal()
	y.Await(id, "running", func(j lifecycle.Job) bool { return j.Status == lifecycle.Running })
	open, err := os.OpenFile(gate, os.O_WRONLY, 0) // returns when the job reads
	must(t, err)
	y.Down()
	w.shows("a bus that is away", func(line string) bool { return strings.Contains(line, "the bus is away") })
	_, err = open.WriteString("while away\n")
	must(t, err)
	must(t, open.Close())
	quietly := make(chan struct{})
	if !w.shift.quiet(patience, quietly, nil) {
		t.Fatal("the job did not end while the bus was away")
	}
	y.Up()
	j := y.ends(id)
	if a := j.Current(); j.Status != lifecycle.Failed || a.Result.ExitCode != 3 {
		t.Errorf("status %q, result %+v", j.Status, a.Result)
	}
	if got := y.output(id, 1, "stdout"); string(got) != "begun\nwhile away\n" {
		t.Errorf("output %q", got)
	}
	w.leave()
	nothingIn(t, w.shift.journal.Dir())
}
