package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func textRequest(text string) Request {
	return Request{Argv: []string{"bash", "-c", text}, Cwd: "/home/me/src", RealCwd: "/home/me/src", ResolvedPath: "/usr/bin/bash"}
}

const textRules = `version = 1
[[rule]]
id = "texts"
program = ["sh", "bash"]
args = ["-c"]
decision = "allow"
[[rule]]
id = "read"
program = ["cat", "ls", "git"]
decision = "allow"
[[rule]]
id = "make"
program = "make"
decision = "ask"
[[rule]]
id = "no-rm"
program = "rm"
decision = "deny"
reason = "r"
`

// drawText draws a text from pieces that a shell joins.
func drawText(t *rapid.T, depth int) string {
	if depth == 0 {
		return rapid.SampledFrom([]string{
			"ls", "cat a", "git status", "make", "rm a", "echo x", "frobnicate", "$X a", "ls *.go", "cat <<'E'\nx\nE\n", "A=1 ls", "PATH=/x ls",
			"echo 'a b' > f", "cd sub", "sh x.sh", "true", "((", "'", "\\", "# x", "f() { ls; }", "ls 2>&1", "timeout 5 ls", "xargs ls", "sudo --odd ls",
		}).Draw(t, "simple")
	}
	a, b := drawText(t, depth-1), drawText(t, depth-1)
	form := rapid.SampledFrom([]string{
		"A; B", "A && B", "A | B", "A\nB", "(A)", "{ A; }", "echo $(A)", "if A; then B; fi", "for i in 1; do A; done", "! A", "eval 'A'", "sh -c 'A'",
		"A # B", "cat <(A)", "\"$(A)\"", "sudo sh -c \"A\"", "echo 'A' | sh", "A &\nB", "time A", "case x in x) A;; esac",
	}).Draw(t, "form")
	return strings.NewReplacer("A", a, "B", b).Replace(form)
}

// TestADeniedCommandNeverWeakensAText adds a line with a denied command.
func TestADeniedCommandNeverWeakensAText(t *testing.T) {
	p, shells := mustParse(t, textRules), mustParse(t, string(Starter()))
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		for _, c := range []struct {
			p     *Policy
			extra string
		}{{p, "rm x"}, {shells, "rm -rf /"}} {
			for _, more := range []string{text + "\n" + c.extra, text + "; " + c.extra, c.extra + "\n" + text, c.extra + "; " + text, "{ " + text + "\n" + c.extra + "\n}"} {
				was, is := c.p.Assess(textRequest(text)), c.p.Assess(textRequest(more))
				if is.Verdict > was.Verdict {
					t.Fatalf("%q: %+v\nbecame %q: %+v", text, was, more, is)
				}
			}
		}
	})
}

// TestAnUnlistedCommandIsNeverAllowed does the same with a command that no rule lists.
func TestAnUnlistedCommandIsNeverAllowed(t *testing.T) {
	p := mustParse(t, textRules)
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		if strings.ContainsAny(text, "\\#'\"") || strings.Contains(text, "<<") {
			t.Skip("the line behind it may belong to it")
		}
		if d := p.Assess(textRequest(text + "\nunheard-of")); d.Verdict == Allow {
			t.Fatalf("%q: %+v", text, d)
		}
	})
}

// TestQuotesDoNotMatter writes the same words in other ways.
func TestQuotesDoNotMatter(t *testing.T) {
	p := mustParse(t, string(Starter()))
	writings := []func(string) string{
		func(w string) string { return w },
		func(w string) string { return "'" + w + "'" },
		func(w string) string { return `"` + w + `"` },
		func(w string) string { return "$'" + w + "'" },
		func(w string) string { return w[:1] + "''" + w[1:] },
		func(w string) string { return "\\" + w },
		func(w string) string { return w[:1] + "\\\n" + w[1:] },
	}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"rm", "ls", "git", "/", "push", "-rf", "/home", "build", "frobnicate", "sudo"}), 1, 4).Draw(t, "words")
		plain := p.Assess(textRequest(strings.Join(words, " ")))
		var written []string
		for _, w := range words {
			written = append(written, rapid.SampledFrom(writings).Draw(t, "writing")(w))
		}
		text := strings.Join(written, rapid.SampledFrom([]string{" ", "  ", "\t", " \\\n"}).Draw(t, "blank"))
		if got := p.Assess(textRequest(text)); got.Verdict != plain.Verdict || got.Rule != plain.Rule {
			t.Fatalf("%q: %+v\n%q: %+v", words, plain, text, got)
		}
	})
}

func FuzzTexts(f *testing.F) {
	for _, text := range []string{
		"git add a && git push", "echo $(rm a)", "sudo --odd bash -c 'rm a'", "cat <<E | sh\nrm a\nE", "f(){ rm a; }; f", "eval eval eval rm a",
		"find . -exec rm {} +", "ls | xargs -I{} sh -c 'rm {}'", "cd /var; cd lib/banksman", "((rm -a))", "{rm,-rf,/}", "+", "-x", "ssh h 'rm a'",
	} {
		f.Add(text)
	}
	p := mustParse(f, textRules)
	f.Fuzz(func(t *testing.T, text string) {
		r := textRequest(text)
		d := p.Assess(r)
		checkInvariants(t, p, r, d)
		checkExplained(t, p, r, d)
		for _, more := range []string{text + "\nrm x", "rm x\n" + text} {
			if is := p.Assess(textRequest(more)); is.Verdict > d.Verdict {
				t.Fatalf("%q: %+v\nbecame %q: %+v", text, d, more, is)
			}
		}
		if s := p.Static(unresolvedForm(r)); s.Verdict == Deny && d.Verdict != Deny {
			t.Fatalf("%q: static %+v, then %+v", text, s, d)
		}
	})
}

func TestALongTextCostsNoMoreThanItsLength(t *testing.T) {
	p := mustParse(t, string(Starter()))
	for _, text := range []string{
		strings.Repeat("a;", 30000), strings.Repeat("sudo --odd a b c;", 3000), strings.Repeat("eval ", 12000) + "a",
		strings.Repeat("sudo --odd ", 60) + "sh -c '" + strings.Repeat("x;", 20000) + "'", strings.Repeat("cd a;", 8000) + strings.Repeat("rm x;", 3000),
		"(" + strings.Repeat("rm -r a ", 100000), strings.Repeat("watch ", 10000) + "a", strings.Repeat("env A=1 ", 8000) + "a",
		strings.Repeat("sh <<E\na\nE\n", 5000), "env --odd " + strings.Repeat("'sh -c a' ", 60), strings.Repeat("find . -exec a ';' ", 3000),
	} {
		p.Static(textRequest(text))
	}
}

// BenchmarkJudge measures what a decision costs on ordinary lines.
func BenchmarkJudge(b *testing.B) {
	p := mustParse(b, string(Starter()))
	for name, argv := range map[string][]string{
		"vector":  {"git", "push", "origin", "main"},
		"wrapped": {"timeout", "60", "go", "test", "./..."},
		"text":    {"bash", "-c", "cd sub && go test ./... 2>&1 | tail -n 20"},
	} {
		r := Request{Argv: argv, Cwd: "/srv/work", RealCwd: "/srv/work", ResolvedPath: "/usr/bin/" + argv[0]}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.Assess(r)
			}
		})
	}
}
