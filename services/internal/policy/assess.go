package policy

import (
	"fmt"
	"path"
	"slices"
	"unicode"
)

// Static judges a request by its argument vector, before a worker has resolved it.
// Only a Deny is final; Ask and Allow say what Assess may still come to.
func (p *Policy) Static(r Request) Decision { return p.decide(r) }

// Assess judges a request together with its resolution: RealCwd and ResolvedPath.
// Without them it denies with CodeUnresolved what Static would not deny already.
func (p *Policy) Assess(r Request) Decision {
	d := p.decide(r)
	if d.Verdict != Deny && !resolved(r) {
		return Decision{
			Code:    CodeUnresolved,
			Reason:  "no worker has said yet which program would run where",
			Instead: "wait until a worker of the pool has resolved the command",
		}
	}
	return d
}

func resolved(r Request) bool { return r.settled || r.RealCwd != "" && r.ResolvedPath != "" }

func (p *Policy) decide(r Request) Decision {
	q, refusal := p.prepare(r)
	if refusal.Code != "" {
		return refusal
	}
	all := unfold(q.Argv, []string{q.Cwd, q.RealCwd})
	if d, decided := p.forbid(q, all); decided {
		return d
	}
	d, _ := p.permit(q)
	d = p.judge(q, d, all)
	if p.shadow {
		return d.shadowed()
	}
	return d
}

// forbid reports whether a rule denies the request or what it starts. So does a
// permitting rule for the arguments that it denies.
func (p *Policy) forbid(q Request, all plan) (Decision, bool) {
	for _, v := range all.views[1:] {
		for _, folder := range v.folders {
			if v.moved && withinFold(folder, p.env.DataDir) {
				return inDataDir(), true
			}
		}
	}
	for _, rule := range p.rules {
		switch {
		case rule.decision == Deny && rule.denies(q, all).rank == matched:
			return rule.decide(q), true
		case rule.deniesArgs(q, all):
			return Decision{
				Rule: rule.id, Code: CodeDeniedArg, Instead: orElse(rule.instead, "propose it without that argument"),
				Reason: fmt.Sprintf("rule %s denies one of the arguments", rule.id),
			}, true
		}
	}
	return Decision{}, false
}

// deniesArgs reports whether the rule permits something, but not with these arguments.
func (r *rule) deniesArgs(q Request, all plan) bool {
	return r.decision != Deny && len(r.denyArgs)+len(r.denyText) > 0 && r.denies(q, all).rank == matched
}

// permit returns what the permitting rules say of the request alone, and the rule that
// decided, nil when none did.
func (p *Policy) permit(q Request) (Decision, *rule) {
	var tooMuch Decision
	var tooMuchOf *rule
	var nearest miss
	for _, rule := range p.rules {
		if rule.decision == Deny {
			continue
		}
		m := p.permits(rule, q)
		if m.rank == matched {
			d := rule.decide(q)
			// Before resolution a later rule may turn out to be the one that matches.
			if d.Verdict != Deny || resolved(q) {
				return d, rule
			}
			if tooMuchOf == nil {
				tooMuch, tooMuchOf = d, rule
			}
		}
		if m.rank > nearest.rank {
			nearest = m
		}
	}
	if tooMuchOf != nil {
		return tooMuch, tooMuchOf
	}
	return unlisted(q, nearest), nil
}

// shadowed turns a decision into that of shadow mode: nothing runs or fails by rule,
// and the record says what would have happened.
func (d Decision) shadowed() Decision {
	d.Shadow = d.Verdict.String()
	if d.Verdict == Ask {
		return d
	}
	d.Reason = fmt.Sprintf("the policy is in shadow mode and would %s it: %s", d.Shadow, d.Reason)
	d.Verdict, d.Code, d.Quorum = Ask, CodeShadow, max(1, d.Quorum)
	return d
}

