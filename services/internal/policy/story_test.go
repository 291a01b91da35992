package policy

import (
	"bufio"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testEnv is the machine of the tests.
func testEnv() Env {
	return Env{DataDir: "/var/lib/banksman", Homes: []string{"/root", "/home/me", "/data/people/ann"}}
}

func mustParse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse("test", []byte(text), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestStories plays every file of testdata/stories: a policy, a line of three dashes,
// and lines of verdict, rule id or code of the decision, and argument vector. The lines cwd, real and
// env set the working folder, the resolved program and the names of environment values
// for what follows; cwd resets real, and without real a name lies in /usr/bin.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("find the stories: %v, %d files", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { playStory(t, file) })
	}
}

func playStory(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, tail, ok := strings.Cut(string(text), "\n---\n")
	if !ok {
		t.Fatal("the story has no line of three dashes")
	}
	rules := "version = 1\n" + head
	if strings.HasSuffix(head, "\nstarter") {
		rules = string(Starter())
	}
	p := mustParse(t, rules)
	scene := Request{Cwd: "/home/me/src"}
	lines := bufio.NewScanner(strings.NewReader(tail))
	for number := strings.Count(head, "\n") + 3; lines.Scan(); number++ {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "", "#":
		case "cwd":
			scene.Cwd, scene.ResolvedPath = rest, ""
		case "real":
			scene.ResolvedPath = rest
		case "env":
			scene.EnvNames = strings.Fields(rest)
		default:
			by, vector, _ := strings.Cut(rest, " ")
			request := scene
			if err := json.Unmarshal([]byte(vector), &request.Argv); err != nil {
				t.Fatalf("line %d: %v", number, err)
			}
			checkLine(t, p, number, request, word, by)
		}
	}
}

func checkLine(t *testing.T, p *Policy, number int, r Request, verdict, by string) {
	t.Helper()
	before := r
	before.ResolvedPath = ""
	if r.ResolvedPath == "" {
		r.ResolvedPath = resolveLike(r)
	}
	r.RealCwd = r.Cwd
	d := p.Assess(r)
	got := d.Rule
	if got == "" || by == string(d.Code) {
		got = string(d.Code)
	}
	if d.Verdict.String() != verdict || got != by {
		t.Errorf("line %d: %q in %s (real %s)\n got %s by %s: %s\nwant %s by %s",
			number, r.Argv, r.Cwd, r.ResolvedPath, d.Verdict, got, d.Reason, verdict, by)
	}
	if p.Static(before).Verdict == Deny && d.Verdict != Deny {
		t.Errorf("line %d: %q is denied before resolution and not after", number, r.Argv)
	}
	if d.Verdict == Deny && (d.Reason == "" || d.Code != CodeRule && d.Instead == "") {
		t.Errorf("line %d: %q is denied without saying why or what to do: %+v", number, r.Argv, d)
	}
	checkExplained(t, p, r, d)
}

// checkExplained compares the explanation with the decision.
func checkExplained(t testing.TB, p *Policy, r Request, d Decision) {
	t.Helper()
	deciding := 0
	for _, step := range p.Explain(r) {
		if step.Why == "" {
			t.Fatalf("%q: step %q says nothing", r.Argv, step.Rule)
		}
		if !step.Decides {
			continue
		}
		deciding++
		if step.Rule != d.Rule || !step.Matched || d.Code == CodeRule && step.Decision != d.Verdict {
			t.Fatalf("%q: %+v explains %+v", r.Argv, step, d)
		}
	}
	if deciding != 1 {
		t.Fatalf("%q: %d steps decide", r.Argv, deciding)
	}
}

// resolveLike stands in for the worker's resolution.
func resolveLike(r Request) string {
	switch name := r.Argv[0]; {
	case path.IsAbs(name):
		return path.Clean(name)
	case strings.Contains(name, "/"):
		return path.Join(r.Cwd, name)
	default:
		return "/usr/bin/" + name
	}
}

func TestEveryStarterProgramIsReachable(t *testing.T) {
	p := mustParse(t, string(Starter()))
	want := "sh bash git go make npm node python3 cat ls cp mv mkdir touch grep sed awk find head tail sort wc diff tar curl wget rm chmod"
	for _, name := range strings.Fields(want) {
		d := p.Assess(Request{Argv: []string{name, "x"}, Cwd: "/tmp/w", RealCwd: "/tmp/w", ResolvedPath: "/usr/bin/" + name})
		if d.Verdict != Ask || d.Quorum != 1 {
			t.Errorf("%s: %+v, want ask with one person", name, d)
		}
	}
	if w := p.Warnings(); len(w) > 0 {
		t.Errorf("the starter policy warns: %v", w)
	}
	d := p.Assess(Request{Argv: []string{"bash", "-e", "x.sh"}, Cwd: "/tmp/w", RealCwd: "/tmp/w", ResolvedPath: "/usr/bin/bash"})
	if !slices.Equal(d.CodeArgs, []int{2}) {
		t.Errorf("bash -e x.sh: code args %v, want [2]", d.CodeArgs)
	}
}
