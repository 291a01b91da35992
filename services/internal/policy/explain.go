package policy

import (
	"fmt"
	"path"
	"strings"
)

// Step is one rule as it was considered for a request.
type Step struct {
	// Rule is the rule's id, "" in the closing step of a request that no rule decided.
	Rule string `json:"rule,omitempty"`
	// Line is where the rule begins in the text, 0 in the closing step.
	Line int `json:"line,omitzero"`
	// Decision is what the rule says.
	Decision Verdict `json:"decision"`
	// Matched reports whether the rule matches.
	Matched bool `json:"matched"`
	// Decides reports whether this step is the one that decided.
	Decides bool `json:"decides"`
	// Why says why it matched or why not.
	Why string `json:"why"`
	// Starts is the command that the step is about when it is not the proposed one but
	// one that it starts; the strictest of them counts.
	Starts []string `json:"starts,omitempty"`
}

// String returns the step in one line.
func (s Step) String() string {
	name, mark := s.Rule, "no "
	if name == "" {
		name = "(no rule)"
	}
	if len(s.Starts) > 0 {
		name = fmt.Sprintf("starts %q, %s", s.Starts, name)
	}
	if s.Matched {
		mark = "yes"
	}
	if s.Decides {
		mark = "==>"
	}
	if s.Line > 0 {
		name = fmt.Sprintf("%s (line %d)", name, s.Line)
	}
	return fmt.Sprintf("%s %-5s %s: %s", mark, s.Decision, name, s.Why)
}

// Explain returns every rule in file order with why it matched or not, and a closing
// step when no rule decided. A request without a resolution is explained as Static
// sees it.
func (p *Policy) Explain(r Request) []Step {
	d := p.decide(r)
	q, refusal := p.prepare(r)
	var steps []Step
	if refusal.Code == "" {
		all := unfold(q.Argv, []string{q.Cwd, q.RealCwd})
		for _, rule := range p.rules {
			steps = append(steps, p.step(rule, q, all, d))
		}
		steps = append(steps, p.inner(q, all)...)
	}
	if d.Rule == "" {
		steps = append(steps, Step{Decision: d.Verdict, Matched: true, Decides: true, Why: d.Reason})
	}
	return steps
}

// inner returns what the rules say of each command that the request starts.
func (p *Policy) inner(q Request, all plan) []Step {
	var steps []Step
	for _, v := range all.views[1:] {
		if !v.judged || len(steps) >= maxInnerSteps {
			continue
		}
		d, rule := p.permit(p.innerRequest(q, v))
		s := Step{Starts: v.argv, Decision: d.Verdict, Why: d.Reason}
		if rule != nil {
			s.Rule, s.Line = rule.id, rule.line
		}
		steps = append(steps, s)
	}
	for _, doubt := range all.doubts {
		steps = append(steps, Step{Decision: Ask, Why: "it holds " + string(doubt)})
	}
	return steps
}

// maxInnerSteps bounds an explanation that people read.
const maxInnerSteps = 100

func (p *Policy) step(r *rule, q Request, all plan, d Decision) Step {
	m := p.consider(r, q, all)
	s := Step{Rule: r.id, Line: r.line, Decision: r.decision, Matched: m.rank == matched, Decides: r.id == d.Rule, Why: m.text}
	switch {
	case s.Decides && d.Code == CodeDeniedArg:
		s.Matched, s.Why = true, "an argument is one of those that it denies, and that wins wherever it stands"
	case s.Decides && s.Matched && d.Code != CodeRule && r.decision != Deny && d.Verdict != r.decision:
		s.Why = d.Reason
	case s.Matched && r.decision != Deny && r.overCeiling(q) != "":
		s.Why = r.overCeiling(q)
	case s.Matched && s.Decides && r.decision == Deny:
		s.Why = "it matches, and a matching deny rule wins wherever it stands"
	case s.Matched && s.Decides:
		s.Why = "it is the first rule that matches"
	case s.Matched:
		s.Why = fmt.Sprintf("it matches, but %s decides", orElse(d.Rule, "the closing step"))
	}
	return s
}

// Warnings returns what is suspicious in the policy although it is valid: allow rules
// whose arguments can carry code, and those that run code of the working folder. `policy
// check` shows them, and a decision by one of the former is marked Broad.
func (p *Policy) Warnings() []Problem {
	if p == nil {
		return nil
	}
	var list []Problem
	for _, r := range p.rules {
		switch careful := r.whyCareful(); {
		case r.broad != "":
			list = append(list, Problem{Code: ProblemBroadRule, Line: r.line, Rule: r.id, Key: "program", Message: r.broad,
				Next: `pin the arguments with args, exact = true and code_args, or use decision = "ask"; until then each job by this rule is recorded as broad`})
		case careful != "":
			list = append(list, Problem{Code: ProblemFolderCode, Line: r.line, Rule: r.id, Key: "program", Message: careful,
				Next: `use decision = "ask" where an agent can write in that folder`})
		}
	}
	return list
}

// whyBroad says why an allow rule lets a proposal run code of its choice, "" when it
// does not seem to.
func (r *rule) whyBroad() string {
	if r.decision != Allow {
		return ""
	}
	if contains(r.flags, "-*") || contains(r.flags, "--*") {
		return fmt.Sprintf("the rule allows every option of %s", r.named())
	}
	for _, program := range r.programs {
		name := strings.TrimRight(path.Base(program), "0123456789.")
		if name == "git" && len(r.args) == 0 {
			return fmt.Sprintf("the rule allows every command of %s, and some of them are names for any code", program)
		}
		script := contains(interpreters(), name)
		if !script && !contains(launchers(), name) {
			continue
		}
		if shells := strings.Fields("sh bash dash"); contains(shells, name) && len(r.args) > 0 && strings.HasPrefix(r.args[0], "-") && strings.HasSuffix(r.args[0], "c") {
			continue // every command in the text is judged by itself
		}
		if !r.exact {
			return fmt.Sprintf("the rule allows %s with free arguments, and those can carry any code", program)
		}
		for _, arg := range r.args {
			if script && !option(arg) && len(r.codeArgs) == 0 {
				return fmt.Sprintf("the rule allows %s on a file whose content nothing pins", program)
			}
		}
	}
	return ""
}

// whyCareful says why an allow rule runs code of the folder that it is used in,
// although its arguments carry none; "" when it does not seem to.
func (r *rule) whyCareful() string {
	if r.decision != Allow || r.exact && len(r.args) == 1 && contains([]string{"--version", "version", "-v", "--help", "help"}, r.args[0]) {
		return ""
	}
	for _, program := range r.programs {
		switch name := path.Base(program); {
		case name == "git":
			return fmt.Sprintf("the rule allows %s, and the configuration of the repository it is started in can name programs to run (core.fsmonitor, aliases, pagers, filters, hooks)", program)
		case contains(strings.Fields("make go cargo npm pnpm yarn gradle mvn"), name):
			return fmt.Sprintf("the rule allows %s, which runs code of the project it is started in", program)
		}
	}
	return ""
}

// interpreters are programs, without version digits, that run the file they are given.
func interpreters() []string {
	return strings.Fields("sh bash dash zsh ksh fish python pypy node deno bun ruby perl php lua awk gawk mawk sed")
}

// launchers are programs that run what their operands name, or code of the project they
// are started in.
func launchers() []string {
	return strings.Fields("npm npx pnpm yarn pip pipx uv uvx xargs env sudo doas su make cargo go docker podman kubectl ssh " +
		"find busybox toybox nice timeout nohup time eval watch strace setsid stdbuf tar rsync vi vim ed less man")
}
