package worker

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
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

func TestChangedProgramIsNotExecuted(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "").run()
	deploy := y.program("deploy", "touch "+y.work("ran"))
	id := y.propose([]string{deploy})
	y.await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
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
	j := y.await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
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
	y.await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	first.leave()
	y.program("deploy", "touch "+y.work("ran-changed"))
	y.approve(id)
	y.seal()
	y.hire("other", "elsewhere").run()
	j := y.await(id, "declined", func(j lifecycle.Job) bool { return len(j.Declines) > 0 })
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
	j := y.await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	forger := y.conn("gate").Appender(signing{y.signers["reader"]}) // the right subject, another key
	_, err := forger.Append(t.Context(), events.For("job.approved", "default", id, "gate"), j.LastSeq, y.approval(id, "policy"))
	must(t, err)
	y.seal()
	after := y.propose([]string{"echo", "after"}) // shows that the worker has got past the forged one
	y.allow(after)
	y.seal()
	y.ends(after)
	w.leave()
	if j := y.job(id); !j.Tainted || len(j.Attempts) != 0 {
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
	if j := y.job(id); j.Status != lifecycle.Approved {
		t.Fatalf("status %q before the seal", j.Status)
	}
	y.seal()
	if j := y.ends(id); j.Status != lifecycle.Succeeded {
		t.Errorf("status %q after the seal", j.Status)
	}
}

func TestForgedSealCoversNothing(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	y.seal()
	id := y.propose([]string{"echo", "x"})
	y.allow(id)
	honest := y.voices["auditor"]
	y.voices["auditor"] = y.conn("auditor").Appender(signing{y.signers["reader"]})
	y.seal()
	w.shows("a job that waits", func(line string) bool { return strings.Contains(line, "waiting for seal") })
	if j := y.job(id); j.Status != lifecycle.Approved {
		t.Fatalf("status %q under a forged seal", j.Status)
	}
	y.voices["auditor"] = honest
	y.seal()
	y.ends(id)
}

func TestExpiredApprovalStartsNothing(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	id := y.propose([]string{"sh", "-c", "touch " + y.work("ran")})
	y.approve(id, func(a *events.JobApproved) { a.ValidS = 1 })
	w.shows("a job that waits", func(line string) bool { return strings.Contains(line, "waiting for seal") })
	j := y.job(id)
	must(t, sleep(t.Context(), time.Until(j.ApprovalExpires().Add(100*time.Millisecond))))
	y.seal()
	y.await(id, "refused", func(j lifecycle.Job) bool { return j.LastSeq > j.LastApproval() })
	w.leave()
	if j := y.job(id); j.Status != lifecycle.Approved || len(j.Attempts) != 0 || j.Tainted {
		t.Errorf("status %q, attempts %v, tainted %v", j.Status, j.Attempts, j.TaintCode)
	}
	nothingIn(t, filepath.Join(y.ground, "work"))
	nothingIn(t, w.shift.journal.dir)
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
	starts, err := y.conn("reader").Read(t.Context(), 1, "bm.job.default."+id+".started.>", 10)
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
	y.await(id, "running", func(j lifecycle.Job) bool { return j.Status == lifecycle.Running })
	open, err := os.OpenFile(gate, os.O_WRONLY, 0) // returns when the job reads
	must(t, err)
	y.close()
	w.shows("a bus that is away", func(line string) bool { return strings.Contains(line, "the bus is away") })
	_, err = open.WriteString("while away\n")
	must(t, err)
	must(t, open.Close())
	quietly := make(chan struct{})
	if !w.shift.quiet(patience, quietly) {
		t.Fatal("the job did not end while the bus was away")
	}
	y.open()
	j := y.ends(id)
	if a := j.Current(); j.Status != lifecycle.Failed || a.Result.ExitCode != 3 {
		t.Errorf("status %q, result %+v", j.Status, a.Result)
	}
	if got := y.output(id, 1, "stdout"); string(got) != "begun\nwhile away\n" {
		t.Errorf("output %q", got)
	}
	w.leave()
	nothingIn(t, w.shift.journal.dir)
}

