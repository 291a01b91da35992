package policy

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The small worlds that properties draw from; small, so that rules and requests meet.
var (
	worldPrograms = []string{"git", "rm", "ls", "env", "/usr/bin/git", "/home/me/src/x", "/opt/tool"}
	worldArgv0    = []string{"git", "rm", "ls", "env", "sudo", "x", "tool", "./git", "/usr/bin/git", "/tmp/git", "GIT", "/home/me/src/x"}
	worldWords    = []string{"status", "-v", "-rf", "--rec", "/", "/home", "*", "git", "rm", "a/b", "..", "--", "-n", "A=1", "x y"}
	worldFolders  = []string{"/", "/home/me", "/home/me/src", "/srv/work", "/usr", "/var/lib/banksman/x", "/tmp"}
	worldReal     = []string{"/usr/bin/git", "/usr/bin/rm", "/tmp/git", "/home/me/src/x", "/opt/tool", "/usr/bin/env", "/home/me/src/git"}
	worldRoots    = []string{"/home/me/src", "/srv/work", "/tmp"}
)

func someOf(t *rapid.T, from []string, most int, label string) []string {
	return rapid.SliceOfN(rapid.SampledFrom(from), 0, most).Draw(t, label)
}

// drawBody draws a rule without its id and decision: what any decision may have.
func drawBody(t *rapid.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "program = %s\n", quoteList(rapid.SliceOfN(rapid.SampledFrom(worldPrograms), 1, 2).Draw(t, "programs")))
	if args := someOf(t, worldWords, 2, "args"); len(args) > 0 {
		fmt.Fprintf(&b, "args = %s\n", quoteList(args))
	}
	if rapid.Bool().Draw(t, "exact") {
		b.WriteString("exact = true\n")
	}
	if roots := someOf(t, worldRoots, 2, "roots"); len(roots) > 0 {
		fmt.Fprintf(&b, "roots = %s\n", quoteList(roots))
	}
	if rapid.Bool().Draw(t, "pooled") {
		b.WriteString("pools = [\"build\"]\n")
	}
	return b.String()
}

func drawRule(t *rapid.T, id string, decisions ...string) string {
	decision := rapid.SampledFrom(decisions).Draw(t, "decision")
	body := drawBody(t)
	text := fmt.Sprintf("[[rule]]\nid = %q\ndecision = %q\n", id, decision)
	switch {
	case decision == "deny":
		if rapid.Bool().Draw(t, "guarded") {
			body = "program = \"rm\"\nrecursive_on = [\"/\", \"~\"]\n"
		}
		return text + body + "reason = \"r\"\n"
	case rapid.Bool().Draw(t, "ceiling"):
		return text + body + "max_timeout_s = 10\n"
	case !strings.Contains(body, "exact") && rapid.Bool().Draw(t, "flagged"):
		return text + body + "flags = [\"-v\", \"-n*\"]\n"
	}
	return text + body
}

func drawRules(t *rapid.T) []string {
	rules := make([]string, rapid.IntRange(0, 5).Draw(t, "rules"))
	for i := range rules {
		rules[i] = drawRule(t, fmt.Sprintf("r%d", i), "allow", "ask", "deny")
	}
	return rules
}

func drawRequest(t *rapid.T) Request {
	r := Request{
		Argv:         append([]string{rapid.SampledFrom(worldArgv0).Draw(t, "argv0")}, someOf(t, worldWords, 4, "words")...),
		Cwd:          rapid.SampledFrom(worldFolders).Draw(t, "cwd"),
		RealCwd:      rapid.SampledFrom(worldFolders).Draw(t, "real cwd"),
		ResolvedPath: rapid.SampledFrom(worldReal).Draw(t, "real"),
		EnvNames:     someOf(t, []string{"PATH", "LANG"}, 1, "env"),
		Pool:         rapid.SampledFrom([]string{"build", "other"}).Draw(t, "pool"),
		Timeout_s:    rapid.SampledFrom([]int{0, 10, 11}).Draw(t, "timeout"),
	}
	return r
}

