package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goodRule is a rule that a test spoils in one place.
const goodRule = `version = 1
[[rule]]
id = "a"
program = "ls"
decision = "ask"
`

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		code       ProblemCode
		line       int
		says       string // a part of the message or of the next step
	}{
		{"not TOML", "version = 1\nx = [", ProblemSyntax, 2, ""},
		{"duplicate key", goodRule + "id = \"b\"\n", ProblemSyntax, 6, "already"},
		{"invalid UTF-8", "version = 1\n# \xff\n", ProblemSyntax, 2, ""},
		{"too long", strings.Repeat("#\n", maxText_bytes), ProblemSyntax, 0, "bytes"},
		{"long line", "#" + strings.Repeat("x", maxLine_bytes), ProblemSyntax, 0, "line 1"},
		{"deep", "version = 1\nx = " + strings.Repeat("[", 100), ProblemSyntax, 0, "brackets"},
		{"empty", "", ProblemBadVersion, 0, "version = 1"},
		{"other version", "\nversion = 2", ProblemBadVersion, 2, "version 2"},
		{"version as text", `version = "1"`, ProblemWrongType, 1, "whole number"},
		{"unknown top key", "version = 1\nrules = []", ProblemUnknownKey, 2, `"rule"`},
		{"unknown table", goodRule + "[limits]\nx = 1", ProblemUnknownKey, 6, "limits"},
		{"unknown key", goodRule + "\n# note\nexcat = true", ProblemUnknownKey, 8, `"exact"`},
		{"unknown key behind lists", goodRule + "match = [\n  [\"ls\"],\n  [\"ls\", \"x\"],\n]\nexcat = true", ProblemUnknownKey, 10, "exact"},
		{"unknown far key", goodRule + "frobnicate = true", ProblemUnknownKey, 6, "the keys are"},
		{"unknown quoted key", goodRule + `"arg s" = 1`, ProblemUnknownKey, 6, "args"},
		{"unknown sub-table", goodRule + "[rule.limits]\nx = 1", ProblemUnknownKey, 6, "limits"},
		{"unknown dotted key", goodRule + "limits.x = 1", ProblemUnknownKey, 6, "limits"},
		{"rule is one table", "version = 1\n[rule]\nid = \"a\"", ProblemWrongType, 2, "[[rule]]"},
		{"key in lower case only", goodRule + "Exact = true", ProblemUnknownKey, 6, `"exact"`},
		{"args as text", goodRule + `args = "x"`, ProblemWrongType, 6, "list of strings"},
		{"args of numbers", goodRule + "args = [\n1]", ProblemWrongType, 6, "list of strings"},
		{"exact as text", goodRule + `exact = "true"`, ProblemWrongType, 6, "true or false"},
		{"flat example", goodRule + `match = ["ls"]`, ProblemWrongType, 6, "argument vectors"},
		{"empty example", goodRule + `match = [[]]`, ProblemWrongType, 6, "argument vectors"},
		{"quorum as float", goodRule + "quorum = 1.5", ProblemWrongType, 6, "whole number"},
		{"hidden text", goodRule + `reason = "a\u202Eb"`, ProblemBadText, 6, "U+202E"},
		{"control text", goodRule + `args = ["a\u0000"]`, ProblemBadText, 6, "U+0000"},
		{"no id", strings.Replace(goodRule, `id = "a"`, "", 1), ProblemBadID, 2, "no id"},
		{"bad id", strings.Replace(goodRule, `"a"`, `"A b"`, 1), ProblemBadID, 3, `"A b"`},
		{"duplicate id", goodRule + "[[rule]]\nprogram = \"ls\"\ndecision = \"ask\"\nid = \"a\"\n", ProblemDuplicateID, 9, "line 2"},
		{"no program", strings.Replace(goodRule, `program = "ls"`, "", 1), ProblemEmptyProgram, 2, "no program"},
		{"empty program", strings.Replace(goodRule, `"ls"`, `""`, 1), ProblemEmptyProgram, 4, "no program"},
		{"empty program list", strings.Replace(goodRule, `"ls"`, `[]`, 1), ProblemEmptyProgram, 4, "no program"},
		{"empty in program list", strings.Replace(goodRule, `"ls"`, `["ls", ""]`, 1), ProblemEmptyProgram, 4, "no program"},
		{"program as number", strings.Replace(goodRule, `"ls"`, `3`, 1), ProblemWrongType, 4, "string"},
		{"relative program", strings.Replace(goodRule, `"ls"`, `"./ls"`, 1), ProblemBadProgram, 4, "./ls"},
		{"program with words", strings.Replace(goodRule, `"ls"`, `"git status"`, 1), ProblemBadProgram, 4, "args"},
		{"any program", strings.Replace(goodRule, `"ls"`, `"*"`, 1), ProblemBadProgram, 4, "everything"},
		{"unclean program", strings.Replace(goodRule, `"ls"`, `"/usr/../bin/ls"`, 1), ProblemBadProgram, 4, "/bin/ls"},
		{"program in data folder", strings.Replace(goodRule, `"ls"`, `"/var/lib/banksman/x"`, 1), ProblemBadProgram, 4, "data folder"},
		{"no decision", strings.Replace(goodRule, `decision = "ask"`, "", 1), ProblemBadDecision, 2, "allow"},
		{"bad decision", strings.Replace(goodRule, `"ask"`, `"deney"`, 1), ProblemBadDecision, 5, `"deny"`},
		{"deny without reason", strings.Replace(goodRule, `"ask"`, `"deny"`, 1), ProblemMissingReason, 2, "reason"},
		{"deny with flags", strings.Replace(goodRule, `"ask"`, `"deny"`, 1) + "reason = \"r\"\nflags = []", ProblemMisplacedKey, 7, "flags"},
		{"quorum of an allow", strings.Replace(goodRule, `"ask"`, `"allow"`, 1) + "quorum = 1", ProblemMisplacedKey, 6, "asks nobody"},
		{"env of an ask", goodRule + `env = ["A"]`, ProblemMisplacedKey, 6, "env"},
		{"exact and flags", goodRule + "exact = true\nflags = []", ProblemMisplacedKey, 7, "exact"},
		{"guarded ask", goodRule + `recursive_on = ["/"]`, ProblemMisplacedKey, 6, "permits"},
		{"guard and args", strings.Replace(goodRule, `"ask"`, `"deny"`, 1) + "reason = \"r\"\nrecursive_on = [\"/\"]\nargs = []", ProblemMisplacedKey, 8, "recursive_on"},
		{"empty guard", strings.Replace(goodRule, `"ask"`, `"deny"`, 1) + "reason = \"r\"\nrecursive_on = []", ProblemBadValue, 7, "empty"},
		{"relative guard", strings.Replace(goodRule, `"ask"`, `"deny"`, 1) + "reason = \"r\"\nrecursive_on = [\"$HOME\"]", ProblemBadValue, 7, "$HOME"},
		{"no persons", goodRule + "quorum = 0", ProblemBadValue, 6, "1 to 9"},
		{"negative time", goodRule + "max_timeout_s = -1", ProblemBadValue, 6, "max_timeout_s"},
		{"bad code place", goodRule + `code_args = ["first"]`, ProblemBadValue, 6, "script"},
		{"bad pool", goodRule + `pools = ["Build"]`, ProblemBadValue, 6, "pools"},
		{"relative root", goodRule + `roots = ["~/src"]`, ProblemBadRoot, 6, "~/src"},
		{"unclean root", goodRule + `roots = ["/srv/../var"]`, ProblemBadRoot, 6, "clean"},
		{"no roots", goodRule + `roots = []`, ProblemBadRoot, 6, "nowhere"},
		{"root above data", goodRule + `roots = ["/var/lib"]`, ProblemRootCoversDataDir, 6, "/var/lib/banksman"},
		{"root is data", goodRule + `roots = ["/var/lib/banksman"]`, ProblemRootCoversDataDir, 6, ""},
		{"root in another letter case", goodRule + `roots = ["/Var/Lib/Banksman/x"]`, ProblemRootCoversDataDir, 6, ""},
		{"root in data", goodRule + `roots = ["/var/lib/banksman/work"]`, ProblemRootCoversDataDir, 6, ""},
		{"root of all", goodRule + `roots = ["/"]`, ProblemRootCoversDataDir, 6, ""},
		{"example not matched", goodRule + `match = [["ls"], ["cat", "x"]]`, ProblemExampleFailed, 6, "cat"},
		{"counter-example matched", goodRule + `not_match = [["ls", "-l"]]`, ProblemExampleFailed, 6, "is matched"},
		{"inline rules", "version = 1\nrule = [{id = \"a\"}]", ProblemWrongType, 2, "[[rule]]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := Parse("p.toml", []byte(test.text), testEnv())
			var refused *ParseError
			if p != nil || !errors.As(err, &refused) {
				t.Fatalf("Parse = %v, %v, want a ParseError", p, err)
			}
			for _, problem := range refused.Problems {
				if problem.Code == test.code && problem.Line == test.line && strings.Contains(problem.Error(), test.says) {
					return
				}
			}
			t.Errorf("want %s in line %d saying %q, got %v", test.code, test.line, test.says, err)
		})
	}
}

