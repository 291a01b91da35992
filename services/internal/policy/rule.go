package policy

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// The bounds of numbers in a rule.
const (
	maxQuorum      = 9
	maxTimeout_s   = 7 * 24 * 3600
	maxAttempts    = 100
	maxIDLetters   = 64
	exampleWorkDir = "/srv/example"
)

var (
	idForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)
	actorForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)
)

// rule is one [[rule]] table after validation.
type rule struct {
	id          string
	line        int
	programs    []string
	decision    Verdict
	args        []string // patterns
	exact       bool
	flags       []string // patterns
	env         []string
	roots       []string
	pools       []string
	proposers   []string
	codeArgs    []codeArg
	reason      string
	instead     string
	quorum      int
	timeout_s   int
	attempts    int
	recursiveOn guard
	broad       string // why the rule is broad, "" when it is not
}

// named returns the programs of the rule for a message, a long list shortened.
func (r *rule) named() string {
	const most = 4
	if len(r.programs) <= most {
		return strings.Join(r.programs, ", ")
	}
	return fmt.Sprintf("%s or one of %d others", strings.Join(r.programs[:most], ", "), len(r.programs)-most)
}

// readRule validates one table. It reports every fault it finds and returns a rule
// that is only of use when there was none.
func readRule(t *table, env Env) *rule {
	r := &rule{line: t.line}
	r.id = t.text("id")
	switch {
	case r.id == "":
		t.problem(ProblemBadID, "id", "the rule has no id", `write id = "a-short-name"; decisions name it`)
	case len(r.id) > maxIDLetters || !idForm.MatchString(r.id):
		t.problem(ProblemBadID, "id", fmt.Sprintf("id %q is not of the letters a-z 0-9 _ -", r.id), "choose a shorter, plainer one")
	default:
		t.name = r.id
	}
	r.programs = readPrograms(t)
	r.decision = readDecision(t)
	r.args, r.exact, r.flags = t.texts("args"), t.truth("exact"), t.texts("flags")
	r.env = t.texts("env")
	r.roots = t.texts("roots")
	r.pools, r.proposers = readActors(t, "pools"), readActors(t, "proposers")
	r.codeArgs = readCodeArgs(t)
	r.reason, r.instead = t.text("reason"), t.text("instead")
	r.quorum = t.number("quorum", 1, maxQuorum)
	r.timeout_s = t.number("max_timeout_s", 1, maxTimeout_s)
	r.attempts = t.number("max_attempts", 1, maxAttempts)
	r.recursiveOn = readGuard(t, env)
	if r.decision == Ask && r.quorum == 0 {
		r.quorum = 1
	}
	checkTogether(t, r)
	checkRoots(t, r.roots, env)
	r.broad = r.whyBroad()
	return r
}

// readPrograms reads program, which is one name or a list of names.
func readPrograms(t *table) []string {
	var programs []string
	if _, list := t.values["program"].([]any); list {
		programs = t.texts("program")
	} else if program := t.text("program"); program != "" {
		programs = []string{program}
	}
	if len(programs) == 0 {
		checkProgram(t, "")
	}
	for _, program := range programs {
		checkProgram(t, program)
	}
	return programs
}

func checkProgram(t *table, program string) {
	switch {
	case program == "":
		t.problem(ProblemEmptyProgram, "program", "the rule names no program", `write program = "name"`)
	case path.IsAbs(program):
		if path.Clean(program) != program || program == "/" {
			t.problem(ProblemBadProgram, "program", fmt.Sprintf("program %q is not a clean path", program), fmt.Sprintf("write %q", path.Clean(program)))
		}
	case strings.ContainsAny(program, "/ \t\n*?"), program == ".", program == "..":
		t.problem(ProblemBadProgram, "program", fmt.Sprintf("program %q is neither a bare name nor an absolute path", program),
			"a relative path means another file in every folder, a pattern means everything, and arguments belong in args")
	}
}

func readDecision(t *table) Verdict {
	word := t.text("decision")
	v, ok := verdictOf(word)
	if !ok {
		next := `write "allow", "ask" or "deny"`
		if near := nearest(word, []string{"allow", "ask", "deny"}); near != "" {
			next = fmt.Sprintf("did you mean %q?", near)
		}
		t.problem(ProblemBadDecision, "decision", fmt.Sprintf("decision is %q", word), next)
	}
	return v
}

func readActors(t *table, key string) []string {
	list := t.texts(key)
	for _, name := range list {
		if !actorForm.MatchString(name) {
			t.problem(ProblemBadValue, key, fmt.Sprintf("%q is no name for %s", name, key), "a name has 1 to 32 of the letters a-z 0-9 _ -")
		}
	}
	return list
}

// checkTogether reports keys that have no meaning beside the rule's others, so that
// nobody relies on a line that does nothing.
func checkTogether(t *table, r *rule) {
	if _, known := verdictOf(fmt.Sprint(t.values["decision"])); !known {
		return // Already reported, and it says nothing about the other keys.
	}
	if r.decision == Deny {
		for _, key := range []string{"flags", "env", "code_args", "max_timeout_s", "max_attempts"} {
			misplaced(t, key, "a rule that denies")
		}
		if strings.TrimSpace(r.reason) == "" {
			t.problem(ProblemMissingReason, "reason", "the rule denies without a reason", "write reason; it reaches the agent")
		}
	} else {
		misplaced(t, "recursive_on", "a rule that permits")
	}
	if r.decision == Ask {
		misplaced(t, "env", "a rule that asks, where the person sees every environment value")
	} else {
		misplaced(t, "quorum", "a rule that asks nobody")
	}
	if r.exact {
		misplaced(t, "flags", "exact = true, which takes no further argument")
	}
	if t.has("recursive_on") {
		misplaced(t, "args", "recursive_on, which reads the arguments itself")
		misplaced(t, "exact", "recursive_on, which reads the arguments itself")
	}
}

func misplaced(t *table, key, beside string) {
	if t.has(key) {
		t.problem(ProblemMisplacedKey, key, key+" means nothing beside "+beside, "remove one of them")
	}
}

// checkRoots refuses roots that would put the data folder within reach of a job.
func checkRoots(t *table, roots []string, env Env) {
	if t.has("roots") && len(roots) == 0 {
		t.problem(ProblemBadRoot, "roots", "roots is empty, so the rule matches nowhere", "name a folder, or remove roots to mean anywhere")
	}
	for _, root := range roots {
		switch {
		case !path.IsAbs(root) || path.Clean(root) != root:
			t.problem(ProblemBadRoot, "roots", fmt.Sprintf("root %q is not a clean absolute path", root), "write the real path of a folder, without ~ or ..")
		case withinFold(root, env.DataDir) || withinFold(env.DataDir, root):
			t.problem(ProblemRootCoversDataDir, "roots", fmt.Sprintf("root %q and the data folder %q lie in one another", root, env.DataDir),
				"a job there could rewrite state, keys and policy; name a narrower root or move the data folder")
		}
	}
}
