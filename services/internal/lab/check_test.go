package lab

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/proc"
)

// told is a job as the stream tells it, with the ends of its attempts.
func told(name string, status lifecycle.Status, ends ...string) lifecycle.Job {
	j := lifecycle.Job{ID: "id-" + name, Status: status, Proposal: &events.JobProposed{Argv: []string{"/yard/job.sh", name}}}
	for i, end := range ends {
		a := lifecycle.Attempt{N: i + 1, EndedAt: time.Unix(int64(i+1), 0)}
		switch end {
		case "lapsed":
			a.Lapsed = true
		case "open":
			a.EndedAt = time.Time{}
		default:
			a.Result = &events.JobFinished{Outcome: end}
		}
		j.Attempts = append(j.Attempts, a)
	}
	return j
}

// The checker finds what it is there to find, and nothing else.
func TestJudge(t *testing.T) {
	const once = "a m1 10 starts\na m1 10 ends\n"
	tainted := told("a", lifecycle.Succeeded, "succeeded")
	tainted.Tainted = true
	twin := told("a", lifecycle.Succeeded, "succeeded")
	twin.ID = "another"
	for _, tc := range []struct {
		story   string
		jobs    []lifecycle.Job
		effects string
		want    []string // parts of the faults
	}{
		{"once", []lifecycle.Job{told("a", lifecycle.Succeeded, "succeeded")}, once, nil},
		{"died before the command ran", []lifecycle.Job{told("a", lifecycle.Lost, "lapsed")}, "", nil},
		{"again after a lapse", []lifecycle.Job{told("a", lifecycle.Succeeded, "lapsed", "succeeded")}, "a m1 9 starts\na m2 10 starts\na m2 10 ends\n", nil},
		{"lost", nil, "", []string{"the stream holds 0 of it"}},
		{"ran and is lost", nil, once, []string{"the stream holds 0 of it", "never proposed"}},
		{"twice in the stream", []lifecycle.Job{told("a", lifecycle.Succeeded, "succeeded"), twin}, once, []string{"the stream holds 2 of it"}},
		{"not ended", []lifecycle.Job{told("a", lifecycle.Running, "open")}, once, []string{"not in a final state", "attempt 1 of job a has no end"}},
		{"tainted", []lifecycle.Job{tainted}, once, []string{"tainted"}},
		{"twice in silence", []lifecycle.Job{told("a", lifecycle.Succeeded, "succeeded")}, once + "a m2 11 starts\na m2 11 ends\n", []string{"executed 2 times, and the stream tells of 1"}},
		{"one attempt twice", []lifecycle.Job{told("a", lifecycle.Succeeded, "lapsed", "succeeded")}, once + "a m1 11 starts\na m1 11 ends\n", []string{"one attempt of job a was executed twice"}},
		{"overlap by the lock", []lifecycle.Job{told("a", lifecycle.Failed, "lapsed", "failed")}, "a m1 10 starts\na m2 11 overlaps\n", []string{"began while another one lived"}},
		{"overlap by the order", []lifecycle.Job{told("a", lifecycle.Succeeded, "lapsed", "succeeded")}, "a m1 10 starts\na m2 11 starts\na m1 10 ends\na m2 11 ends\n", []string{"ended after the next one had begun"}},
		{"success without execution", []lifecycle.Job{told("a", lifecycle.Succeeded, "succeeded")}, "", []string{"no execution of it ran to its end"}},
		{"success without end", []lifecycle.Job{told("a", lifecycle.Succeeded, "succeeded")}, "a m1 10 starts\n", []string{"no execution of it ran to its end"}},
		{"end without start", []lifecycle.Job{told("a", lifecycle.Lost, "lapsed")}, "a m1 10 ends\n", []string{"ends that never started"}},
	} {
		t.Run(tc.story, func(t *testing.T) {
			effects, err := readEffects([]byte(tc.effects))
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]lifecycle.Job{}
			for _, j := range tc.jobs {
				all[j.ID] = j
			}
			faults := judge(all, effects, []string{"a"})
			if len(faults) != len(tc.want) {
				t.Fatalf("faults %q, want %q", faults, tc.want)
			}
			for _, want := range tc.want {
				if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, want) }) {
					t.Errorf("no fault says %q: %q", want, faults)
				}
			}
		})
	}
}

func TestChanged(t *testing.T) {
	for _, tc := range []struct {
		before, after string
		faults        int
	}{{"abc", "abc", 0}, {"abc", "abcd", 0}, {"", "a", 0}, {"abc", "ab", 1}, {"abc", "axd", 2}} {
		if got := changed([]byte(tc.before), []byte(tc.after)); len(got) != tc.faults {
			t.Errorf("%q then %q: %q, want %d", tc.before, tc.after, got, tc.faults)
		}
	}
}

func TestEffectsThatAreTorn(t *testing.T) {
	for _, text := range []string{"a m1 10\n", "a m1 10 starts a m2 11 starts\n", "a m1 ten starts\n"} {
		if _, err := readEffects([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// run executes a job without banksman; the function waits for its exit code.
func (y *Yard) run(name, marker string, deed ...string) (wait func() int) {
	y.t.Helper()
	p := y.Job(name, deed...)
	cmd := exec.Command(p.Argv[0], p.Argv[1:]...)
	cmd.Dir = p.Cwd
	cmd.Env = append(os.Environ(), yardVariable+"="+y.dir, proc.MarkerVariable+"="+marker)
	y.must(cmd.Start())
	return func() int {
		_ = cmd.Wait() // the code is in the state
		return cmd.ProcessState.ExitCode()
	}
}

// A yard finds the processes of its jobs, those without a parent too, and a
// second execution of a job that has one alive.
func TestYardSeesWhatItsJobsDo(t *testing.T) {
	y := NewYard(t)
	if left := y.Left(); len(left) != 0 {
		t.Fatalf("a new yard has processes: %q", left)
	}
	open := y.Close("gate")
	first := y.run("job", "m1", "waits", "gate")
	Eventually(t, "an execution to start", func() bool { return y.Count("starts", "job") == 1 })
	second := y.run("job", "m2", "quick")
	Eventually(t, "the other to see it", func() bool { return y.Count("overlaps", "job") == 1 })
	if left := y.Left(); len(left) == 0 {
		t.Error("the yard does not see the process of its job")
	}
	open()
	if one, two := first(), second(); one != 0 || two != 99 {
		t.Errorf("the executions exited %d and %d, want 0 and 99", one, two)
	}
	if left := y.Left(); len(left) != 0 {
		t.Errorf("the yard sees processes of ended jobs: %q", left)
	}
}