func TestParseReportsEverythingAtOnce(t *testing.T) {
	text := "version = 3\n[[rule]]\nid = \"a\"\nprogam = \"ls\"\ndecision = \"alow\"\n[[rule]]\nid = \"a\"\nprogram = \"ls\"\ndecision = \"deny\"\nroots = [\"src\"]\n"
	_, err := Parse("p.toml", []byte(text), testEnv())
	var refused *ParseError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, p := range refused.Problems {
		got = append(got, fmt.Sprintf("%d %s %s", p.Line, p.Rule, p.Code))
	}
	want := []string{
		"1  bad_version", "2 a empty_program", "4 #1 unknown_key", "5 a bad_decision",
		"6 a missing_reason", "7 a duplicate_id", "10 a bad_root",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s\n%v", diff, err)
	}
	var one Problem
	if !errors.As(err, &one) || one.Line != 1 {
		t.Errorf("errors.As finds %+v, want the first problem", one)
	}
	if !refused.Has(ProblemBadRoot) || refused.Has(ProblemSyntax) {
		t.Error("Has does not tell what is there")
	}
}

func TestParseRefusesAnAllowedProgramInARoot(t *testing.T) {
	text := goodRule + "roots = [\"/home/me/src\"]\n[[rule]]\nid = \"b\"\nprogram = \"/home/me/src/x\"\ndecision = \"allow\"\n"
	_, err := Parse("p", []byte(text), testEnv())
	var refused *ParseError
	if !errors.As(err, &refused) || !refused.Has(ProblemProgramInRoot) {
		t.Errorf("got %v", err)
	}
}

