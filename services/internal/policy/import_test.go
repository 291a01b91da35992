package policy

import (
	"errors"
	"strings"
	"testing"
)

const foreignPolicy = "\ufeff" + `{
  "version": 1,
  "allowed_commands": [
    {"program": "git", "args_prefix": ["status"]},
    {"program": "/usr/bin/make"},
    {"program": "./bin/tool"},
    {"program": "echo", "args_prefix": ["a*b\\c"]}
  ],
  "allowed_working_roots": [".", "sub/../other", "/srv/x"],
  "denied_arguments": ["--force", "Hard"],
  "environment_allowlist": ["PATH"],
  "max_timeout_seconds": 60
}`

func TestImportKeepsTheMeaning(t *testing.T) {
	got, err := ImportAgentSafe([]byte(foreignPolicy), "/home/me/src")
	if err != nil {
		t.Fatal(err)
	}
	p := mustParse(t, string(got.Text))
	tests := []struct {
		line, cwd string
		timeout_s int
		want      Verdict
	}{
		{"git status", "/home/me/src", 60, Ask},
		{"git status --short x", "/home/me/src/deep", 1, Ask},
		{"git status", "/home/me/src/other", 0, Ask},
		{"git status", "/srv/x", 0, Ask},
		{"git status", "/srv", 0, Deny},
		{"git status", "/home/me/src", 61, Deny},
		{"git status --FORCE", "/srv/x", 0, Deny},
		{"git status x--forced", "/srv/x", 0, Deny},
		{"git status reset--hard", "/srv/x", 0, Deny},
		{"git push", "/srv/x", 0, Deny},
		{"/usr/bin/make all", "/srv/x", 0, Ask},
		{"/tmp/make all", "/srv/x", 0, Deny},
		{"./bin/tool", "/home/me/src", 0, Deny},
		{`echo a*b\c`, "/srv/x", 0, Ask},
		{"echo axb", "/srv/x", 0, Deny},
		{"id", "/srv/x", 0, Deny},
	}
	for _, test := range tests {
		argv := strings.Fields(test.line)
		r := Request{Argv: argv, Cwd: test.cwd, RealCwd: test.cwd, ResolvedPath: guessPath(argv[0], test.cwd), Timeout_s: test.timeout_s}
		if d := p.Assess(r); d.Verdict != test.want {
			t.Errorf("%s in %s: %+v, want %s", test.line, test.cwd, d, test.want)
		}
	}
	lost := strings.Join(got.Lost, "\n")
	for _, word := range []string{"./bin/tool", "environment_allowlist", "max_output_chars"} {
		if !strings.Contains(lost, word) {
			t.Errorf("what was lost does not name %s: %s", word, lost)
		}
	}
}

func TestImportWithoutRootsDeniesEverything(t *testing.T) {
	got, err := ImportAgentSafe([]byte(`{"version": 1, "allowed_commands": [{"program": "ls"}]}`), "/home/me/src")
	if err != nil {
		t.Fatal(err)
	}
	if d := mustParse(t, string(got.Text)).Assess(lsRequest()); d.Verdict != Deny || len(got.Lost) == 0 {
		t.Errorf("%+v, lost %q", d, got.Lost)
	}
}

func TestImportRefuses(t *testing.T) {
	for _, text := range []string{
		"", "[]", `{"version": 2}`, `{"version": 1.5}`, `{"version": "1"}`, `{"version": true}`, `{}`, `{"version": 1, "extra": 1}`,
		`{"version": 1, "version": 1}`, `{"version": 1, "allowed_commands": [{"program": "a", "cwd": "/"}]}`, `{"version": 1, "allowed_commands": [{}]}`,
		`{"version": 1, "denied_arguments": [""]}`, `{"version": 1, "denied_arguments": ["a\u0000"]}`, `{"version": 1, "max_timeout_seconds": 0}`,
		`{"version": 1, "max_timeout_seconds": 86401}`, `{"version": 1, "max_output_chars": 1}`, `{"version": 1, "allowed_working_roots": "/"}`,
		strings.Repeat("[", 100000), `{"version": 1} x`, "\xff",
	} {
		if _, err := ImportAgentSafe([]byte(text), "/"); !errors.Is(err, ErrNotAgentSafe) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

func FuzzImportAgentSafe(f *testing.F) {
	f.Add([]byte(foreignPolicy))
	f.Add([]byte(`{"version": 1, "allowed_working_roots": ["/x"], "allowed_commands": [{"program": "\"\n\u202e", "args_prefix": ["\u0001"]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ImportAgentSafe(text, "/home/me/src")
		if err != nil {
			return
		}
		var refused *ParseError
		if _, err := Parse("imported", got.Text, testEnv()); errors.As(err, &refused) && refused.Has(ProblemSyntax) && len(got.Text) < maxLine_bytes {
			t.Fatalf("%q became %q: %v", text, got.Text, err)
		}
	})
}