// claimed lets a session that dies at once start a job, and returns what it
// would have left on disk.
func (y *yard) claimed(id string) record {
	y.t.Helper()
	j, v := y.job(id), y.conn("worker").Appender(signing{y.signers["worker"]})
	seal, err := y.conn("reader").LastSeq(y.t.Context())
	must(y.t, err)
	_, err = v.Append(y.t.Context(), events.For("job.started", "default", id, "worker"), j.LastSeq,
		claim(j, j.Approvals[0].Policy, seal, 15))
	must(y.t, err)
	return record{Job: id, Pool: "default", Attempt: 1, Session: v.Session(), Marker: "leftover-" + v.Session()}
}

// abandoned makes a job that an earlier life of the worker was running.
func abandoned(t *testing.T, y *yard) (id string, r record) {
	t.Helper()
	first := y.hire("worker", "").run()
	id = y.propose([]string{"echo", "x"})
	y.await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	first.leave()
	y.allow(id)
	return id, y.claimed(id)
}

func TestAttemptOfADeadWorkerLapsesAtItsNextStart(t *testing.T) {
	y := newYard(t, rules)
	id, r := abandoned(t, y)
	w := y.hire("worker", "")
	must(t, w.shift.journal.put(r, true))
	left := exec.Command("sleep", "600")
	left.Env = append(os.Environ(), proc.MarkerVariable+"="+r.Marker)
	must(t, left.Start())
	w.run()
	err := left.Wait()
	if status, ok := left.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("what the dead worker had left ended by itself: %v", err)
	}
	j := y.ends(id)
	if j.Status != lifecycle.Lost || !j.Current().Lapsed {
		t.Errorf("status %q", j.Status)
	}
	w.leave()
	nothingIn(t, w.shift.journal.dir)
}

func TestResultOfADeadWorkerIsPublishedAtItsNextStart(t *testing.T) {
	y := newYard(t, rules)
	id, r := abandoned(t, y)
	w := y.hire("worker", "")
	rest := &spool{path: w.shift.journal.spool(r)}
	must(t, rest.push(chunk{n: 1, stream: "stdout", data: []byte("kept")}))
	must(t, rest.keep())
	j := y.job(id)
	r.Finished = &events.JobFinished{Started: j.Current().StartedSeq, Outcome: "failed", ExitCode: 7}
	must(t, w.shift.journal.put(r, true))
	w.run()
	if j := y.ends(id); j.Status != lifecycle.Failed || j.Current().Result.ExitCode != 7 {
		t.Errorf("status %q, %+v", j.Status, j.Current().Result)
	}
	if got := y.output(id, 1, "stdout"); string(got) != "kept" {
		t.Errorf("output %q", got)
	}
}

func TestLateResultIsAcceptedOnceAndMarked(t *testing.T) {
	y := newYard(t, rules)
	id, r := abandoned(t, y)
	j := y.job(id)
	y.say("other", "job.lapsed", "default", id, j.LastSeq, &events.JobLapsed{Started: j.Current().StartedSeq, SilentS: 60, Why: "lease"})
	w := y.hire("worker", "")
	r.Finished = &events.JobFinished{Started: j.Current().StartedSeq, Outcome: "succeeded"}
	must(t, w.shift.journal.put(r, true))
	w.run()
	y.await(id, "reported late", func(j lifecycle.Job) bool {
		return j.Status == lifecycle.Lost && j.Current().Result != nil && j.Current().Late
	})
}

func TestSilentPeersAttemptLapses(t *testing.T) {
	y := newYard(t, rules)
	id, _ := abandoned(t, y)
	w := y.hire("other", "elsewhere").run()
	w.shows("that it is ready", func(line string) bool { return line == "true " })
	j := y.job(id)
	a := j.Current()
	long := time.Duration(a.Started.LeaseS) * time.Second * 2

	w.shift.lapsePeer(t.Context(), id) // has only just seen it
	if j := y.job(id); j.Status != lifecycle.Running {
		t.Fatalf("lapsed at first sight: %q", j.Status)
	}
	p := w.shift.peers
	p.mu.Lock()
	p.connected, p.known[a.StartedSeq] = time.Now().Add(-long), time.Now().Add(-long)
	p.mu.Unlock()
	p.heard("default.worker."+a.Session, []byte(`{}`))
	w.shift.lapsePeer(t.Context(), id) // it spoke
	if j := y.job(id); j.Status != lifecycle.Running {
		t.Fatalf("lapsed although its worker speaks: %q", j.Status)
	}
	p.mu.Lock()
	p.voices[a.Session] = voice{at: time.Now().Add(-long), running: []underway{{Job: id}}}
	p.mu.Unlock()
	for _, job := range p.silenced(time.Now().Add(-long / 2)) {
		w.shift.lapsePeer(t.Context(), job)
	}
	if j := y.job(id); j.Status != lifecycle.Lost {
		t.Errorf("status %q after a silence of two leases", j.Status)
	}
}

