package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// judge holds what the rules say of the proposed command against what they say of
// every command that it starts, and returns the strictest. Under a rule that asks, a
// command that no rule lists leaves it at asking; under one that allows, default deny
// holds inside as outside.
func (p *Policy) judge(q Request, d Decision, all plan) Decision {
	if d.Verdict == Deny || len(all.views) == 1 && len(all.doubts) == 0 {
		return d
	}
	for _, v := range all.views[1:] {
		if v.judged {
			d = p.stricter(q, d, v)
		}
		if d.Verdict == Deny {
			return d
		}
	}
	if len(all.doubts) == 0 {
		return d
	}
	seen := make([]string, 0, len(all.doubts))
	for _, doubt := range all.doubts {
		seen = append(seen, string(doubt))
	}
	because := "it holds " + strings.Join(seen, ", ")
	if d.Verdict == Allow {
		return d.ask(1, CodeDynamic, fmt.Sprintf("rule %s allows it, but a person has to look: %s", d.Rule, because))
	}
	d.Reason += "; " + because
	return d
}

// ask turns an allowing decision into an asking one.
func (d Decision) ask(quorum int, code Code, reason string) Decision {
	d.Verdict, d.Quorum, d.Code, d.Reason = Ask, max(d.Quorum, quorum), code, reason
	return d
}

// stricter judges one command that the proposed one starts.
func (p *Policy) stricter(q Request, d Decision, v view) Decision {
	inner := p.innerRequest(q, v)
	got, rule := p.permit(inner)
	name := shown(v.argv[0])
	if got.Verdict == Deny {
		if d.Verdict == Ask {
			if got.Code == CodeOverCeiling && resolved(q) {
				got.Rule = d.Rule
				return got
			}
			if !strings.Contains(d.Reason, "which no rule lists") {
				d.Reason += fmt.Sprintf("; it starts %q, which no rule lists so", name)
			}
			return d
		}
		if !resolved(q) {
			// What the worker finds may make another rule decide, so nothing is final.
			return d.ask(1, CodeDynamic, fmt.Sprintf("rule %s allows it, but it starts %q, which the policy does not permit so", d.Rule, name))
		}
		got.Rule, got.Reason = d.Rule, fmt.Sprintf("rule %s allows it, but it starts %q: %s", d.Rule, name, got.Reason)
		return got
	}
	d.MaxTimeout_s = least(d.MaxTimeout_s, got.MaxTimeout_s)
	d.MaxAttempts = least(d.MaxAttempts, got.MaxAttempts)
	d.MaxOutput_bytes = least(d.MaxOutput_bytes, got.MaxOutput_bytes)
	d.Broad = d.Broad || got.Broad
	if got.Verdict == Ask {
		d.Confirm = d.Confirm || got.Confirm
		both, quorum := bothOf(d.Approvers, got.Approvers), max(d.Quorum, got.Quorum)
		if len(d.Approvers)+len(got.Approvers) > 0 && len(both) < quorum {
			// Too few persons may say yes to both, so nobody ever could. Before the worker
			// has looked, another rule may still turn out to be the one that matches.
			if resolved(q) {
				return Decision{
					Rule: d.Rule, Code: CodeDynamic, Instead: "propose the commands one by one",
					Reason: fmt.Sprintf("it starts %q, and too few persons may approve under both rule %s and rule %s", name, d.Rule, rule.id),
				}
			}
			both = d.Approvers
		}
		d.Approvers = both
		if d.Verdict == Allow {
			return d.ask(got.Quorum, CodeDynamic, fmt.Sprintf("rule %s allows it, but it starts %q, and rule %s asks about that: %s", d.Rule, name, rule.id, got.Reason))
		}
		d.Quorum = max(d.Quorum, got.Quorum)
		return d
	}
	if d.Verdict != Allow {
		return d
	}
	switch {
	case len(rule.codeArgs) > 0:
		return d.ask(1, CodeDynamic, fmt.Sprintf("rule %s allows it, but it holds %s", d.Rule, doubtUnpinned))
	case v.moved && (len(rule.roots) > 0 || rule.pathsUnder != nil):
		return d.ask(1, CodeDynamic, fmt.Sprintf("rule %s allows it, but it holds %s", d.Rule, doubtFolder))
	}
	return d
}

// innerRequest is the request as if the inner command had been proposed. Its program
// is not resolved; the shell or the wrapper finds it by itself.
func (p *Policy) innerRequest(q Request, v view) Request {
	q.settled = resolved(q)
	q.Argv, q.ResolvedPath = v.argv, ""
	if len(v.env) == 0 {
		return q
	}
	q.EnvNames, q.Env = slices.Clone(q.EnvNames), maps.Clone(q.Env)
	if q.Env == nil {
		q.Env = map[string]string{}
	}
	for _, setting := range v.env {
		name, value, known := strings.Cut(setting, "=")
		q.EnvNames = append(q.EnvNames, name)
		delete(q.Env, name)
		if known {
			q.Env[name] = value
		}
	}
	return q
}

// shown is the name of a program for a reason, cut when it is long.
func shown(program string) string {
	name := program[strings.LastIndexByte(program, '/')+1:]
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "") + "..."
	}
	return name
}

// least returns the smaller of two ceilings, of which 0 is none.
func least(a, b int) int {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// bothOf returns the persons that both lists name; an empty list names everybody.
func bothOf(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return slices.Concat(a, b)
	}
	var both []string
	for _, name := range a {
		if contains(b, name) {
			both = append(both, name)
		}
	}
	return both
}
