package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/banksman/banksman/events/lifecycle"
)

// Check decides whether a story ended well; names are the jobs whose proposals
// were acknowledged. It reads the stream once more from its beginning and holds
// against each other what the stream says, what the jobs left and what verify
// says:
//
//   - every job is there once and in a final state, and none is tainted;
//   - every event is believable and every move legal, also in the auditor's eyes,
//     and nothing that this observer has read before is gone or another;
//   - no two executions of a job overlapped, none happened without a start in the
//     stream, and what succeeded was executed to its end;
//   - no process with a job's marker is left;
//   - the log verifies.
func (o *Observer) Check(y *Yard, names []string) {
	o.site.t.Helper()
	Eventually(o.site.t, "the processes of jobs to end", func() bool { return len(y.Left()) == 0 })
	anew := o.site.Observe()
	Eventually(o.site.t, "the stream to be read once more", anew.Read)
	for _, fault := range slices.Concat(anew.Faults, changed(o.seen, anew.seen), judge(anew.Jobs, y.Effects(), names)) {
		o.site.t.Error(fault)
	}
	o.site.checkEvents(len(anew.seen))
	o.site.checkLog()
}

// changed compares what two readings saw.
func changed[E comparable](before, after []E) []string {
	if len(after) < len(before) {
		return []string{fmt.Sprintf("the stream held %d events and holds %d", len(before), len(after))}
	}
	var faults []string
	for i, e := range before {
		if e != after[i] {
			faults = append(faults, fmt.Sprintf("event %d was %v and is %v", i+1, e, after[i]))
		}
	}
	return faults
}

// judge compares the jobs with their effects.
func judge(all map[string]lifecycle.Job, effects []Effect, names []string) []string {
	v := verdict{byName: map[string][]lifecycle.Job{}, runs: map[string][]*run{}}
	for _, j := range all {
		v.byName[nameOf(j)] = append(v.byName[nameOf(j)], j)
	}
	for _, e := range effects {
		v.effect(e)
	}
	for _, name := range names {
		if len(v.byName[name]) != 1 {
			v.fault("job %s was acknowledged and the stream holds %d of it", name, len(v.byName[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.runs)) {
		if len(v.byName[name]) == 0 {
			v.fault("%s was executed %d times and never proposed", name, len(v.runs[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.byName)) {
		for _, j := range v.byName[name] {
			v.job(name, j)
		}
	}
	return v.faults
}

// verdict collects what judge finds.
type verdict struct {
	byName map[string][]lifecycle.Job
	runs   map[string][]*run // executions by job, in order
	faults []string
}

// run is one execution.
type run struct {
	marker string
	pid    int
	ended  bool
}

func (v *verdict) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

func (v *verdict) effect(e Effect) {
	runs := v.runs[e.Job]
	of := slices.IndexFunc(runs, func(r *run) bool { return r.marker == e.Marker && r.pid == e.PID })
	switch {
	case e.What == "overlaps":
		v.fault("an execution of job %s began while another one lived (process %d)", e.Job, e.PID)
	case e.What == "starts":
		if slices.ContainsFunc(runs, func(r *run) bool { return r.marker == e.Marker }) {
			v.fault("one attempt of job %s was executed twice (process %d)", e.Job, e.PID)
		}
		v.runs[e.Job] = append(runs, &run{marker: e.Marker, pid: e.PID})
	case of < 0:
		v.fault("an execution of job %s %s that never started (process %d)", e.Job, e.What, e.PID)
	case e.What == "ends":
		if of != len(runs)-1 {
			v.fault("an execution of job %s ended after the next one had begun (process %d)", e.Job, e.PID)
		}
		runs[of].ended = true
	}
}

// job judges one job. More executions than starts in the stream are the worst
// that can happen; fewer are starts whose worker died before the command ran.
func (v *verdict) job(name string, j lifecycle.Job) {
	runs := v.runs[name]
	if !j.Status.Final() || j.Tainted || j.Unreadable {
		v.fault("job %s (%s) is %s, not in a final state, or tainted (%q)", name, j.ID, j.Status, j.TaintCode)
	}
	if len(runs) > len(j.Attempts) {
		v.fault("job %s was executed %d times, and the stream tells of %d starts", name, len(runs), len(j.Attempts))
	}
	var told []string
	for _, a := range j.Attempts {
		switch {
		case a.EndedAt.IsZero():
			v.fault("attempt %d of job %s has no end", a.N, name)
		case a.Lapsed && a.Result != nil:
			told = append(told, "late")
		case a.Lapsed:
			told = append(told, "lapsed")
		case a.Result != nil:
			told = append(told, a.Result.Outcome)
		default:
			told = append(told, "cancelled")
		}
	}
	if j.Status == lifecycle.Succeeded && (len(runs) == 0 || !runs[len(runs)-1].ended) {
		v.fault("job %s succeeded (%s) and no execution of it ran to its end", name, strings.Join(told, ", "))
	}
}

// checkEvents looks at the same events through the built binary.
func (s *Site) checkEvents(least int) {
	s.t.Helper()
	r := s.Must(0, "events", "--json")
	if n := strings.Count(r.Stdout, "\n"); n < least {
		s.t.Errorf("banksman events prints %d events of %d", n, least)
	}
	for line := range strings.Lines(r.Stdout) {
		if strings.Contains(line, `"problem":`) {
			s.t.Errorf("banksman events finds a problem: %s", line)
		}
	}
}

// checkLog verifies the audit log. What is stored at this moment may wait for
// its seal; everything else has to hold at once.
func (s *Site) checkLog() {
	s.t.Helper()
	type verdict struct {
		OK bool `json:"ok"`
	}
	Eventually(s.t, "the log to be fresh", func() bool {
		var v struct {
			Integrity    verdict `json:"integrity"`
			Authenticity verdict `json:"authenticity"`
			Completeness verdict `json:"completeness"`
			Freshness    verdict `json:"freshness"`
		}
		r := s.Run("audit", "verify", "--json")
		r.JSON(s.t, &v)
		if !v.Integrity.OK || !v.Authenticity.OK || !v.Completeness.OK {
			s.t.Fatalf("the log does not verify: %s", r)
		}
		return v.Freshness.OK && r.Code == 0
	})
}