func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// parseDrawn parses drawn rules and skips the draw when they contradict each other.
func parseDrawn(t *rapid.T, rules []string) *Policy {
	p, err := Parse("drawn", []byte("version = 1\n"+strings.Join(rules, "")), testEnv())
	if err != nil {
		if !strings.Contains(err.Error(), string(ProblemProgramInRoot)) {
			t.Fatalf("a drawn policy is refused: %v", err)
		}
		t.Skip("an allowed program lies in a root")
	}
	return p
}

func unresolvedForm(r Request) Request {
	r.RealCwd, r.ResolvedPath = "", ""
	return r
}

func TestAddingADenyRuleNeverPermitsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules(t)
		at := rapid.IntRange(0, len(rules)).Draw(t, "at")
		more := append(append(append([]string(nil), rules[:at]...), drawRule(t, "extra", "deny")), rules[at:]...)
		before := parseDrawn(t, rules)
		after, err := Parse("more", []byte("version = 1\n"+strings.Join(more, "")), testEnv())
		if err != nil {
			t.Skip("the deny rule makes a root of an allowed program's folder")
		}
		for range 8 {
			r := drawRequest(t)
			for _, form := range []Request{r, unresolvedForm(r)} {
				if was, is := before.Static(form), after.Static(form); is.Verdict > was.Verdict {
					t.Fatalf("%+v: static %v became %v", form, was, is)
				}
				if was, is := before.Assess(form), after.Assess(form); is.Verdict > was.Verdict {
					t.Fatalf("%+v: %v became %v", form, was, is)
				}
			}
		}
	})
}

func TestStaticDenialsAreFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := parseDrawn(t, drawRules(t))
		for range 8 {
			r := drawRequest(t)
			d := p.Assess(r)
			if s := p.Static(unresolvedForm(r)); s.Verdict == Deny && d.Verdict != Deny {
				t.Fatalf("%+v: static %+v, then %+v", r, s, d)
			}
			checkInvariants(t, p, r, d)
		}
	})
}

// failer is what checkInvariants needs of a test, a fuzz run or a rapid check.
type failer interface {
	Fatalf(format string, args ...any)
}

// checkInvariants holds for every decision of every policy.
func checkInvariants(t failer, p *Policy, r Request, d Decision) {
	if within(r.Cwd, p.env.DataDir) && d.Verdict != Deny {
		t.Fatalf("%+v runs in the data folder: %+v", r, d)
	}
	if (d.Verdict == Ask) != (d.Quorum > 0) {
		t.Fatalf("%+v: quorum %d beside %s", r, d.Quorum, d.Verdict)
	}
	if d.Code == "" || d.Reason == "" {
		t.Fatalf("%+v: a decision says nothing: %+v", r, d)
	}
	listed := false
	for _, rule := range p.rules {
		for _, program := range rule.programs {
			listed = listed || rule.decision != Deny && len(r.Argv) > 0 && strings.HasSuffix("/"+r.Argv[0], "/"+program[strings.LastIndex(program, "/")+1:])
		}
		if rule.id == d.Rule && d.Code == CodeRule && rule.decision != d.Verdict {
			t.Fatalf("%+v: rule %s says %s, the decision is %+v", r, rule.id, rule.decision, d)
		}
	}
	if !listed && d.Verdict != Deny {
		t.Fatalf("%+v is unlisted and permitted: %+v", r, d)
	}
	for _, i := range d.CodeArgs {
		if i < 1 || i >= len(r.Argv) {
			t.Fatalf("%+v: code argument %d is none", r, i)
		}
	}
}

