package policy

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Case is one expectation of a test file: what a policy has to say of a command.
type Case struct {
	// Line is where the case begins in its file.
	Line int
	// Request is the command. Without a resolution in the file the program lies in
	// /usr/bin and the working folder is a real one.
	Request Request
	// Want is the expected verdict.
	Want Verdict
	// Rule is the id of the rule that has to decide, "" for any.
	Rule string
	// Code is the expected code of the decision, "" for any.
	Code Code
}

// The keys of a test file.
var (
	caseTop  = []string{"version", "case"}
	caseKeys = []string{"argv", "cwd", "real_cwd", "resolved", "env", "pool", "proposer", "at", "timeout_s", "max_attempts", "decision", "rule", "code"}
)

// ParseCases reads a test file: version = 1 and a series of [[case]] tables with argv
// and decision, and optionally rule, code, cwd, real_cwd, resolved, env, pool,
// proposer, at, timeout_s and max_attempts.
func ParseCases(name string, text []byte) ([]Case, error) {
	var found findings
	_, tables := decodeList(text, "case", caseTop, caseKeys, &found)
	cases := make([]Case, 0, len(tables))
	for _, t := range tables {
		cases = append(cases, readCase(t))
	}
	if err := found.err(name); err != nil {
		return nil, err
	}
	return cases, nil
}

func readCase(t *table) Case {
	c := Case{Line: t.line, Rule: t.text("rule"), Code: Code(t.text("code"))}
	q := &c.Request
	q.Argv, q.Cwd, q.RealCwd, q.ResolvedPath = t.texts("argv"), t.text("cwd"), t.text("real_cwd"), t.text("resolved")
	q.Pool, q.Proposer = t.text("pool"), t.text("proposer")
	q.Timeout_s, q.MaxAttempts = t.number("timeout_s", 1, maxTimeout_s), t.number("max_attempts", 1, maxAttempts)
	if t.has("at") {
		at, ok := t.values["at"].(time.Time)
		if !ok {
			t.wrongType("at", "a time such as 2026-06-01T09:00:00Z")
		}
		q.At = at
	}
	if t.has("env") {
		values, ok := t.values["env"].(map[string]any)
		q.Env = map[string]string{}
		for key, value := range values {
			s, text := value.(string)
			ok = ok && text
			q.Env[key] = s
		}
		if !ok {
			t.wrongType("env", `a table of strings, such as {LANG = "C"}`)
		}
		q.EnvNames = slices.Sorted(maps.Keys(q.Env))
	}
	if len(q.Argv) == 0 {
		t.problem(ProblemBadValue, "argv", "the case names no command", `write argv = ["git", "status"]`)
		return c
	}
	c.Want = readDecision(t)
	q.Cwd = orElse(q.Cwd, exampleWorkDir)
	q.RealCwd = orElse(q.RealCwd, q.Cwd)
	if q.ResolvedPath == "" {
		q.ResolvedPath = guessPath(q.Argv[0], q.RealCwd)
	}
	return c
}

// guessPath stands in for the worker, which alone sees the files.
func guessPath(program, cwd string) string {
	switch {
	case path.IsAbs(program):
		return path.Clean(program)
	case strings.Contains(program, "/"):
		return path.Join(cwd, program)
	}
	return "/usr/bin/" + program
}

// Outcome is what a policy says of a case.
type Outcome struct {
	Case     Case
	Decision Decision
}

// Failed says how the decision differs from what the case expects, "" when it does not.
func (o Outcome) Failed() string {
	d, c := o.Decision, o.Case
	switch {
	case d.Verdict != c.Want:
		return fmt.Sprintf("it is %s by %s, and the case expects %s: %s", d.Verdict, orElse(d.Rule, string(d.Code)), c.Want, d.Reason)
	case c.Rule != "" && d.Rule != c.Rule:
		return fmt.Sprintf("rule %s decides, and the case expects %s", orElse(d.Rule, "none"), c.Rule)
	case c.Code != "" && d.Code != c.Code:
		return fmt.Sprintf("the code is %s, and the case expects %s", d.Code, c.Code)
	}
	return ""
}

// Try judges every case as if a worker had resolved it.
func (p *Policy) Try(cases []Case) []Outcome {
	outcomes := make([]Outcome, len(cases))
	for i, c := range cases {
		outcomes[i] = Outcome{Case: c, Decision: p.Assess(c.Request)}
	}
	return outcomes
}
