package worker

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/proc"
)

func TestStoppingWorkerLetsItsJobEnd(t *testing.T) {
	y := newYard(t, rules)
	w := y.hire("worker", "").run()
	gate := y.work("gate")
	must(t, unix.Mkfifo(gate, 0o600))
	id := y.propose([]string{"sh", "-c", "read line < " + gate})
	y.approve(id)
	y.seal()
	y.Await(id, "running", func(j lifecycle.Job) bool { return j.Status == lifecycle.Running })
	open, err := os.OpenFile(gate, os.O_WRONLY, 0)
	must(t, err)
	w.stop()
	w.shows("that it stops", func(line string) bool { return strings.Contains(line, "stopping") })
	_, err = open.WriteString("go\n")
	must(t, err)
	must(t, open.Close())
	w.leave()
	if j := y.Job(id); j.Status != lifecycle.Succeeded {
		t.Errorf("status %q", j.Status)
	}
	last, _, err := y.Conn("reader").Last(t.Context(), events.Filter("worker", w.shift.me.session))
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
	y.Await(id, "running", func(j lifecycle.Job) bool { return j.Status == lifecycle.Running })
	w.leave()
	if j := y.Job(id); j.Status != lifecycle.Cancelled || !strings.Contains(j.Ending, reasonStopped) {
		t.Errorf("status %q, ending %q", j.Status, j.Ending)
	}
	nothingIn(t, w.shift.journal.Dir())
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
		j := y.Await(id, "declined", func(j lifecycle.Job) bool { return len(j.Declines) > 0 })
		if d := j.Declines[0]; d.Code != code || d.Reason == "" {
			t.Errorf("declined as %+v, want %s", d, code)
		}
	}
}

func TestJobSeesNothingOfBanksman(t *testing.T) {
	if err := proc.Namespaces(os.TempDir()); err != nil {
		need.Missing(t, "%v", err)
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
		y.Await(id, "running", func(j lifecycle.Job) bool { return j.Status == lifecycle.Running })
	}
	open, err := os.OpenFile(gate, os.O_WRONLY, 0)
	must(t, err)
	y.Down()
	w.fewerThan(2)
	y.Up()
	j := y.ends(safe)
	if a := j.Current(); j.Status != lifecycle.Failed || a.Result.Error != reasonFenced {
		t.Errorf("status %q, result %+v", j.Status, a.Result)
	}
	if j := y.Job(unsafe); j.Status != lifecycle.Running {
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
	y.Await(id, "resolved", func(j lifecycle.Job) bool { return j.Resolution != nil })
	first.leave()
	y.allow(id)
	y.seal()
	taking, enough := context.WithCancel(t.Context())
	must(t, y.Conn("worker").Consume(taking, "run-default", 1, func(ctx context.Context, d *bus.Delivery) {
		must(t, d.Ack(ctx))
		enough()
	}))
	stop, err := y.Conn("auditor").Serve(t.Context(), "banksman-auditor", "1.0.0", "index", map[string]bus.Endpoint{
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
