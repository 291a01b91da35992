package policy

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
)

//go:embed starter.toml
var starter string

// Starter returns the policy text that a new site begins with. Its comments teach
// the language.
func Starter() []byte { return []byte(starter) }

// Env is what a policy has to know about the machine besides its own text.
type Env struct {
	// DataDir is the real absolute path of the data folder, which holds state, keys,
	// configuration and policy. It is required.
	DataDir string
	// Homes are the real absolute paths of the home directories of this machine.
	Homes []string
}

// Policy is a validated policy text. It never changes after Parse. A nil or zero
// Policy denies everything.
type Policy struct {
	text   []byte
	digest string
	env    Env
	rules  []*rule
	roots  []string // every root that any rule names
	shadow bool
}

// Parse reads and validates text. The name, usually a file name, only serves error
// messages. When anything is wrong the error is a [*ParseError] that lists all of it.
func Parse(name string, text []byte, env Env) (*Policy, error) {
	var found findings
	checkEnv(env, &found)
	sum := sha256.Sum256(text)
	p := &Policy{text: slices.Clone(text), digest: hex.EncodeToString(sum[:])}
	p.env = Env{DataDir: env.DataDir, Homes: slices.Clone(env.Homes)}
	tables, shadow := decodeText(text, &found)
	p.shadow = shadow
	seen := map[string]int{}
	for _, t := range tables {
		r := readRule(t, p.env)
		if first, twice := seen[r.id]; twice && r.id != "" {
			t.problem(ProblemDuplicateID, "id", fmt.Sprintf("id %q is already that of the rule in line %d", r.id, first), "choose another one")
		}
		seen[r.id] = t.line
		p.rules = append(p.rules, r)
		p.roots = append(p.roots, r.roots...)
	}
	if err := found.err(name); err != nil {
		return nil, err
	}
	for i, t := range tables {
		p.checkPlace(t, p.rules[i])
		p.checkExamples(t, p.rules[i])
	}
	if err := found.err(name); err != nil {
		return nil, err
	}
	return p, nil
}

func checkEnv(env Env, found *findings) {
	if !path.IsAbs(env.DataDir) || path.Clean(env.DataDir) != env.DataDir || env.DataDir == "/" {
		found.add(Problem{Code: ProblemBadEnv, Message: fmt.Sprintf("the data folder %q is no clean absolute path", env.DataDir), Next: "pass its real path"})
	}
	for _, home := range env.Homes {
		if !path.IsAbs(home) || path.Clean(home) != home {
			found.add(Problem{Code: ProblemBadEnv, Message: fmt.Sprintf("the home %q is no clean absolute path", home), Next: "pass real paths"})
		}
	}
}

// checkPlace refuses a program that whoever proposes could rewrite, and one in the data
// folder.
func (p *Policy) checkPlace(t *table, r *rule) {
	for _, program := range r.programs {
		if r.decision == Allow && path.IsAbs(program) && withinAny(program, p.roots) {
			t.problem(ProblemProgramInRoot, "program", fmt.Sprintf("program %q lies in a root, where jobs can write", program), `move it out, or use decision = "ask"`)
		}
		if r.decision != Deny && within(program, p.env.DataDir) {
			t.problem(ProblemBadProgram, "program", fmt.Sprintf("program %q lies in the data folder", program), "move it out")
		}
	}
}

// checkExamples tries the examples of a rule against that rule alone, in a folder
// where it applies and before resolution.
func (p *Policy) checkExamples(t *table, r *rule) {
	for _, want := range []bool{true, false} {
		key, verb := "match", "is not matched"
		if !want {
			key, verb = "not_match", "is matched"
		}
		for _, argv := range t.vectors(key) {
			q := exampleOf(r, argv)
			got := p.consider(r, q, unfold(q.Argv, []string{q.Cwd}))
			if r.decision != Deny && got.rank == matched && r.deniesArgs(q, unfold(q.Argv, []string{q.Cwd})) {
				got = missed(missArgs, "deny_args or deny_text denies it")
			}
			if (got.rank == matched) != want {
				t.problem(ProblemExampleFailed, key, fmt.Sprintf("the example %q %s: %s", argv, verb, orElse(got.text, "the rule fits it")), "correct the rule or the example")
			}
		}
	}
}

func exampleOf(r *rule, argv []string) Request {
	q := Request{Argv: argv, Cwd: exampleWorkDir}
	for _, folder := range r.roots[:min(1, len(r.roots))] {
		q.Cwd = folder
	}
	for _, pool := range r.pools[:min(1, len(r.pools))] {
		q.Pool = pool
	}
	for _, proposer := range r.proposers[:min(1, len(r.proposers))] {
		q.Proposer = proposer
	}
	if r.decision == Deny {
		q.At = r.window.moment()
	}
	return q
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// Digest returns the SHA-256 of the exact text in lower-case hex, "" for a nil or
// zero Policy.
func (p *Policy) Digest() string {
	if p == nil {
		return ""
	}
	return p.digest
}

// Text returns a copy of the exact text.
func (p *Policy) Text() []byte {
	if p == nil {
		return nil
	}
	return slices.Clone(p.text)
}
