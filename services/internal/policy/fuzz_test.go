package policy

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	f.Add(Starter())
	f.Add([]byte(goodRule))
	f.Add([]byte(goodRule + "[rule.x]\n[[rule]]\nid = '''\n'''\n\"a b\".c = {d = [1, {e = \"]\"}]}"))
	f.Add([]byte("version = 1\n[[rule]]\nid = \"a\"\nprogram = \"rm\"\ndecision = \"deny\"\nreason = \"r\"\nrecursive_on = [\"*\", \"~\", \"/\"]\n"))
	f.Add([]byte("version = 1\nrule = [[]]\n"))
	f.Add([]byte("\xef\xbb\xbfversion = 1\r\n[[ \"rule\" ]]\r\nid = \"a\"\r\n"))
	f.Add([]byte("a = \"\"\"\\\n\"\"\"\"\n[\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse("fuzz", text, testEnv())
		if err != nil {
			var refused *ParseError
			if p != nil || !errors.As(err, &refused) || len(refused.Problems) == 0 {
				t.Fatalf("Parse = %v, %v", p, err)
			}
			lines := bytes.Count(text, []byte("\n")) + 1
			for _, problem := range refused.Problems {
				if problem.Line < 0 || problem.Line > lines || problem.Code == "" {
					t.Fatalf("a problem lies in line %d of %d: %v", problem.Line, lines, problem)
				}
			}
			return
		}
		if !bytes.Equal(p.Text(), text) {
			t.Fatal("the text is not kept")
		}
		for _, argv := range [][]string{{"ls", "-l"}, {"sudo", "rm", "-rf", "/"}, {"git", "status"}} {
			r := lsRequest()
			r.Argv = argv
			checkInvariants(t, p, r, p.Assess(r))
			checkExplained(t, p, r, p.Assess(r))
		}
		p.Warnings()
	})
}

func FuzzAssess(f *testing.F) {
	f.Add("git\x00--version", "/tmp", "/tmp", "/usr/bin/git")
	f.Add("env\x00-S\x00rm -rf /", "/", "/", "/usr/bin/env")
	f.Add("sudo\x00-u\x00x\x00nice\x00rm\x00-r\x00~/*", "/home/me", "/data", "/usr/bin/sudo")
	f.Add("rm\x00-r\x00/[\x00/h?me\x00*", "/home/me", "", "")
	f.Add("bash\x00-e\x00x.sh", "/var/lib/banksman", "/x", "/bin/bash")
	f.Add("\x00", "", "", "")
	p := mustParse(f, string(Starter()))
	f.Fuzz(func(t *testing.T, line, cwd, realCwd, real string) {
		r := Request{Argv: strings.Split(line, "\x00"), Cwd: cwd, RealCwd: realCwd, ResolvedPath: real}
		d := p.Assess(r)
		checkInvariants(t, p, r, d)
		checkExplained(t, p, r, p.Static(r))
		if s := p.Static(unresolvedForm(r)); s.Verdict == Deny && d.Verdict != Deny {
			t.Fatalf("%+v: static %+v, then %+v", r, s, d)
		}
		if d.Verdict != Allow {
			return
		}
		switch strings.Join(r.Argv[1:], " ") {
		case "", "--version", "version":
		default:
			t.Fatalf("the starter policy allows %q", r.Argv)
		}
	})
}
