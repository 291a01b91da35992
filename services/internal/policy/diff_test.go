package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff(t *testing.T) {
	rule := func(id, rest string) string {
		return "[[rule]]\nid = \"" + id + "\"\nprogram = \"ls\"\n" + rest + "\n"
	}
	ask := `decision = "ask"`
	older := mustParse(t, "version = 1\n"+rule("a", ask)+rule("b", ask+"\nargs = [\"x\"]")+rule("c", ask)+rule("d", ask)+rule("e", ask))
	newer := mustParse(t, "# new\nversion = 1\nmode = \"shadow\"\n"+rule("c", ask)+rule("a", ask)+rule("b", "decision = \"allow\"\nexact = true")+rule("f", ask)+rule("e", ask))
	var got []string
	for _, c := range Diff(older, newer) {
		got = append(got, c.String())
	}
	want := []string{
		`changed policy: mode = shadow, which was enforce`,
		`moved   rule c`,
		`changed rule b: args, which was ["x"], is gone`,
		`changed rule b: exact = true`,
		`changed rule b: decision = "allow", which was "ask"`,
		`added   rule f: decision = ask`,
		`removed rule d`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if d := Diff(newer, newer); d != nil {
		t.Errorf("a policy differs from itself: %v", d)
	}
	if d := Diff(nil, newer); len(d) != 6 {
		t.Errorf("against none: %v", d)
	}
}

func TestCases(t *testing.T) {
	p := mustParse(t, string(Starter()))
	cases, err := ParseCases("t.toml", []byte(`version = 1
[[case]]
argv = ["git", "--version"]
decision = "allow"
rule = "git-version"

[[case]]
argv = ["rm", "-rf", "/"]
decision = "ask"

[[case]]
argv = ["ls"]
cwd = "/tmp"
resolved = "/tmp/ls"
env = {LANG = "C"}
at = 2026-06-01T09:00:00Z
timeout_s = 5
proposer = "agent:local"
decision = "deny"
code = "program_place"
`))
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, o := range p.Try(cases) {
		failed = append(failed, o.Failed())
	}
	if failed[0] != "" || !strings.Contains(failed[1], "deny by no-rm-everything") || failed[2] != "" || cases[1].Line != 7 {
		t.Errorf("%q, %+v", failed, cases)
	}
	for _, text := range []string{
		"version = 1\n[[case]]\nargv = []\ndecision = \"ask\"", "version = 1\n[[case]]\nargv = [\"x\"]\n", "version = 1\n[[case]]\nargv = [\"x\"]\ndecision = \"ask\"\nexpcet = 1",
		"version = 1\n[[cases]]\n", "version = 1\n[[case]]\nargv = [\"x\"]\ndecision = \"ask\"\nenv = {A = 1}", "version = 1\n[[case]]\nargv = [\"x\"]\ndecision = \"ask\"\nat = \"now\"",
	} {
		var refused *ParseError
		if _, err := ParseCases("t", []byte(text)); !errors.As(err, &refused) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
