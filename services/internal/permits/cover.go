package permits

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/events/lifecycle/grant"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/policy"
)

// ruleID is the id of the one rule that a scope becomes.
const ruleID = "grant"

// Text writes a scope as a policy of one rule.
func Text(s events.GrantScope) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version = 1\n[[rule]]\nid = %q\nprogram = %s\ndecision = \"allow\"\nroots = %s\n", ruleID, quote(s.Program), list(s.Roots))
	if len(s.Args) > 0 {
		fmt.Fprintf(&b, "args = %s\n", list(s.Args))
	}
	if len(s.Flags) > 0 {
		fmt.Fprintf(&b, "flags = %s\n", list(s.Flags))
	}
	if s.Exact {
		b.WriteString("exact = true\n")
	}
	return b.String()
}

// quote writes a basic string of TOML 1.0.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, "\\u%04X", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func list(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Check says what is wrong with a scope, so that nobody gives a grant that
// covers nothing or anything.
func Check(s events.GrantScope, env policy.Env) error {
	if len(s.Roots) == 0 {
		return fmt.Errorf("give a grant: it names no root; name the folder in which it counts")
	}
	for _, r := range s.Roots {
		if r == "/" {
			return fmt.Errorf("give a grant: the root / is every folder; name a narrower one")
		}
	}
	if s.Pool != "" {
		if err := events.CheckName("pool", s.Pool); err != nil {
			return err
		}
	}
	if s.Project != "" {
		if err := events.CheckName("project", s.Project); err != nil {
			return err
		}
	}
	if p, ok := events.ParseProposer(s.Proposer); s.Proposer != "" && (!ok || p.Kind != "agent" && p.Kind != "person" || events.CheckName(p.Kind, p.ID) != nil) {
		return fmt.Errorf("give a grant: the proposer %q is not of the form agent:NAME or person:TOKEN", s.Proposer)
	}
	p, err := policy.Parse("of the grant", []byte(Text(s)), env)
	if err != nil {
		return err
	}
	// A folder below the first root with the arguments as they stand is an
	// example of what it covers.
	d := p.Static(policy.Request{Argv: append([]string{filepath.Base(s.Program)}, s.Args...), Cwd: s.Roots[0]})
	if d.Broad {
		return fmt.Errorf("give a grant: the arguments of %s may carry any code, so the grant would cover everything; approve such jobs one by one", s.Program)
	}
	return nil
}

// Covers says why a grant does not cover a resolved job; nil when it does. The
// request is the job as the policy looks at it. Whether the grant may be used at
// all, and how often, is the grant's own matter.
func Covers(g grant.Grant, j lifecycle.Job, q policy.Request, env policy.Env) error {
	if g.Given == nil || j.Proposal == nil || j.Resolution == nil {
		return fmt.Errorf("the grant, the proposal or the resolution cannot be read")
	}
	s, proposer := g.Given.Scope, j.Proposal.Proposer
	switch project, _, round := loops.ParseRound(proposer.ID); {
	case proposer == events.Proposer{Kind: "person", ID: g.GivenBy}:
		return fmt.Errorf("%s gave the grant and proposed the job", g.GivenBy)
	case s.Pool != "" && s.Pool != j.Pool:
		return fmt.Errorf("it is for pool %s", s.Pool)
	case s.Proposer != "" && s.Proposer != proposer.String():
		return fmt.Errorf("it is for %s", s.Proposer)
	case s.Project != "" && (proposer.Kind != "agent" || !round || s.Project != project):
		return fmt.Errorf("it is for rounds of project %s", s.Project)
	case j.Resolution.UnsafeSharedUser:
		return fmt.Errorf("the job would share the worker's user; a person has to look at each")
	}
	if err := Check(s, env); err != nil {
		return err
	}
	p, err := policy.Parse("of grant "+g.ID, []byte(Text(s)), env)
	if err != nil {
		return err
	}
	d := p.Assess(q)
	if d.Verdict != policy.Allow || d.Broad {
		return fmt.Errorf("%s", d.Reason)
	}
	return nil
}

// Answers says whether a decision of the policy is one that a grant by this
// person may answer: it asks, for one person, this one may be it, and nobody has
// to have seen the digest of what would run.
func Answers(d policy.Decision, by string) bool {
	return d.Verdict == policy.Ask && !d.Confirm && d.Quorum <= 1 && (len(d.Approvers) == 0 || slices.Contains(d.Approvers, by))
}
