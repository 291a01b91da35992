package policy

import (
	"errors"
	"strings"
	"testing"
)

// These are ways around policies of this kind that were reported elsewhere, each as
// far as a policy can answer it. What becomes of a file after the decision is the
// worker's to check.

func TestAnImpostorOnThePathIsNotTheProgram(t *testing.T) {
	p := mustParse(t, "version = 1\n[[rule]]\nid = \"a\"\nprogram = \"tool\"\ndecision = \"allow\"\n")
	for real, want := range map[string]Verdict{"/usr/bin/tool": Allow, "/tmp/evil/tool": Deny, "/home/me/src/tool": Deny, "/usr/bin/other": Allow} {
		r := Request{Argv: []string{"tool"}, Cwd: "/home/me/src", RealCwd: "/home/me/src", ResolvedPath: real}
		if d := p.Assess(r); d.Verdict != want {
			t.Errorf("%s: %+v", real, d)
		}
	}
}

func TestOneNameOfAMulticallProgramIsNotAnother(t *testing.T) {
	p := mustParse(t, "version = 1\n[[rule]]\nid = \"a\"\nprogram = \"xzcat\"\ndecision = \"allow\"\n")
	r := Request{Argv: []string{"xz", "data"}, Cwd: "/srv", RealCwd: "/srv", ResolvedPath: "/usr/bin/xz"}
	if d := p.Assess(r); d.Verdict != Deny {
		t.Errorf("xz under a rule for xzcat: %+v", d)
	}
	r.Argv = []string{"xzcat", "data"}
	if d := p.Assess(r); d.Verdict != Allow {
		t.Errorf("xzcat: %+v", d)
	}
}

func TestTheFolderIsJudgedAsItReallyIs(t *testing.T) {
	p := mustParse(t, goodRule+"roots = [\"/home/me/src\"]\n")
	r := Request{Argv: []string{"ls"}, Cwd: "/home/me/src/flip", RealCwd: "/etc", ResolvedPath: "/usr/bin/ls"}
	if d := p.Assess(r); d.Verdict != Deny || d.Code != CodeOutsideRoots {
		t.Errorf("a link out of the root: %+v", d)
	}
}

func TestAWiderEnvironmentIsAnotherPolicy(t *testing.T) {
	narrow, wide := goodRule, strings.Replace(goodRule, `"ask"`, `"allow"`, 1)+"env = [\"LD_PRELOAD\"]\n"
	if mustParse(t, narrow).Digest() == mustParse(t, wide).Digest() {
		t.Error("two policies have one digest")
	}
}

func TestDeniedArgumentsInEverySpellingAndNothingElse(t *testing.T) {
	p := mustParse(t, "version = 1\n[[rule]]\nid = \"a\"\nprogram = \"git\"\ndeny_args = [\"--force\", \"-f\", \"--hard\", \"-c\", \"--config-env\", \"--exec-path\"]\ndecision = \"ask\"\n")
	for line, want := range map[string]Verdict{
		"git clean -f": Deny, "git clean -xdf": Deny, "git clean --forc": Deny, "git reset --har": Deny, "git -c alias.x=!cmd x": Deny,
		"git -calias.x=!cmd x": Deny, "git --exec-path=. x": Deny, "git --config-e a=b x": Deny, "git --exec x": Deny,
		"git log the-rfc": Ask, "git show a--force": Ask, "git add -- -f": Ask, "git status": Ask, "git log --format=x": Ask, "git log --follow x": Ask,
	} {
		r := Request{Argv: strings.Fields(line), Cwd: "/srv", RealCwd: "/srv", ResolvedPath: "/usr/bin/git"}
		if d := p.Assess(r); d.Verdict != want {
			t.Errorf("%s: %+v", line, d)
		}
	}
	r := Request{Argv: []string{"git", "commit", "-m", "never --force"}, Cwd: "/srv", RealCwd: "/srv", ResolvedPath: "/usr/bin/git"}
	if d := p.Assess(r); d.Verdict != Ask {
		t.Errorf("a message that mentions an option: %+v", d)
	}
}

func TestTheStarterAllowsNothingThatReadsARepository(t *testing.T) {
	p := mustParse(t, string(Starter()))
	for _, line := range []string{"git status", "git log", "git diff", "make", "go build", "npm test"} {
		argv := strings.Fields(line)
		if d := p.Assess(Request{Argv: argv, Cwd: "/srv", RealCwd: "/srv", ResolvedPath: "/usr/bin/" + argv[0]}); d.Verdict != Ask {
			t.Errorf("%s: %+v", line, d)
		}
	}
}

