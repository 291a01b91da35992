package auditor

import (
	"encoding/json/v2"
	"errors"
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/grant"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/internal/index"
)

// takeOther folds what is about a project of the supervisor or about a grant. What the
// fold refuses changes nothing anywhere, and is a violation with the fold's own code:
// a round of another claim, an order out of turn, a grant that was used twice or too
// late. An event that is not believed has been reported already.
func (l *ledger) takeOther(st events.Stored, e events.Event, judgement error) error {
	s, err := events.ParseSubject(st.Subject)
	if err != nil {
		return nil
	}
	var refused error
	switch {
	case loop.Machine(s.Kind()) != "":
		refused, err = l.takeProject(s, st.Seq, e, judgement)
	case s.Family == "grant":
		refused, err = l.takeGrant(s, st.Seq, e, judgement)
	}
	if err != nil || refused == nil {
		return err
	}
	var p *loop.Refusal
	var g *grant.Refusal
	switch {
	case errors.As(refused, &p):
		return l.violation(st, e, "", p.Code, refused.Error())
	case errors.As(refused, &g):
		return l.violation(st, e, "", g.Code, refused.Error())
	}
	return refused
}

func (l *ledger) takeProject(s events.Subject, seq uint64, e events.Event, judgement error) (refused, err error) {
	var p loop.Project
	key := factProject + s.Scope
	if err := l.recall(key, &p); err != nil {
		return nil, err
	}
	p.Name = s.Scope
	var unknown *events.UnknownKind
	switch {
	case judgement == nil:
		p, refused = loop.Apply(p, e)
	default:
		p.Unreadable = p.Unreadable || errors.As(judgement, &unknown)
		p = p.Skip(s, seq)
	}
	if p.Unreadable {
		refused = nil // it may be right for all that this version knows
	}
	return refused, l.keep(key, p)
}

func (l *ledger) takeGrant(s events.Subject, seq uint64, e events.Event, judgement error) (refused, err error) {
	var g grant.Grant
	key := factGrant + s.ID
	if err := l.recall(key, &g); err != nil {
		return nil, err
	}
	var unknown *events.UnknownKind
	switch {
	case judgement == nil:
		g, refused = grant.Apply(g, e)
	default:
		g.Unreadable = g.Unreadable || errors.As(judgement, &unknown)
		g = g.Skip(seq)
	}
	if g.Unreadable {
		refused = nil
	}
	return refused, l.keep(key, g)
}

// recall reads a fact that keep has written.
func (l *ledger) recall(key string, into any) error {
	body, found, err := l.fact(key)
	if err != nil || !found {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: fact %s: %v", index.ErrDamaged, key, err)
	}
	return nil
}

func (l *ledger) keep(key string, value any) error {
	body, err := json.Marshal(value, json.Deterministic(true))
	l.facts[key] = body
	return err
}

// codeNoUse: an approval by a grant names no use of it that was taken for this job.
const codeNoUse = "grant_not_used"

// permitted checks that an approval by a grant has taken a use of it before, for exactly
// what it approves.
func (l *ledger) permitted(st events.Stored, e events.Event, p *events.JobApproved) error {
	if p.Basis != "grant" {
		return nil
	}
	var g grant.Grant
	if err := l.recall(factGrant+p.Grant, &g); err != nil {
		return err
	}
	use, used := g.UsedFor(e.Subject.ID)
	if g.Unreadable || used && use.Seq == p.GrantUsed && use.Proposal == p.Proposal && use.Resolution == p.Resolution {
		return nil
	}
	return l.violation(st, e, e.Subject.ID, codeNoUse, fmt.Sprintf("no use of grant %q was taken for the job at sequence %d", p.Grant, p.GrantUsed))
}