func TestNothingSlipsPastAnAskRuleAboveAnAllowRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := drawBody(t)
		ask := "[[rule]]\nid = \"ask\"\ndecision = \"ask\"\n" + body
		allow := "[[rule]]\nid = \"allow\"\ndecision = \"allow\"\n" + body
		p := parseDrawn(t, []string{ask, allow})
		for range 8 {
			r := drawRequest(t)
			if d := p.Assess(r); d.Verdict == Allow {
				t.Fatalf("%+v: %+v", r, d)
			}
		}
	})
}

func TestOneDenyRuleCatchesEverySpellingOfRm(t *testing.T) {
	p := mustParse(t, string(Starter()))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"rm", "/bin/rm", "/usr/bin/rm", "RM", "./rm"}).Draw(t, "name")
		flag := rapid.SampledFrom([]string{"-r", "-R", "-rf", "-fr", "-vRf", "--recursive", "--recursi", "--r"}).Draw(t, "flag")
		target := rapid.SampledFrom([]string{"/", "//", "/.", "/etc/..", "/home/x/../..", "/*", "~", "/root", "/home/ann", "/var/lib/banksman", "/var"}).Draw(t, "target")
		noise := someOf(t, []string{"-f", "-v", "--force", "--no-preserve-root", "build", "a b"}, 4, "noise")
		words := rapid.Permutation(append(noise, flag, target)).Draw(t, "order")
		if rapid.Bool().Draw(t, "ended") {
			words = append(append(noise, flag, "--"), target)
		}
		argv := append([]string{name}, words...)
		for range rapid.IntRange(0, 3).Draw(t, "wrappers") {
			argv = append(strings.Fields(rapid.SampledFrom([]string{
				"env", "env -i A=1", "sudo -n", "nice -n 5", "timeout -k 1 5s", "busybox", "nohup", "env --unknown", "sudo -nE",
			}).Draw(t, "wrapper")), argv...)
		}
		r := Request{Argv: argv, Cwd: "/srv/work"}
		if d := p.Static(r); d.Rule != "no-rm-everything" || d.Verdict != Deny {
			t.Fatalf("%q: %+v", argv, d)
		}
	})
}

// TestPatternsAgreeWithRegularExpressions compares the matcher with a slow, plain one.
func TestPatternsAgreeWithRegularExpressions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab/*.\\-]{0,8}`).Draw(t, "pattern")
		value := rapid.StringMatching(`[ab/*.\\-]{0,10}`).Draw(t, "value")
		words := pieces(pattern)
		for i := range words {
			words[i] = regexp.QuoteMeta(words[i])
		}
		wide := regexp.MustCompile(`(?s)^` + strings.Join(words, `.*`) + `$`).MatchString(value)
		if got := fitsWide(pattern, value); got != wide {
			t.Fatalf("fitsWide(%q, %q) = %v", pattern, value, got)
		}
		form := strings.Join(words, `[^/]+`)
		if slash := strings.LastIndex(pattern, "/"); pattern[slash+1:] == "**" {
			form = strings.TrimSuffix(form, `[^/]+[^/]+`) + `.+`
		}
		narrow := regexp.MustCompile(`(?s)^` + form + `$`).MatchString(value)
		if len(words) > 1 {
			climbs := strings.Contains("/"+value+"/", "/../")
			narrow = narrow && !climbs && !(pattern[0] == '*' && strings.HasPrefix(value, "-"))
		}
		if got := fits(pattern, value); got != narrow {
			t.Fatalf("fits(%q, %q) = %v, want %v", pattern, value, got, narrow)
		}
	})
}

func TestEditDistanceIsADistance(t *testing.T) {
	word := rapid.StringMatching(`[a-c]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		ab, bc, ac := editDistance(a, b), editDistance(b, c), editDistance(a, c)
		if ab != editDistance(b, a) || (ab == 0) != (a == b) || ac > ab+bc || ab > max(len(a), len(b)) {
			t.Fatalf("%q %q %q: %d %d %d", a, b, c, ab, bc, ac)
		}
	})
}
