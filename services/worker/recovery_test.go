package worker

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/leases"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/trust"
)

// mortal names the file by which a test tells a worker process of its own,
// which it is going to kill, who it is.
const mortal = "BANKSMAN_TEST_MORTAL"

// life is what such a process has to know.
type life struct {
	URL, Dir, Sign, Login string
	Root                  keys.PublicKey
}

// liveAndDie is the worker process.
func liveAndDie(path string) error {
	var l life
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	sign, err1 := keys.LoadSigner(l.Sign, nil)
	login, err2 := keys.LoadLogin(l.Login)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	conn, err := bus.Connect(context.Background(), bus.Config{
		URL: l.URL, Actor: "worker", Role: events.RoleWorker, Origin: stage.Origin, Login: login, Name: "mortal",
	})
	if err != nil {
		return err
	}
	role := New()
	return role.Run(context.Background(), &host.Env{
		Layout: site.Layout{Dir: l.Dir}, Actor: "worker", Version: "0.0.1", Log: slog.New(slog.DiscardHandler),
		Bus: conn, Append: conn.Appender(stage.Signing(sign)), Report: func(bool, string) {},
		Standing: standing.New(conn, trust.New(stage.Origin, l.Root), policy.Env{DataDir: l.Dir, Homes: []string{"/root"}}),
	})
}

// A worker that is killed takes its job's processes with it, and says at its
// next start that the attempt lapsed.
func TestKilledWorker(t *testing.T) {
	y := newYard(t, rules)
	home := t.TempDir()
	l := life{URL: y.Server.ClientURL(), Dir: y.dir, Sign: filepath.Join(home, "sign"), Login: filepath.Join(home, "login"), Root: y.Root.Public()}
	must(t, os.Chmod(home, 0o700))
	must(t, keys.WriteSigner(l.Sign, y.Signer("worker"), nil))
	must(t, keys.WriteLogin(l.Login, y.Login("worker")))
	text, err := json.Marshal(l)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(home, "life"), text, 0o600))
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), mortal+"="+filepath.Join(home, "life"))
	worker.Stderr = stage.Writer(t)
	must(t, worker.Start())

	pipe := y.work("pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	id := y.propose([]string{"sh", "-c", "setsid sh -c 'echo here; exec sleep 600' > " + pipe + " & sleep 600"})
	y.approve(id)
	y.seal()
	r, err := os.Open(pipe) // returns when the job writes
	must(t, err)
	defer r.Close()
	word := make([]byte, 5)
	_, err = r.Read(word)
	must(t, err)
	must(t, worker.Process.Kill())
	_ = worker.Wait()
	must(t, r.SetReadDeadline(time.Now().Add(patience)))
	if n, err := r.Read(word); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a process of the job outlived the worker: %d, %v", n, err)
	}

	w := y.hire("worker", "").run()
	if j := y.ends(id); j.Status != lifecycle.Lost || !j.Current().Lapsed {
		t.Errorf("status %q", j.Status)
	}
	w.leave()
	nothingIn(t, w.shift.journal.Dir())
}

// claimed lets a session that dies at once start a job, and returns what it
// would have left on disk.
func (y *yard) claimed(id string) record {
	y.t.Helper()
	j, v := y.Job(id), y.Conn("worker").Appender(y.Signing("worker"))
	seal, err := y.Conn("reader").LastSeq(y.t.Context())
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
	y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	first.leave()
	y.allow(id)
	return id, y.claimed(id)
}

func TestAttemptOfADeadWorkerLapsesAtItsNextStart(t *testing.T) {
	y := newYard(t, rules)
	id, r := abandoned(t, y)
	w := y.hire("worker", "")
	must(t, w.shift.journal.Put(r, true))
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
	nothingIn(t, w.shift.journal.Dir())
}

func TestResultOfADeadWorkerIsPublishedAtItsNextStart(t *testing.T) {
	y := newYard(t, rules)
	id, r := abandoned(t, y)
	w := y.hire("worker", "")
	rest := &spool{path: w.shift.journal.spool(r)}
	must(t, rest.push(chunk{n: 1, stream: "stdout", data: []byte("kept")}))
	must(t, rest.keep())
	j := y.Job(id)
	r.Finished = &events.JobFinished{Started: j.Current().StartedSeq, Outcome: "failed", ExitCode: 7}
	must(t, w.shift.journal.Put(r, true))
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
	j := y.Job(id)
	y.Say("other", "job.lapsed", "default", id, j.LastSeq, &events.JobLapsed{Started: j.Current().StartedSeq, SilentS: 60, Why: "lease"})
	w := y.hire("worker", "")
	r.Finished = &events.JobFinished{Started: j.Current().StartedSeq, Outcome: "succeeded"}
	must(t, w.shift.journal.Put(r, true))
	w.run()
	y.Await(id, "reported late", func(j lifecycle.Job) bool {
		return j.Status == lifecycle.Lost && j.Current().Result != nil && j.Current().Late
	})
}

func TestSilentPeersAttemptLapses(t *testing.T) {
	y := newYard(t, rules)
	id, _ := abandoned(t, y)
	w := y.hire("other", "elsewhere")
	var passed atomic.Int64
	w.shift.peers = leases.NewEar(func() time.Time { return time.Now().Add(time.Duration(passed.Load())) })
	w.run()
	w.shows("that it is ready", func(line string) bool { return line == "true " })
	j := y.Job(id)
	a := j.Current()
	long := time.Duration(a.Started.LeaseS) * time.Second * 2
	p := w.shift.peers
	p.Heard("default.worker."+a.Session, fmt.Appendf(nil, `{"running":[{"job":%q,"started":%d}]}`, id, a.StartedSeq))
	w.shift.lapsePeer(t.Context(), id) // has only just seen it
	if j := y.Job(id); j.Status != lifecycle.Running {
		t.Fatalf("lapsed at first sight: %q", j.Status)
	}
	passed.Add(int64(long))
	named := p.Silenced(long / 2)
	if !slices.Equal(named, []string{id}) {
		t.Fatalf("the silent worker had named %q", named)
	}
	p.Heard("default.worker."+a.Session, []byte(`{}`))
	w.shift.lapsePeer(t.Context(), id) // it spoke
	if j := y.Job(id); j.Status != lifecycle.Running {
		t.Fatalf("lapsed although its worker speaks: %q", j.Status)
	}
	passed.Add(int64(long))
	w.shift.lapsePeer(t.Context(), named[0])
	if j := y.Job(id); j.Status != lifecycle.Lost {
		t.Errorf("status %q after a silence of two leases", j.Status)
	}
}
