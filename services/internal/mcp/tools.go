package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// proposal are the arguments of propose_command and assess_command.
type proposal struct {
	Command        []string          `json:"command"`
	Cwd            string            `json:"cwd"`
	Env            map[string]string `json:"env"`
	Reason         string            `json:"reason"`
	TimeoutS       int               `json:"timeout_s"`
	MaxAttempts    int               `json:"max_attempts"`
	RetrySafe      bool              `json:"retry_safe"`
	IdempotencyKey string            `json:"idempotency_key"`
	Labels         map[string]string `json:"labels"`
	Pool           string            `json:"pool"`
}

func (s *Server) proposal(in proposal) agentapi.Proposal {
	if in.Cwd == "" {
		in.Cwd = s.cwd
	}
	return agentapi.Proposal{
		Argv: in.Command, Cwd: in.Cwd, Env: in.Env, Pool: in.Pool, TimeoutS: in.TimeoutS, MaxAttempts: in.MaxAttempts,
		RetrySafe: in.RetrySafe, Reason: in.Reason, IdempotencyKey: in.IdempotencyKey, Labels: in.Labels,
	}
}

func (s *Server) propose(ctx context.Context, in proposal) (any, error) {
	j, err := s.door.Propose(ctx, s.proposal(in))
	if err != nil {
		return nil, err
	}
	return answerOf(j), nil
}

// assessment is an answer of assess_command.
type assessment struct {
	query.Assessment
	Note string `json:"note,omitempty"`
}

func (s *Server) assess(ctx context.Context, in proposal) (any, error) {
	a, err := s.door.Assess(ctx, s.proposal(in))
	if err != nil {
		return nil, err
	}
	out := assessment{Assessment: a}
	if a.Verdict == "allow" {
		out.Note = "provisional: it is judged again with what a worker finds"
	}
	return out, nil
}

// Bounds of wait_for_decision; clients give up on a call after about a minute.
const (
	defaultWaitS = 30
	maxWaitS     = 45
)

// waiting are the arguments of wait_for_decision.
type waiting struct {
	Job   string `json:"job"`
	WaitS *int   `json:"wait_s"`
}

func (s *Server) wait(ctx context.Context, in waiting) (any, error) {
	waitS := defaultWaitS
	if in.WaitS != nil {
		waitS = *in.WaitS
	}
	if waitS < 0 || waitS > maxWaitS {
		return nil, &agentapi.Error{Code: "out_of_range", Message: fmt.Sprintf("wait for job %s: wait_s must be 0 to %d", clip(in.Job, 64), maxWaitS), Next: "wait shorter and call again"}
	}
	j, err := s.read(ctx, in.Job, 0, 0)
	end := time.Now().Add(time.Duration(waitS) * time.Second)
	for err == nil && j.Status.Undecided() {
		left := time.Until(end)
		if left <= 0 {
			break
		}
		j, err = s.read(ctx, in.Job, j.LastSeq, max(left, time.Millisecond))
	}
	if err != nil {
		return nil, err
	}
	return answerOf(j), nil
}

// one are the arguments of get_job.
type one struct {
	Job string `json:"job"`
}

func (s *Server) get(ctx context.Context, in one) (any, error) {
	j, err := s.read(ctx, in.Job, 0, 0)
	if err != nil {
		return nil, err
	}
	a := answerOf(j)
	if j.Result == nil {
		return a, nil
	}
	return a, s.output(ctx, j, &a.Result.Stdout, &a.Result.Stderr)
}

// ending are the arguments of cancel_job.
type ending struct {
	Job    string `json:"job"`
	Reason string `json:"reason"`
}

func (s *Server) cancel(ctx context.Context, in ending) (any, error) {
	if in.Job == "" {
		return nil, errNoJob()
	}
	j, err := s.door.Cancel(ctx, in.Job, in.Reason)
	if err != nil {
		return nil, err
	}
	a := answerOf(j)
	if !a.Ended {
		a.Next = "its end is asked for; call get_job with this job to see it"
	}
	return a, nil
}

// read asks for a job by its whole id.
func (s *Server) read(ctx context.Context, id string, after uint64, wait time.Duration) (view.Detail, error) {
	if id == "" {
		return view.Detail{}, errNoJob()
	}
	return s.door.Job(ctx, id, after, wait)
}

func errNoJob() error {
	return &agentapi.Error{Code: "bad_request", Message: "look at a job: no job is named", Next: "pass the id that propose_command returned as job"}
}

// page are the arguments of list_my_jobs.
type page struct {
	Limit  int    `json:"limit"`
	Before string `json:"before"`
}

// rows is an answer of list_my_jobs.
type rows struct {
	Jobs []row  `json:"jobs"`
	Next string `json:"next,omitempty"`
}

func (s *Server) list(ctx context.Context, in page) (any, error) {
	if in.Limit < 0 {
		in.Limit = agentapi.MaxListed + 1 // refused by the proposer, which knows the bounds
	}
	list, err := s.door.List(ctx, in.Limit, in.Before)
	if err != nil {
		return nil, err
	}
	out := rows{Jobs: []row{}}
	for _, j := range list.Jobs {
		out.Jobs = append(out.Jobs, rowOf(j))
	}
	if n := len(out.Jobs); list.More && n > 0 {
		out.Next = "there are older ones; call list_my_jobs with before = " + out.Jobs[n-1].Job
	}
	return out, nil
}
