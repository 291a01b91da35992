package imported

import (
	"encoding/json/v2"
	"fmt"
	"slices"
	"time"
)

// said is what an entry says about a job.
type said struct {
	Job        string   `json:"job_id"`
	Command    []string `json:"command"`
	Cwd        *string  `json:"cwd"`
	Source     *string  `json:"source"`
	Decision   *string  `json:"decision"`
	DecidedBy  *string  `json:"decided_by"`
	DecidedAt  *float64 `json:"decided_at"`
	Reason     *string  `json:"decision_reason"`
	Attempt    int      `json:"attempt"`
	Worker     *string  `json:"worker_id"`
	Status     *string  `json:"status"`
	ErrorClass *string  `json:"error_class"`
}

// take adds what an entry says to its job. Where the list has the job, the two are
// held against each other; else the trail alone makes it.
func (r *reader) take(e entry, hasList bool) {
	var s said
	if json.Unmarshal(e.Data, &s) != nil || s.Job == "" {
		return // such as a worker that had nothing to do
	}
	i, known := r.at[s.Job]
	if !known {
		i = len(r.jobs)
		r.at[s.Job], r.alone[s.Job] = i, true
		j := Job{ID: s.Job, Imported: AgentSafe, Status: "queued", Approval: "pending", Argv: []string{}}
		if hasList {
			j.Disagrees = []string{"the list does not have it"}
		}
		r.jobs = append(r.jobs, j)
	}
	j := &r.jobs[i]
	j.Entries = append(j.Entries, r.sentence(e, s))
	if r.alone[s.Job] {
		r.apply(j, e, s)
	} else if len(j.Disagrees) == 0 {
		r.compare(j, e, s)
	}
}

// sentence is an entry in one line.
func (r *reader) sentence(e entry, s said) string {
	text := e.Timestamp + " " + e.Event
	for _, part := range []struct {
		name  string
		value *string
	}{{"", s.Decision}, {"by ", s.DecidedBy}, {"on ", s.Worker}, {"as ", s.Status}, {"", s.ErrorClass}, {"because ", s.Reason}} {
		if v := r.clean(part.value); v != "" {
			text += ", " + part.name + v
		}
	}
	return text
}

// compare notes where the trail says something else than the list.
func (r *reader) compare(j *Job, e entry, s said) {
	differ := func(format string, args ...any) { j.Disagrees = append(j.Disagrees, fmt.Sprintf(format, args...)) }
	switch e.Event {
	case "job.submitted":
		if !slices.Equal(r.cleanAll(s.Command), j.Argv) || r.clean(s.Cwd) != j.Cwd {
			differ("another command or folder was submitted, says entry %d of the trail", e.Seq)
		}
	case "job.approval_decision":
		if by := r.clean(s.DecidedBy); j.DecidedBy != "" && by != j.DecidedBy {
			differ("%s decided it, says entry %d of the trail, and the list says %s", by, e.Seq, j.DecidedBy)
		}
	case "job.finished":
		if status := r.clean(s.Status); j.Status == "succeeded" && status != "succeeded" && s.Attempt >= j.Attempts {
			differ("its last attempt ended as %s, says entry %d of the trail, and the list says succeeded", status, e.Seq)
		}
	}
}

// apply moves a job of which the list says nothing.
func (r *reader) apply(j *Job, e entry, s said) {
	switch e.Event {
	case "job.submitted":
		at, _ := time.Parse(time.RFC3339, e.Timestamp)
		j.Argv, j.Cwd, j.Source, j.Created = r.cleanAll(s.Command), r.clean(s.Cwd), r.clean(s.Source), at.UTC()
	case "job.approval_decision":
		j.Approval, j.DecidedBy, j.DecidedAt, j.Reason = r.clean(s.Decision), r.clean(s.DecidedBy), moment(s.DecidedAt), r.clean(s.Reason)
		if j.Approval == "denied" {
			j.Status = "cancelled"
		}
	case "job.claimed":
		j.Status, j.Attempts = "running", s.Attempt
	case "job.finished":
		j.Status, j.Error = r.clean(s.Status), r.clean(s.ErrorClass)
	case "job.dead_lettered":
		j.Status, j.Error = "dead_letter", r.clean(s.ErrorClass)
	case "job.cancelled":
		j.Status = "cancelled"
	case "job.lease_expired":
		j.Status = "queued"
	case "job.retried":
		j.Status, j.Approval, j.DecidedBy, j.DecidedAt, j.Reason, j.Attempts = "queued", "pending", "", time.Time{}, "", 0
	}
}
