package policy

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func lsRequest() Request {
	return Request{Argv: []string{"ls"}, Cwd: "/tmp/w", RealCwd: "/tmp/w", ResolvedPath: "/usr/bin/ls"}
}

func TestNoPolicyDeniesEverything(t *testing.T) {
	var none *Policy
	for name, p := range map[string]*Policy{"nil": none, "zero": {}, "without rules": mustParse(t, "version = 1")} {
		want := CodeUnlisted
		if p == nil {
			want = CodeNoPolicy
		}
		for _, d := range []Decision{p.Static(lsRequest()), p.Assess(lsRequest())} {
			if d.Verdict != Deny || d.Code != want || d.Reason == "" || d.Instead == "" {
				t.Errorf("%s: %+v", name, d)
			}
		}
		checkExplained(t, p, lsRequest(), p.Assess(lsRequest()))
		if p.Warnings() != nil {
			t.Errorf("%s: warnings", name)
		}
	}
	if none.Digest() != "" || none.Text() != nil {
		t.Error("a nil policy has a text")
	}
}

func TestAssessNeedsTheResolution(t *testing.T) {
	p := mustParse(t, goodRule)
	for _, spoil := range []func(*Request){
		func(r *Request) { r.RealCwd = "" },
		func(r *Request) { r.ResolvedPath = "" },
	} {
		r := lsRequest()
		spoil(&r)
		if d := p.Assess(r); d.Verdict != Deny || d.Code != CodeUnresolved {
			t.Errorf("Assess = %+v, want unresolved", d)
		}
		if d := p.Static(r); d.Verdict != Ask {
			t.Errorf("Static = %+v, want ask", d)
		}
	}
}

