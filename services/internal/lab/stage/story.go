package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/keys"
)

// Say appends an event as an actor and returns its sequence.
func (s *Stage) Say(actor string, kind events.Kind, scope, id string, expect uint64, payload any) uint64 {
	s.T.Helper()
	seq, err := s.Voice(actor).Append(s.Context(), events.For(kind, scope, id, actor), expect, payload)
	Must(s.T, err)
	return seq
}

// Last is the sequence of the last event under a filter, 0 for none.
func (s *Stage) Last(filter string) uint64 {
	s.T.Helper()
	st, _, err := s.Conn("reader").Last(s.Context(), filter)
	Must(s.T, err)
	return st.Seq
}

// Publish puts a policy in force; WORK in it is the folder of jobs.
func (s *Stage) Publish(text string) {
	s.T.Helper()
	text = strings.ReplaceAll(text, "WORK", s.Work)
	s.PublishRaw(events.PolicyPublished{Digest: events.Digest([]byte(text)), Text: text})
}

// PublishRaw stores a policy event, whatever it holds.
func (s *Stage) PublishRaw(p events.PolicyPublished) uint64 {
	s.T.Helper()
	return s.Say(Person, "policy.published", events.SiteScope, events.PolicyID, s.Last(events.Filter("policy", events.PolicyID)), &p)
}

// AppendTrust stores a trust file that a key has signed in root's name.
func (s *Stage) AppendTrust(key *keys.Signer, file events.TrustPublished, expect uint64) uint64 {
	s.T.Helper()
	m, err := events.New(Origin, events.For("trust.published", events.SiteScope, events.TrustID, "root"),
		events.ID{Actor: "root", Session: fmt.Sprintf("%020x", time.Now().UnixNano()), N: 1}, time.Now(), expect, file)
	Must(s.T, err)
	m.Sign(Origin, string(key.Public()), key.Sign)
	return s.AppendSigned(m)
}

// AppendSigned stores what somebody has signed, with the power of the bus.
func (s *Stage) AppendSigned(m events.Message) uint64 {
	s.T.Helper()
	seq, err := s.Server.Admin().AppendRaw(s.Context(), m)
	Must(s.T, err)
	return seq
}

// Amend publishes the next trust file, signed by root, and reloads the bus.
func (s *Stage) Amend(change func(*events.TrustPublished)) {
	s.T.Helper()
	s.file.Version++
	change(&s.file)
	s.AppendTrust(s.Root, s.file, s.Last(events.Filter("trust", events.TrustID)))
	Must(s.T, s.Server.Reload(s.file))
}

// Trust is the newest trust file that the stage has published.
func (s *Stage) Trust() events.TrustPublished { return s.file }

// Propose stores the proposal of a command and returns its id.
func (s *Stage) Propose(argv []string, change ...func(*events.JobProposed)) string {
	s.T.Helper()
	s.mu.Lock()
	s.n++
	id := fmt.Sprintf("job%d", s.n)
	s.mu.Unlock()
	p := &events.JobProposed{
		Argv: argv, Cwd: s.Work, Pool: "default", TimeoutS: 60, MaxAttempts: 1, ExpiresS: 3600, Proposer: events.Proposer{Kind: "agent", ID: "local"},
	}
	for _, f := range change {
		f(p)
	}
	s.Say("proposer", "job.proposed", "default", id, 0, p)
	return id
}

// Resolve reports, as the worker, what would run.
func (s *Stage) Resolve(id, program string) uint64 {
	s.T.Helper()
	j := s.Job(id)
	return s.Say("worker", "job.resolved", j.Pool, id, j.LastSeq, &events.JobResolved{
		Proposal: j.ProposalDigest, Policy: "policy", Program: events.FileDigest{Path: program, SHA256: strings.Repeat("a", 64)}, Cwd: s.Work,
	})
}

// Assess says, as the gate, that people are asked.
func (s *Stage) Assess(id string, quorum int) uint64 {
	s.T.Helper()
	j := s.Job(id)
	return s.Say("gate", "job.assessed", j.Pool, id, j.LastSeq, &events.JobAssessed{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: "policy", Quorum: quorum, Ruling: events.Ruling{Code: "rule", Reason: "the rule asks"},
	})
}

// Job folds a job.
func (s *Stage) Job(id string) lifecycle.Job {
	s.T.Helper()
	j, err := s.Standing("reader").Job(s.Context(), id)
	Must(s.T, err)
	return j
}

// Await folds a job at each of its events until it is as wanted.
func (s *Stage) Await(id, what string, want func(lifecycle.Job) bool) lifecycle.Job {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	found, reads := errors.New("found"), s.Standing("reader")
	var j lifecycle.Job
	err := s.Conn("reader").Follow(ctx, 1, events.Filter("job", id), func(events.Stored) error {
		var err error
		if j, err = reads.Job(ctx, id); err == nil && want(j) {
			return found
		}
		return err
	})
	if !errors.Is(err, found) {
		s.T.Fatalf("job %s was never %s: status %q, tainted %q, assessment %+v, ending %q, %v", id, what, j.Status, j.TaintCode, j.Assessment, j.Ending, err)
	}
	return j
}

// Count is how many events of a kind are stored about an id.
func (s *Stage) Count(kind events.Kind, id string) int {
	s.T.Helper()
	list, err := s.Conn("reader").Read(s.Context(), 1, fmt.Sprintf("%s.%s.*.%s.%s.>", events.PrefixStored, kind.Family(), id, kind.Verb()), 512)
	Must(s.T, err)
	return len(list)
}
