package policy

import (
	"slices"
	"strings"
	"testing"
)

// TestALongCommandCostsNoMoreThanItsLength gives the matcher the argument vectors that
// cost most. With work that grows with the square of the length this test takes minutes.
func TestALongCommandCostsNoMoreThanItsLength(t *testing.T) {
	p := mustParse(t, string(Starter()))
	for _, word := range []string{"a", "rm", "../x", "rm -r", "/*a*", "A=/x"} {
		for _, head := range []string{"rm -r", "env --unknown rm -r", "env --unknown", "env", "env -- env sudo"} {
			argv := append(strings.Fields(head), slices.Repeat([]string{word}, 20000)...)
			p.Static(Request{Argv: argv, Cwd: "/srv/work", RealCwd: "/srv/work2"})
		}
	}
	for _, word := range []string{strings.Repeat("*a", 60000), strings.Repeat("rm ", 40000)} {
		p.Static(Request{Argv: []string{"env", "--unknown", "rm", "-r", "/" + word, word}, Cwd: "/srv/work"})
	}
}

func TestManyWordsBehindAnUnknownWrapper(t *testing.T) {
	p := mustParse(t, string(Starter()))
	many := slices.Repeat([]string{"x"}, 500)
	hidden := append(append([]string{"sudo", "--unknown"}, many...), "rm", "-rf", "/")
	if d := p.Static(Request{Argv: hidden, Cwd: "/srv/work"}); d.Rule != "no-rm-everything" {
		t.Errorf("rm behind many words: %+v", d)
	}
	if d := p.Static(Request{Argv: append([]string{"sudo", "--unknown"}, many...), Cwd: "/srv/work"}); d.Code != CodeUnlisted {
		t.Errorf("many words without rm: %+v", d)
	}
}