func TestMalformedRequestsAreDenied(t *testing.T) {
	p := mustParse(t, goodRule)
	for name, spoil := range map[string]func(*Request){
		"no argv":           func(r *Request) { r.Argv = nil },
		"no program":        func(r *Request) { r.Argv = []string{"", "x"} },
		"NUL":               func(r *Request) { r.Argv = []string{"ls", "a\x00"} },
		"no cwd":            func(r *Request) { r.Cwd = "" },
		"relative cwd":      func(r *Request) { r.Cwd = "tmp" },
		"relative real cwd": func(r *Request) { r.RealCwd = "tmp" },
		"relative program":  func(r *Request) { r.ResolvedPath = "usr/bin/ls" },
	} {
		r := lsRequest()
		spoil(&r)
		if d := p.Assess(r); d.Verdict != Deny || d.Code != CodeBadRequest {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestTheDataFolderIsNoPlaceToWork(t *testing.T) {
	p := mustParse(t, goodRule)
	for _, cwd := range []string{"/var/lib/banksman", "/var/lib/banksman/", "/var/lib/banksman/a/b", "/var/lib/x/../banksman", "/Var/lib/BANKSMAN"} {
		for _, set := range []func(*Request){
			func(r *Request) { r.Cwd = cwd },
			func(r *Request) { r.RealCwd = cwd },
		} {
			r := lsRequest()
			set(&r)
			if d := p.Static(r); d.Verdict != Deny || d.Code != CodeInDataDir {
				t.Errorf("%+v: %+v", r, d)
			}
		}
	}
	r := lsRequest()
	r.Cwd, r.RealCwd = "/var/lib/banksman2", "/var/lib/banksman2"
	if d := p.Assess(r); d.Verdict != Ask {
		t.Errorf("a neighbour of the data folder: %+v", d)
	}
}

func TestRootsBindTheRealFolder(t *testing.T) {
	p := mustParse(t, goodRule+"roots = [\"/home/me/src\"]\n[[rule]]\nid = \"no\"\nprogram = \"rm\"\nroots = [\"/srv\"]\ndecision = \"deny\"\nreason = \"r\"\n")
	tests := []struct {
		cwd, real, program string
		static, assess     Verdict
		code               Code
	}{
		{"/home/me/src", "/home/me/src", "ls", Ask, Ask, CodeRule},
		{"/home/me/src/a", "/home/me/src/a", "ls", Ask, Ask, CodeRule},
		{"/home/me/srcs", "/home/me/srcs", "ls", Ask, Deny, CodeOutsideRoots},
		{"/link", "/home/me/src", "ls", Ask, Ask, CodeRule},
		{"/home/me/src/link", "/etc", "ls", Ask, Deny, CodeOutsideRoots},
		{"/srv/a", "/srv/a", "rm", Deny, Deny, CodeRule},
		{"/srv/link", "/tmp", "rm", Deny, Deny, CodeRule},
		{"/link", "/srv", "rm", Deny, Deny, CodeRule},
	}
	for _, test := range tests {
		r := Request{Argv: []string{test.program}, Cwd: test.cwd, RealCwd: test.real, ResolvedPath: "/usr/bin/" + test.program}
		d := p.Assess(r)
		if d.Verdict != test.assess || d.Code != test.code {
			t.Errorf("%s (%s): %+v", test.cwd, test.real, d)
		}
		r.RealCwd, r.ResolvedPath = "", ""
		if d := p.Static(r); d.Verdict != test.static {
			t.Errorf("%s before resolution: %+v", test.cwd, d)
		}
	}
}

func TestAProgramWhereJobsWriteIsNotTrusted(t *testing.T) {
	p := mustParse(t, "version = 1\n[[rule]]\nid = \"git\"\nprogram = \"git\"\ndecision = \"allow\"\n[[rule]]\nid = \"ls\"\nprogram = \"ls\"\nroots = [\"/opt/work\"]\ndecision = \"ask\"\n")
	tests := []struct {
		cwd, realCwd, program string
		want                  Verdict
	}{
		{"/tmp", "/tmp", "/opt/tools/git", Allow},
		{"/tmp", "/tmp", "/opt/work/bin/git", Deny}, // the root of another rule
		{"/link", "/opt/app", "/opt/app/git", Deny}, // the real working folder
		{"/opt/app", "/tmp", "/opt/app/git", Deny},  // the working folder as proposed
	}
	for _, test := range tests {
		d := p.Assess(Request{Argv: []string{"git"}, Cwd: test.cwd, RealCwd: test.realCwd, ResolvedPath: test.program})
		if d.Verdict != test.want || d.Verdict == Deny && d.Code != CodeProgramPlace {
			t.Errorf("%+v: %+v", test, d)
		}
	}
}

func TestADecisionCarriesTheRule(t *testing.T) {
	p := mustParse(t, goodRule+"quorum = 2\nmax_timeout_s = 60\nmax_attempts = 3\nreason = \"why\"\ninstead = \"else\"\ncode_args = [\"operands\"]\n")
	r := lsRequest()
	r.Argv, r.Timeout_s, r.MaxAttempts = []string{"ls", "-l", "a", "b"}, 60, 3
	want := Decision{Verdict: Ask, Rule: "a", Code: CodeRule, Reason: "why", Instead: "else", Quorum: 2, CodeArgs: []int{2, 3}, MaxTimeout_s: 60, MaxAttempts: 3}
	if diff := cmp.Diff(want, p.Assess(r)); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	for _, over := range []func(*Request){
		func(r *Request) { r.Timeout_s = 61 },
		func(r *Request) { r.MaxAttempts = 4 },
	} {
		r := r
		over(&r)
		if d := p.Assess(r); d.Verdict != Deny || d.Code != CodeOverCeiling || d.Rule != "a" {
			t.Errorf("over the ceiling: %+v", d)
		}
		if d := p.Static(r); d.Verdict != Deny || d.Code != CodeOverCeiling {
			t.Errorf("over the ceiling, before resolution: %+v", d)
		}
	}
}

func TestACeilingIsProvisionalBeforeResolution(t *testing.T) {
	p := mustParse(t, goodRule+"max_timeout_s = 60\nroots = [\"/srv\"]\n[[rule]]\nid = \"b\"\nprogram = \"ls\"\ndecision = \"ask\"\n")
	r := lsRequest()
	r.Timeout_s = 100
	if d := p.Assess(r); d.Rule != "b" || d.Verdict != Ask {
		t.Fatalf("outside the roots of the first rule: %+v", d)
	}
	r.RealCwd, r.ResolvedPath = "", ""
	if d := p.Static(r); d.Verdict != Ask {
		t.Errorf("Static denies what Assess does not: %+v", d)
	}
}

func TestPoolsAndProposersNarrowARule(t *testing.T) {
	p := mustParse(t, goodRule+"pools = [\"build\"]\nproposers = [\"local\"]\nmatch = [[\"ls\"]]\n")
	r := lsRequest()
	r.Pool, r.Proposer = "build", "local"
	if d := p.Assess(r); d.Verdict != Ask {
		t.Errorf("in scope: %+v", d)
	}
	for _, set := range []func(*Request){func(r *Request) { r.Pool = "x" }, func(r *Request) { r.Proposer = "" }} {
		r := r
		set(&r)
		if d := p.Assess(r); d.Verdict != Deny || d.Code != CodeUnlisted {
			t.Errorf("out of scope: %+v", d)
		}
	}
}

func TestADenialDoesNotRepeatArguments(t *testing.T) {
	p := mustParse(t, string(Starter()))
	for _, argv := range [][]string{{"mysql", "-phunter2"}, {"git", "--version", "hunter2"}, {"/srv/hunter2/x"}, {strings.Repeat("x", 5000)}} {
		r := lsRequest()
		r.Argv, r.ResolvedPath = argv, "/srv/x"
		d := p.Assess(r)
		if strings.Contains(d.Reason+d.Instead, "hunter2") || len(d.Reason+d.Instead) > 1000 {
			t.Errorf("%.40q: %+v", argv, d)
		}
	}
}

func TestCodeArgs(t *testing.T) {
	tests := []struct {
		words string
		argv  string
		want  []int
	}{
		{"script", "sh x.sh data", []int{1}},
		{"script", "bash -e x.sh data more", []int{2, 3}},
		{"script", "bash -o errexit x.sh data", []int{2, 3}},
		{"script", "python3 -O -W ignore x.py", []int{3, 4}},
		{"script", "node --import=./h.mjs -r ./h.js app.js", []int{3, 4}},
		{"script", "bash -- x.sh data", []int{2}},
		{"script", "sh", nil},
		{"operands", "cat -n a - b", []int{2, 3, 4}},
		{"2", "x a b c", []int{2}},
		{"9", "x a", nil},
		{"1 script 3", "sh x.sh a b", []int{1, 3}},
	}
	for _, test := range tests {
		list, _ := json.Marshal(strings.Fields(test.words))
		p := mustParse(t, strings.Replace(goodRule, `"ls"`, `["sh", "bash", "python3", "node", "cat", "x"]`, 1)+"code_args = "+string(list))
		r := lsRequest()
		r.Argv = strings.Fields(test.argv)
		if got := p.Static(r).CodeArgs; !slices.Equal(got, test.want) {
			t.Errorf("%s of %q: %v, want %v", test.words, test.argv, got, test.want)
		}
	}
}

func TestBroadRulesAreMarked(t *testing.T) {
	tests := []struct {
		rest  string
		broad bool
	}{
		{`program = "python3"`, true},
		{`program = "python3.13"`, true},
		{`program = "npm"`, true},
		{`program = ["true", "bash"]`, true},
		{"program = \"sh\"\nargs = [\"-c\"]", false}, // every command in the text is judged
		{"program = \"sh\"\nargs = [\"-e\"]", true},
		{"program = \"sh\"\nargs = [\"x.sh\"]\nexact = true", true},
		{"program = \"sh\"\nargs = [\"x.sh\"]\nexact = true\ncode_args = [\"1\"]", false},
		{"program = \"go\"\nargs = [\"version\"]\nexact = true", false},
		{"program = \"git\"\nflags = [\"-*\"]", true},
		{`program = "cat"`, false},
		{`program = ["cat", "awk"]`, true},
		{`program = "sed"`, true},
		{`program = "find"`, true},
		{`program = "tar"`, true}, // tar cIf PROGRAM needs no dash
		{`program = "git"`, true},
	}
	for _, test := range tests {
		p := mustParse(t, "version = 1\n[[rule]]\nid = \"a\"\ndecision = \"allow\"\n"+test.rest)
		if got := len(p.Warnings()) > 0; got != test.broad {
			t.Errorf("%s: warnings %v", test.rest, p.Warnings())
		}
		asked := mustParse(t, "version = 1\n[[rule]]\nid = \"a\"\ndecision = \"ask\"\n"+test.rest)
		if len(asked.Warnings()) > 0 {
			t.Errorf("%s: an ask rule warns: %v", test.rest, asked.Warnings())
		}
	}
	p := mustParse(t, "version = 1\n[[rule]]\nid = \"a\"\ndecision = \"allow\"\nprogram = \"sh\"")
	if d := p.Static(Request{Argv: []string{"sh", "x"}, Cwd: "/"}); !d.Broad {
		t.Errorf("a decision by a broad rule is not marked: %+v", d)
	}
}

// A rule whose arguments are pinned may still run what lies in the working folder;
// that is worth a warning, and does not make it broad.
func TestRulesThatRunCodeOfTheFolderAreNamed(t *testing.T) {
	for rest, want := range map[string]bool{
		"program = \"git\"\nargs = [\"status\"]\nexact = true": true, "program = \"git\"\nargs = [\"log\"]": true, "program = \"/usr/bin/git\"\nargs = [\"diff\"]": true,
		"program = \"make\"\nexact = true": true, "program = \"npm\"\nargs = [\"ci\"]\nexact = true": true, "program = \"go\"\nargs = [\"test\", \"./...\"]\nexact = true": true,
		"program = \"git\"\nargs = [\"--version\"]\nexact = true": false, "program = \"go\"\nargs = [\"version\"]\nexact = true": false, "program = \"ls\"": false,
	} {
		p := mustParse(t, "version = 1\n[[rule]]\nid = \"a\"\ndecision = \"allow\"\n"+rest)
		list := p.Warnings()
		if (len(list) == 1 && list[0].Code == ProblemFolderCode) != want || !want && len(list) > 0 || p.rules[0].broad != "" {
			t.Errorf("%s: %v, broad %q", rest, list, p.rules[0].broad)
		}
	}
}

func TestVerdictText(t *testing.T) {
	for _, v := range []Verdict{Deny, Ask, Allow} {
		text, err := json.Marshal(v)
		var back Verdict
		if err != nil || json.Unmarshal(text, &back) != nil || back != v {
			t.Errorf("%v: %s, %v", v, text, err)
		}
	}
	var v Verdict
	if v.UnmarshalText([]byte("maybe")) == nil || Verdict(9).String() != "deny" {
		t.Error("an unknown verdict is taken for something")
	}
}

// TestExplainGolden keeps the words that people read. Run with -update to accept a change.
func TestExplainGolden(t *testing.T) {
	p := mustParse(t, string(Starter()))
	var out strings.Builder
	for _, r := range []Request{
		{Argv: []string{"git", "--version"}, Cwd: "/tmp/w", RealCwd: "/tmp/w", ResolvedPath: "/usr/bin/git"},
		{Argv: []string{"./git", "--version"}, Cwd: "/tmp/w", RealCwd: "/tmp/w", ResolvedPath: "/tmp/w/git"},
		{Argv: []string{"git", "push"}, Cwd: "/tmp/w"},
		{Argv: []string{"sudo", "rm", "-rf", "/home"}, Cwd: "/tmp/w", RealCwd: "/tmp/w", ResolvedPath: "/usr/bin/sudo"},
		{Argv: []string{"bash", "-lc", "cd sub && go test ./... > log; frobnicate $X"}, Cwd: "/tmp/w", RealCwd: "/tmp/w", ResolvedPath: "/usr/bin/bash"},
		{Argv: []string{"sh", "-c", "git -C x push -uf"}, Cwd: "/tmp/w"},
		{Argv: []string{"docker", "ps"}, Cwd: "/tmp/w", RealCwd: "/tmp/w", ResolvedPath: "/usr/bin/docker"},
		{Argv: []string{"ls"}, Cwd: "/var/lib/banksman"},
	} {
		out.WriteString("$ " + strings.Join(r.Argv, " ") + "\n")
		for _, step := range p.Explain(r) {
			out.WriteString(step.String() + "\n")
		}
		d := p.Static(r)
		out.WriteString(d.Verdict.String() + " " + string(d.Code) + ": " + d.Reason + "\ninstead: " + d.Instead + "\n\n")
	}
	const file = "testdata/explain.golden"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("explanations (-want +got):\n%s", diff)
	}
}
