package worker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/proc"
)

// place is a folder with programs and a policy that asks about all of them.
func place(t *testing.T) (dir string, p *policy.Policy) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, sub := range []string{"bin", "work"} {
		must(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	write := func(name, text string, mode os.FileMode) {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
	}
	write("bin/tool", "#!/bin/sh\n", 0o755)
	write("bin/viaenv", "#!/usr/bin/env tool\n", 0o755)
	write("bin/lost", "#!/no/such/interpreter\n", 0o755)
	write("bin/plain", "text", 0o644)
	write("work/x.sh", "echo\n", 0o644)
	must(t, os.Symlink("work", filepath.Join(dir, "link")))
	p, err = policy.Parse("test", []byte(`version = 1
[[rule]]
id = "all"
program = ["tool", "viaenv", "lost", "sh", "true"]
code_args = ["operands"]
decision = "ask"
`), policy.Env{DataDir: "/var/lib/banksman"})
	must(t, err)
	return dir, p
}

func asked(dir string, argv ...string) lifecycle.Job {
	return lifecycle.Job{Pool: "default", ProposalDigest: "pd", Proposal: &events.JobProposed{
		Argv: argv, Cwd: filepath.Join(dir, "link"), Pool: "default", TimeoutS: 1, MaxAttempts: 1,
	}}
}

func TestLookFindsEverythingThatTakesPart(t *testing.T) {
	dir, p := place(t)
	s, fault := look(asked(dir, "viaenv", "x.sh", "missing", ".", "-v"), p, filepath.Join(dir, "bin")+":/usr/bin:/bin", noon)
	if fault != nil {
		t.Fatal(fault)
	}
	r := s.resolved
	if r.Cwd != filepath.Join(dir, "work") || r.Program.Path != filepath.Join(dir, "bin", "viaenv") || r.Policy != p.Digest() || r.Proposal != "pd" {
		t.Errorf("%+v", r)
	}
	found := map[string]int{}
	for _, f := range r.Files {
		found[f.Path] = f.Arg
		if sum, size, err := proc.DigestFile(f.Path); err != nil || sum != f.SHA256 || size != f.SizeBytes {
			t.Errorf("%s is not what was found: %v", f.Path, err)
		}
	}
	env, err := filepath.EvalSymlinks("/usr/bin/env")
	must(t, err)
	sh, err := filepath.EvalSymlinks("/bin/sh")
	must(t, err)
	want := map[string]int{env: -1, filepath.Join(dir, "bin", "tool"): -1, sh: -1, filepath.Join(dir, "work", "x.sh"): 1}
	if len(found) != len(want) {
		t.Errorf("found %v, want %v", found, want)
	}
	for path, arg := range want {
		if got, ok := found[path]; !ok || got != arg {
			t.Errorf("found %v, want %v", found, want)
		}
	}
	if bound(&r) != proc.BoundChecked {
		t.Error("a script is not bound by descriptor")
	}
}

func TestLookSaysWhyNothingWouldRun(t *testing.T) {
	dir, p := place(t)
	in := func(cwd string) func(*lifecycle.Job) {
		return func(j *lifecycle.Job) { j.Proposal.Cwd = filepath.Join(dir, cwd) }
	}
	for name, c := range map[string]struct {
		program string
		change  func(*lifecycle.Job)
		code    string
	}{
		"no program":       {"nothing", in("work"), proc.CodeNoProgram},
		"no such path":     {"./nothing", in("work"), proc.CodeNoProgram},
		"not executable":   {"plain", in("work"), proc.CodeNotExecutable},
		"no interpreter":   {"lost", in("work"), proc.CodeNoInterpreter},
		"no folder":        {"tool", in("nowhere"), proc.CodeNoDir},
		"folder is a file": {"tool", in("bin/tool"), proc.CodeNoDir},
	} {
		j := asked(dir, c.program)
		c.change(&j)
		if _, fault := look(j, p, filepath.Join(dir, "bin"), noon); fault == nil || fault.code != c.code || fault.reason == "" {
			t.Errorf("%s: %+v, want %s", name, fault, c.code)
		}
	}
}

func TestLookKeepsAnEyeOnWhatWasApprovedAsCode(t *testing.T) {
	dir, p := place(t)
	none, err := policy.Parse("test", []byte("version = 1\n[[rule]]\nid = \"all\"\nprogram = \"sh\"\ndecision = \"ask\"\n"),
		policy.Env{DataDir: "/var/lib/banksman"})
	must(t, err)
	j := asked(dir, "sh", "x.sh")
	before, fault := look(j, p, "/bin", noon)
	if fault != nil {
		t.Fatal(fault)
	}
	j.Resolution = &before.resolved
	must(t, os.WriteFile(filepath.Join(dir, "work", "x.sh"), []byte("changed\n"), 0o644))
	after, fault := look(j, none, "/bin", noon) // this policy marks nothing
	if fault != nil {
		t.Fatal(fault)
	}
	if d := differs(j.Resolution, &after.resolved); d == nil || d.code != codeFileChanged {
		t.Errorf("difference %+v", d)
	}
}