func TestStoppingWorkerLetsItsJobEnd(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	gate := y.work("gate")
	must(t, unix.Mkfifo(gate, 0o600))
	id := y.propose([]string{"sh", "-c", "read line < " + gate})
	y.approve(id)
	y.seal()
	y.await(id, "running", func(j lifecycle.Job) bool { return j.Status == lifecycle.Running })
	open, err := os.OpenFile(gate, os.O_WRONLY, 0)
	must(t, err)
	w.stop()
	w.shows("that it stops", func(line string) bool { return strings.Contains(line, "stopping") })
	_, err = open.WriteString("go\n")
	must(t, err)
	must(t, open.Close())
	w.leave()
	if j := y.job(id); j.Status != lifecycle.Succeeded {
		t.Errorf("status %q", j.Status)
	}
	last, _, err := y.conn("reader").Last(t.Context(), events.Filter("worker", w.shift.me.session))
	must(t, err)
	if !strings.Contains(last.Subject, ".stopped.") {
		t.Errorf("the worker's last word is %s", last.Subject)
	}
}

func TestStoppingWorkerCancelsWhatDoesNotEnd(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "", func(c *Config) { c.DrainS, c.GraceS = 0, 1 }).run()
	id := y.propose([]string{"sh", "-c", "sleep 600"})
	y.approve(id)
	y.seal()
	y.await(id, "running", func(j lifecycle.Job) bool { return j.Status == lifecycle.Running })
	w.leave()
	if j := y.job(id); j.Status != lifecycle.Cancelled || !strings.Contains(j.Ending, reasonStopped) {
		t.Errorf("status %q, ending %q", j.Status, j.Ending)
	}
	nothingIn(t, w.shift.journal.dir)
}

func TestFailedJobIsTriedAgainAsOftenAsApproved(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "").run()
	id := y.propose([]string{"sh", "-c", "echo x >> " + y.work("tries") + "; exit 1"},
		func(p *events.JobProposed) { p.MaxAttempts = 2 })
	y.approve(id)
	y.seal()
	j := y.ends(id)
	tries, _ := os.ReadFile(y.work("tries"))
	if j.Status != lifecycle.Failed || len(j.Attempts) != 2 || string(tries) != "x\nx\n" {
		t.Errorf("status %q, %d attempts, the job ran %q", j.Status, len(j.Attempts), tries)
	}
}

func TestJobThatNobodyCanRunHereIsDeclined(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "").run()
	for code, id := range map[string]string{
		proc.CodeNoProgram: y.propose([]string{filepath.Join(y.ground, "bin", "deploy")}),
		proc.CodeNoDir:     y.propose([]string{"echo"}, func(p *events.JobProposed) { p.Cwd = y.work("nowhere") }),
	} {
		j := y.await(id, "declined", func(j lifecycle.Job) bool { return len(j.Declines) > 0 })
		if d := j.Declines[0]; d.Code != code || d.Reason == "" {
			t.Errorf("declined as %+v, want %s", d, code)
		}
	}
}

