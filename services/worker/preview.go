package worker

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/secretref"
)

// answerPreviews says what this worker would do with proposals that are not made.
func (s *shift) answerPreviews(ctx context.Context) (stop func(), err error) {
	return s.env.Bus.Serve(ctx, "banksman-worker", s.env.Version, "Says what it would run, without running it",
		map[string]bus.Endpoint{query.Preview + "." + s.cfg.Pool: s.preview})
}

// preview goes the way of a job up to its start, and neither stores nor starts
// anything.
func (s *shift) preview(ctx context.Context, data []byte) (any, error) {
	var q query.PreviewRequest
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, fmt.Errorf("read the question: %w", err)
	}
	if len(q.Proposal.Argv) == 0 || q.Proposal.Pool != s.cfg.Pool {
		return nil, fmt.Errorf("preview a command: it is empty, or for pool %q and not %q", q.Proposal.Pool, s.cfg.Pool)
	}
	p, err := s.env.Standing.Policy(ctx)
	if err != nil {
		return nil, err
	}
	j := lifecycle.Job{Pool: s.cfg.Pool, Proposal: &q.Proposal}
	seen, fault := look(j, p, s.cfg.search(), s.clock.now())
	d := seen.decision
	out := query.Previewed{
		Worker: s.me.actor, Session: s.me.session, Program: seen.resolved.Program, Files: seen.resolved.Files, Cwd: seen.resolved.Cwd,
		Executor: s.cfg.ExecPrefix, Limits: s.limits(&q.Proposal, d.MaxOutput_bytes),
		Walls: s.walls(), ReachRead: s.cfg.ReachRead, ReachWrite: s.cfg.ReachWrite,
	}
	out.Env, out.Secrets = s.names(q.Proposal.Env)
	if fault == nil {
		fault = s.unknownSecret(q.Proposal.Env)
	}
	if fault != nil {
		out.Fault = &query.Obstacle{Code: fault.code, Reason: fault.reason}
		return out, nil
	}
	out.Bound = bound(&seen.resolved)
	if len(s.cfg.ExecPrefix) > 0 {
		out.Bound = proc.BoundChecked
	}
	out.Assessment = query.Assessment{Verdict: d.Verdict.String(), Rule: d.Rule, Code: string(d.Code), Reason: d.Reason, Instead: d.Instead, Quorum: d.Quorum, Policy: p.Digest()}
	return out, nil
}

// limits are what bounds an attempt of this proposal.
func (s *shift) limits(p *events.JobProposed, outputCeiling int) query.Limits {
	c := &s.cfg
	l := query.Limits{
		TimeoutS: min(p.TimeoutS, c.MaxTimeoutS), GraceS: c.GraceS, OutputBytes: kept(c.MaxOutputBytes, outputCeiling),
		CPUS: c.LimitCPUS, MemoryBytes: c.LimitMemoryBytes, OpenFiles: c.LimitOpenFiles, Processes: c.LimitProcesses, FileBytes: c.LimitFileBytes,
		Nice: c.Nice, Umask: c.Umask,
	}
	if s.account != nil {
		l.User = s.account.name
	}
	return l
}

// names are the variables that a job with these own ones would get, and those of
// them that are filled from secrets.
func (s *shift) names(own map[string]string) (all, secrets []string) {
	for _, entry := range s.settle(s.environment(own), own, s.room(record{})) {
		name, value, _ := strings.Cut(entry, "=")
		all = append(all, name)
		if _, ok := secretref.Reference(value); ok && own[name] == value {
			secrets = append(secrets, name)
		}
	}
	slices.Sort(all)
	slices.Sort(secrets)
	return append(all, proc.MarkerVariable), secrets
}

// unknownSecret says which secret a job names that this worker does not have.
func (s *shift) unknownSecret(own map[string]string) *change {
	for variable, value := range own {
		if name, ok := secretref.Reference(value); ok {
			if _, known := s.cfg.Secrets[name]; !known {
				return &change{"unknown_secret", fmt.Sprintf("variable %s names the secret %s, which this worker does not have", variable, name)}
			}
		}
	}
	return nil
}
