package policy

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// The bounds of numbers in a rule.
const (
	maxQuorum    = 9
	maxTimeout_s = 7 * 24 * 3600
	maxAttempts  = 100
	// maxOutput_bytes is the largest ceiling on output that means anything.
	maxOutput_bytes = 1 << 40
	maxIDLetters    = 64
	exampleWorkDir  = "/srv/example"
	confirmDigest   = "digest"
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
	denyArgs    []string // see spelled
	denyText    []string
	pathsUnder  []string // nil when arguments are not confined
	resolved    []string
	window      window
	approvers   []string
	confirm     bool // each yes has to name the digest
	output_b    int
	values      map[string]any // the table as written
	notThese    string         // why a request for another program misses
	broad       string         // why the rule is broad, "" when it is not
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
	r := &rule{line: t.line, values: t.values}
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
	r.denyArgs, r.denyText = t.texts("deny_args"), t.texts("deny_text")
	r.pathsUnder = readPathsUnder(t)
	r.resolved = readResolved(t)
	r.window = readWindow(t)
	r.env = readEnv(t)
	r.roots = t.texts("roots")
	r.pools, r.proposers, r.approvers = readActors(t, "pools"), readProposers(t), readActors(t, "approvers")
	r.confirm = readConfirm(t)
	r.codeArgs = readCodeArgs(t)
	r.reason, r.instead = t.text("reason"), t.text("instead")
	r.quorum = t.number("quorum", 1, maxQuorum)
	r.timeout_s = t.number("max_timeout_s", 1, maxTimeout_s)
	r.attempts = t.number("max_attempts", 1, maxAttempts)
	r.output_b = t.number("max_output_bytes", 1, maxOutput_bytes)
	r.recursiveOn = readGuard(t, env)
	if r.decision == Ask && r.quorum == 0 {
		r.quorum = 1
	}
	checkTogether(t, r)
	checkRoots(t, r.roots, env)
	r.broad = r.whyBroad()
	r.notThese = "the program is not " + r.named()
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

// readConfirm reads how a yes has to be confirmed, for which there is one way.
func readConfirm(t *table) bool {
	if word := t.text("confirm"); t.has("confirm") && word != confirmDigest {
		t.problem(ProblemBadValue, "confirm", fmt.Sprintf("confirm is %q", word), `write confirm = "digest", or remove it`)
	}
	return t.has("confirm")
}

// readProposers reads names that may say of which kind they are: agent:local.
func readProposers(t *table) []string {
	list := t.texts("proposers")
	for _, entry := range list {
		kind, name, kinded := strings.Cut(entry, ":")
		if !kinded {
			name = entry
		}
		if kinded && kind != "agent" && kind != "person" || !actorForm.MatchString(name) {
			t.problem(ProblemBadValue, "proposers", fmt.Sprintf("%q is no name for proposers", entry), `a name has 1 to 32 of the letters a-z 0-9 _ -, and may begin with "agent:" or "person:"`)
		}
	}
	return list
}

func readResolved(t *table) []string {
	list := t.texts("resolved")
	if t.has("resolved") && len(list) == 0 {
		t.problem(ProblemBadValue, "resolved", "resolved is empty, so the rule matches nothing", "name the real path of the program")
	}
	for _, file := range list {
		if !path.IsAbs(file) || path.Clean(file) != file {
			t.problem(ProblemBadProgram, "resolved", fmt.Sprintf("resolved holds %q", file), "write a clean absolute path without symbolic links")
		}
	}
	return list
}

var envForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readEnv reads names of environment values, each with a pattern for the value or not.
func readEnv(t *table) []string {
	list := t.texts("env")
	for _, entry := range list {
		if name, _, _ := strings.Cut(entry, "="); !envForm.MatchString(name) {
			t.problem(ProblemBadValue, "env", fmt.Sprintf("env holds %q", entry), `write "NAME", or "NAME=value" with a pattern for the value`)
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
		for _, key := range []string{"flags", "env", "code_args", "max_timeout_s", "max_attempts", "max_output_bytes", "paths_under", "resolved"} {
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
		misplaced(t, "approvers", "a rule that asks nobody")
		misplaced(t, "confirm", "a rule that asks nobody")
	}
	if r.exact {
		misplaced(t, "flags", "exact = true, which takes no further argument")
	}
	if t.has("recursive_on") {
		misplaced(t, "args", "recursive_on, which reads the arguments itself")
		misplaced(t, "exact", "recursive_on, which reads the arguments itself")
		misplaced(t, "deny_args", "recursive_on, which reads the arguments itself")
		misplaced(t, "deny_text", "recursive_on, which reads the arguments itself")
	}
	if len(r.approvers) > 0 && r.quorum > len(r.approvers) {
		t.problem(ProblemBadValue, "approvers", fmt.Sprintf("the rule asks for %d persons and names %d", r.quorum, len(r.approvers)), "name more of them, or lower quorum")
	}
	for _, key := range []string{"deny_args", "deny_text"} {
		for _, text := range t.texts(key) {
			if text == "" || text == "-" || text == "--" {
				t.problem(ProblemBadValue, key, fmt.Sprintf("%s holds %q", key, text), "write an option such as --force, or a pattern")
			}
		}
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