func TestJobSeesNothingOfBanksman(t *testing.T) {
	if err := proc.Namespaces(); err != nil {
		if os.Getenv("BANKSMAN_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skip("user namespaces:", err)
	}
	y := newYard(t, rules)
	t.Setenv("BANKSMAN_TOKEN", "secret")
	y.hire("worker", "").run()
	must(t, os.WriteFile(filepath.Join(y.dir, "secret"), []byte("x"), 0o600))
	id := y.propose([]string{"sh", "-c", "ls -A " + y.dir + "; env"})
	y.approve(id)
	y.seal()
	y.ends(id)
	got := string(y.output(id, 1, "stdout"))
	if strings.Contains(got, "secret") || !strings.Contains(got, "PATH=/usr/local/sbin:") {
		t.Errorf("the job saw\n%s", got)
	}
}

func TestUnconfirmedHeartbeatsEndARetrySafeJobOnly(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "", func(c *Config) { c.LeaseS = 3 }).run()
	safe := y.propose([]string{"sh", "-c", "sleep 600"}, func(p *events.JobProposed) { p.RetrySafe = true })
	y.approve(safe)
	gate := y.work("gate")
	must(t, unix.Mkfifo(gate, 0o600))
	unsafe := y.propose([]string{"sh", "-c", "read line < " + gate})
	y.approve(unsafe)
	y.seal()
	for _, id := range []string{safe, unsafe} {
		y.await(id, "running", func(j lifecycle.Job) bool { return j.Status == lifecycle.Running })
	}
	open, err := os.OpenFile(gate, os.O_WRONLY, 0)
	must(t, err)
	y.close()
	w.fewerThan(2)
	y.open()
	j := y.ends(safe)
	if a := j.Current(); j.Status != lifecycle.Failed || a.Result.Error != reasonFenced {
		t.Errorf("status %q, result %+v", j.Status, a.Result)
	}
	if j := y.job(unsafe); j.Status != lifecycle.Running {
		t.Errorf("the other job is %q", j.Status)
	}
	must(t, open.Close())
	y.ends(unsafe)
}

// fewerThan waits until fewer jobs run.
func (h *hand) fewerThan(n int) {
	h.y.t.Helper()
	ctx, cancel := context.WithTimeout(h.y.t.Context(), patience)
	defer cancel()
	for {
		h.shift.mu.Lock()
		now, fewer := len(h.shift.running), h.shift.fewer
		h.shift.mu.Unlock()
		if now < n {
			return
		}
		select {
		case <-fewer:
		case <-ctx.Done():
			h.y.t.Fatalf("%d jobs run still", now)
		}
	}
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		t.Errorf("%s holds %s", dir, e.Name())
	}
}

func TestNoMoreJobsThanSlotsRunAtOnce(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "", func(c *Config) { c.Slots = 2 }).run()
	must(t, os.WriteFile(y.work("job.sh"), []byte(`
touch running.$$
ls running.* | wc -l >> counts
sleep 0.05
rm running.$$
`), 0o644))
	var ids []string
	for range 6 {
		id := y.propose([]string{"sh", "job.sh"})
		y.approve(id)
		ids = append(ids, id)
	}
	y.seal()
	for _, id := range ids {
		if j := y.ends(id); j.Status != lifecycle.Succeeded {
			t.Errorf("status %q", j.Status)
		}
	}
	counts, err := os.ReadFile(y.work("counts"))
	must(t, err)
	for _, n := range strings.Fields(string(counts)) {
		if n != "1" && n != "2" {
			t.Errorf("%s jobs ran at once", n)
		}
	}
}

func TestJobWhoseDeliveryWasLostIsFoundByTheIndex(t *testing.T) {
	y := newYard(t, rules)
	first := y.hire("worker", "").run()
	id := y.propose([]string{"echo", "x"})
	y.await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	first.leave()
	y.allow(id)
	y.seal()
	taking, enough := context.WithCancel(t.Context())
	must(t, y.conn("worker").Consume(taking, "run-default", 1, func(ctx context.Context, d *bus.Delivery) {
		must(t, d.Ack(ctx))
		enough()
	}))
	stop, err := y.conn("auditor").Serve(t.Context(), "banksman-auditor", "1.0.0", "index", map[string]bus.Endpoint{
		"bmq.ready.*": func(context.Context, []byte) (any, error) {
			return map[string][]string{"jobs": {id, "unknown", "*"}}, nil
		},
	})
	must(t, err)
	defer stop()
	y.hire("worker", "").run()
	if j := y.ends(id); j.Status != lifecycle.Succeeded {
		t.Errorf("status %q", j.Status)
	}
}