// prepare cleans the paths of a request and refuses what no rule can permit.
func (p *Policy) prepare(r Request) (q Request, refusal Decision) {
	if p == nil {
		return r, Decision{Code: CodeNoPolicy, Reason: "there is no policy in force, and without one nothing runs", Instead: "ask an administrator to publish a policy"}
	}
	if fault := malformed(r); fault != "" {
		return r, Decision{Code: CodeBadRequest, Reason: fault, Instead: "propose an argument vector with a program name and an absolute working folder"}
	}
	q = r
	q.Cwd, q.RealCwd, q.ResolvedPath = clean(r.Cwd), clean(r.RealCwd), clean(r.ResolvedPath)
	for _, place := range []string{q.Cwd, q.RealCwd, q.ResolvedPath} {
		if withinFold(place, p.env.DataDir) {
			return q, inDataDir()
		}
	}
	return q, Decision{}
}

func inDataDir() Decision {
	return Decision{
		Code:    CodeInDataDir,
		Reason:  "the working folder or the program lies in the folder where banksman keeps its state, keys and policy",
		Instead: "work in another folder",
	}
}

func malformed(r Request) string {
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return "the command names no program"
	}
	for _, arg := range r.Argv {
		for _, r := range arg {
			if r == 0 || unicode.Is(unicode.Bidi_Control, r) {
				return "an argument holds a NUL byte or a sign that turns the direction of writing"
			}
		}
	}
	if !path.IsAbs(r.Cwd) || r.RealCwd != "" && !path.IsAbs(r.RealCwd) {
		return "the working folder is no absolute path"
	}
	if r.ResolvedPath != "" && !path.IsAbs(r.ResolvedPath) {
		return "the resolved program is no absolute path"
	}
	return ""
}

// decide turns a match of the rule into a decision.
func (r *rule) decide(q Request) Decision {
	d := Decision{Verdict: r.decision, Rule: r.id, Code: CodeRule, Reason: r.reason, Instead: r.instead}
	if r.decision == Deny {
		return d
	}
	d.MaxTimeout_s, d.MaxAttempts, d.MaxOutput_bytes = r.timeout_s, r.attempts, r.output_b
	if over := r.overCeiling(q); over != "" {
		d.Verdict, d.Code, d.Reason, d.Instead = Deny, CodeOverCeiling, over, "propose it again within that limit"
		return d
	}
	d.Approvers, d.Confirm = slices.Clone(r.approvers), r.confirm
	d.Quorum, d.CodeArgs, d.Broad = r.quorum, indexes(r.codeArgs, q.Argv), r.broad != ""
	if d.Reason == "" {
		d.Reason = fmt.Sprintf("rule %s says %s", r.id, r.decision)
	}
	return d
}

func (r *rule) overCeiling(q Request) string {
	if r.timeout_s > 0 && q.Timeout_s > r.timeout_s {
		return fmt.Sprintf("rule %s permits at most %d s, and the proposal asks for %d s", r.id, r.timeout_s, q.Timeout_s)
	}
	if r.attempts > 0 && q.MaxAttempts > r.attempts {
		return fmt.Sprintf("rule %s permits at most %d attempts, and the proposal asks for %d", r.id, r.attempts, q.MaxAttempts)
	}
	return ""
}

// unlisted explains a denial by default. It names the program and nothing else of the
// command, since arguments may be secret.
func unlisted(q Request, nearest miss) Decision {
	name := shown(q.Argv[0])
	d := Decision{Code: nearest.code()}
	switch {
	case nearest.rank <= missProgram:
		d.Reason = fmt.Sprintf("no rule of the policy lists the program %q", name)
	default:
		d.Reason = fmt.Sprintf("the policy has a rule for %q, but it does not cover this command: %s", name, nearest.text)
	}
	d.Instead = fmt.Sprintf("to get it allowed, ask an administrator to publish a policy with a rule for it, such as: [[rule]] id = \"...\" program = %q decision = \"ask\"", name)
	switch d.Code {
	case CodeOutsideRoots:
		d.Instead = "work inside those roots, or ask an administrator to add this folder to the rule"
	case CodeProgramPlace:
		d.Instead = "propose it by the bare name of an installed program, or ask an administrator for a rule that names the program by its absolute path"
	case CodeEnvironment:
		d.Instead = "propose it without environment values, or ask an administrator to list them in env of the rule"
	}
	return d
}