func TestParseRefusesAnUnusableEnv(t *testing.T) {
	for _, env := range []Env{{}, {DataDir: "x"}, {DataDir: "/"}, {DataDir: "/a/../b"}, {DataDir: "/a", Homes: []string{"~"}}} {
		_, err := Parse("p", []byte(goodRule), env)
		var refused *ParseError
		if !errors.As(err, &refused) || !refused.Has(ProblemBadEnv) {
			t.Errorf("%+v: got %v", env, err)
		}
	}
}

func TestProblemCodesStayInOrderOfLines(t *testing.T) {
	text := "version = 1\n" + strings.Repeat("[[rule]]\nid = \"\"\"\nx\"\"\" # [[rule]]\nargs = [ # ]\n'[[rule]]', \"\\\"[\",\n]\nbad = 1\n", 3)
	_, err := Parse("p", []byte(text), testEnv())
	var refused *ParseError
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	var lines []int
	for _, p := range refused.Problems {
		if p.Code == ProblemUnknownKey {
			lines = append(lines, p.Line)
		}
	}
	if diff := cmp.Diff([]int{8, 15, 22}, lines); diff != "" {
		t.Errorf("lines of the unknown keys (-want +got):\n%s", diff)
	}
}

func TestDigestAndTextAreOfTheExactBytes(t *testing.T) {
	text := []byte(goodRule)
	p, err := Parse("p", text, testEnv())
	if err != nil {
		t.Fatal(err)
	}
	text[0] = 'X'
	if string(p.Text()) != goodRule {
		t.Error("the policy changes with the caller's bytes")
	}
	p.Text()[0] = 'X'
	if string(p.Text()) != goodRule {
		t.Error("the policy changes with the bytes it handed out")
	}
	q := mustParse(t, goodRule+"\n")
	if len(p.Digest()) != 64 || p.Digest() == q.Digest() {
		t.Errorf("digests %q and %q", p.Digest(), q.Digest())
	}
}