func TestArgumentsAreConfinedToFolders(t *testing.T) {
	p := mustParse(t, "version = 1\n[[rule]]\nid = \"a\"\nprogram = \"cat\"\npaths_under = [\".\"]\ndecision = \"allow\"\n")
	for arg, want := range map[string]Verdict{"a": Allow, "../../etc/hostname": Deny, "/etc/hostname": Deny, "x/../../y": Deny} {
		if d := p.Assess(Request{Argv: []string{"cat", arg}, Cwd: "/home/me/src", RealCwd: "/home/me/src", ResolvedPath: "/usr/bin/cat"}); d.Verdict != want {
			t.Errorf("%s: %+v", arg, d)
		}
	}
}

// TestMisspeltAndMeaninglessValuesAreRefused names the key and, where there is one, the
// nearest that is known.
func TestMisspeltAndMeaninglessValuesAreRefused(t *testing.T) {
	deny := strings.Replace(goodRule, `"ask"`, `"deny"`, 1) + "reason = \"r\"\n"
	for text, says := range map[string]string{
		goodRule + "deny_arg = [\"x\"]":                                      `"deny_args"`,
		goodRule + "path_under = [\"/x\"]":                                   `"paths_under"`,
		goodRule + "hour_utc = \"08:00-09:00\"":                              `"hours_utc"`,
		goodRule + "approver = [\"p\"]":                                      `"approvers"`,
		"version = 1\nmod = \"shadow\"":                                      `"mode"`,
		"version = 1\nmode = \"shadows\"":                                    "shadows",
		"version = 1\nmode = true":                                           "string",
		goodRule + "max_timeout_s = \"10\"":                                  "max_timeout_s",
		goodRule + "max_timeout_s = 0":                                       "max_timeout_s",
		goodRule + "max_timeout_s = 1e9":                                     "max_timeout_s",
		goodRule + "max_output_bytes = -1":                                   "max_output_bytes",
		goodRule + "max_output_bytes = \"1MB\"":                              "max_output_bytes",
		goodRule + "quorum = 10":                                             "quorum",
		goodRule + "hours_utc = \"banana\"":                                  "banana",
		goodRule + "hours_utc = \"8-18\"":                                    "8-18",
		goodRule + "hours_utc = \"08:00-08:00\"":                             "08:00",
		goodRule + "hours_utc = \"08:00-25:00\"":                             "25:00",
		goodRule + "hours_utc = \"-1:00-02:00\"":                             "-1:00",
		goodRule + "hours_utc = 8":                                           "string",
		goodRule + "days_utc = [\"monday\"]":                                 "monday",
		goodRule + "approvers = [\"P\"]":                                     "approvers",
		goodRule + "approvers = [\"pa\"]\nquorum = 2":                        "names 1",
		goodRule + "confirm = \"yes\"":                                       "digest",
		goodRule + "confirm = true":                                          "string",
		deny + "confirm = \"digest\"":                                        "asks nobody",
		goodRule + "proposers = [\"robot:x\"]":                               "robot:x",
		goodRule + "paths_under = []":                                        "empty",
		goodRule + "paths_under = [\"../x\"]":                                "../x",
		goodRule + "resolved = [\"xz\"]":                                     "xz",
		goodRule + "resolved = []":                                           "empty",
		goodRule + "deny_args = [\"\"]":                                      "deny_args",
		goodRule + "deny_args = [\"--\"]":                                    "deny_args",
		goodRule + "deny_text = \"x\"":                                       "list of strings",
		goodRule + "deny_args = [\"x\"]\nmatch=[[\"ls\", \"x\"]]":            "is not matched",
		deny + "paths_under = [\".\"]":                                       "denies",
		deny + "resolved = [\"/usr/bin/ls\"]":                                "denies",
		deny + "max_output_bytes = 5":                                        "denies",
		deny + "approvers = [\"p\"]":                                         "asks nobody",
		strings.Replace(goodRule, `"ask"`, `"allow"`, 1) + "env = [\"A-B\"]": "A-B",
	} {
		_, err := Parse("p.toml", []byte(text), testEnv())
		var refused *ParseError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), says) || refused.Problems[0].Line == 0 {
			t.Errorf("%q: %v, want a line and %s", text, err, says)
		}
	}
}

func TestAMarkOfByteOrderAndOtherLineEndsAreTaken(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(strings.TrimSuffix(goodRule, "\n"), "\n", "\r\n")
	if d := mustParse(t, text).Assess(lsRequest()); d.Verdict != Ask {
		t.Errorf("%+v", d)
	}
}
