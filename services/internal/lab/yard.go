package lab

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/proc"
)

//go:embed job.sh
var jobScript []byte

// yardVariable is what the environment of a yard's jobs says beside the marker.
const yardVariable = "YARD"

// Yard is a folder in which jobs do real work: each takes a lock, appends to a
// file and leaves processes behind.
type Yard struct {
	t   testing.TB
	dir string
}

// NewYard makes a yard.
func NewYard(t testing.TB) *Yard {
	t.Helper()
	needs(t, "flock", "setsid")
	y := &Yard{t: t, dir: t.TempDir()}
	for _, dir := range []string{"locks", "gates", "work"} {
		y.must(os.Mkdir(filepath.Join(y.dir, dir), 0o700))
	}
	y.must(os.WriteFile(y.script(), jobScript, 0o700))
	y.must(os.WriteFile(y.Policy(), fmt.Appendf(nil, "version = 1\n\n[[rule]]\nid = \"yard\"\nprogram = %q\nenv = [%q]\ndecision = \"allow\"\n", y.script(), yardVariable), 0o600))
	return y
}

// needs skips a test on a machine without some tools of util-linux or without
// /proc, and fails it where everything has to be there.
func needs(t testing.TB, tools ...string) {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		need.Missing(t, "jobs of a yard: %v", err)
	}
	for _, tool := range tools {
		need.Program(t, tool)
	}
}

func (y *Yard) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *Yard) script() string { return filepath.Join(y.dir, "job.sh") }

// Work is the folder in which the yard's jobs run.
func (y *Yard) Work() string { return filepath.Join(y.dir, "work") }

// Policy is the file of a policy that allows the yard's jobs and nothing else.
func (y *Yard) Policy() string { return filepath.Join(y.dir, "policy.toml") }

// Job is the proposal of a job. Deeds are in job.sh. The name is the key of
// idempotency, so that proposing it again makes no second job.
func (y *Yard) Job(name string, deed ...string) agentapi.Proposal {
	return agentapi.Proposal{
		Argv: append([]string{y.script(), name}, deed...), Cwd: y.Work(),
		Env: map[string]string{yardVariable: y.dir}, IdempotencyKey: name, TimeoutS: 600,
	}
}

// Close makes a gate at which jobs wait until open is called or the test ends.
func (y *Yard) Close(gate string) (open func()) {
	y.t.Helper()
	f, err := os.Create(filepath.Join(y.dir, "gates", gate))
	y.must(err)
	y.must(syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	y.t.Cleanup(func() { f.Close() })
	return func() { f.Close() }
}

// An Effect is a line that an execution has appended.
type Effect struct {
	Job    string // name
	Marker string // of the attempt
	PID    int
	What   string // starts, ends, overlaps or scattered
}

// Effects are all lines so far.
func (y *Yard) Effects() []Effect {
	y.t.Helper()
	text, err := os.ReadFile(filepath.Join(y.dir, "effects"))
	if os.IsNotExist(err) {
		return nil
	}
	y.must(err)
	effects, err := readEffects(text)
	y.must(err)
	return effects
}

func readEffects(text []byte) ([]Effect, error) {
	var out []Effect
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if len(words) != 4 {
			return nil, fmt.Errorf("line %q of the effects is none: a job's lines are written in one piece", line)
		}
		pid, err := strconv.Atoi(words[2])
		if err != nil {
			return nil, fmt.Errorf("line %q of the effects: %w", line, err)
		}
		out = append(out, Effect{Job: words[0], Marker: words[1], PID: pid, What: words[3]})
	}
	return out, nil
}

// Count is how many lines say something, of one job or of all.
func (y *Yard) Count(what, job string) int {
	y.t.Helper()
	n := 0
	for _, e := range y.Effects() {
		if e.What == what && (job == "" || e.Job == job) {
			n++
		}
	}
	return n
}

// Deeds are what the lines of a job say, in order.
func (y *Yard) Deeds(job string) []string {
	y.t.Helper()
	var out []string
	for _, e := range y.Effects() {
		if e.Job == job {
			out = append(out, e.What)
		}
	}
	return out
}

// Left lists the processes of the yard's jobs that are alive, whoever their
// parent is, by the marker and the variable in their environment: of all jobs, or
// of the executions of one.
func (y *Yard) Left(job ...string) []string {
	y.t.Helper()
	var of []string // markers
	for _, e := range y.Effects() {
		if slices.Contains(job, e.Job) {
			of = append(of, proc.MarkerVariable+"="+e.Marker)
		}
	}
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	y.must(err)
	if len(all) == 0 {
		y.t.Fatal("processes are looked for in /proc, which is not there")
	}
	var left []string
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended, or belongs to somebody else
		}
		env := strings.Split(string(text), "\x00")
		marked := slices.ContainsFunc(env, func(v string) bool {
			return strings.HasPrefix(v, proc.MarkerVariable+"=") && (len(job) == 0 || slices.Contains(of, v))
		})
		if marked && slices.Contains(env, yardVariable+"="+y.dir) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			left = append(left, fmt.Sprintf("%s: %s", filepath.Base(filepath.Dir(path)), bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return left
}

// Holders are the workers whose stewards execute something, by process id.
func (y *Yard) Holders() map[int]bool {
	y.t.Helper()
	holders := map[int]bool{}
	for _, e := range y.Effects() {
		if e.What != "starts" {
			continue
		}
		if steward := parent(e.PID); steward > 1 {
			holders[parent(steward)] = true
		}
	}
	return holders
}

// parent is a process's parent, 0 where either is gone.
func parent(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 || fields[0] == "Z" {
		return 0
	}
	n, _ := strconv.Atoi(fields[1]) // the kernel writes a number
	return n
}
