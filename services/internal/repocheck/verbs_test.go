package repocheck

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
)

// binary is the front door, built and asked what it says of itself.
type binary struct {
	t    *testing.T
	path string
	home string
}

func newBinary(t *testing.T) binary {
	t.Helper()
	path, err := lab.Build(t.TempDir(), "cmd/banksman")
	if err != nil {
		t.Fatal(err)
	}
	return binary{t, path, t.TempDir()}
}

// run gives what a verb prints, in an environment that says nothing about this
// machine.
func (b binary) run(args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), b.path, args...)
	cmd.Env = []string{"HOME=" + b.home, "PATH=/usr/bin:/bin"}
	cmd.Stderr = b.t.Output()
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("run banksman %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// group is verbs under one title of the help text.
type group struct {
	title string
	verbs []verb
}

type verb struct{ name, short string }

// verbsTables are the verbs as the binary's help groups them, each with the
// verbs below it.
func verbsTables(b binary) string {
	var out strings.Builder
	for _, g := range groups(b.run("help")) {
		if g.title == "Additional Commands" {
			continue // help and completion are everybody's
		}
		fmt.Fprintf(&out, "**%s**\n\n%s", g.title, head("verb", "does"))
		for _, v := range g.verbs {
			b.describe(&out, []string{v.name}, v.short)
		}
		out.WriteString("\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// describe writes the row of a verb, or of the verbs below it.
func (b binary) describe(out *strings.Builder, words []string, short string) {
	text := b.run(append(words, "--help")...)
	if below := groups(text); len(below) > 0 {
		for _, g := range below {
			for _, v := range g.verbs {
				b.describe(out, append(words, v.name), v.short)
			}
		}
		return
	}
	_, usage, _ := strings.Cut(text, "Usage:\n  banksman ")
	usage, _, _ = strings.Cut(usage, "\n")
	out.WriteString(row(code(strings.Replace(usage, " [flags]", "", 1)), short))
}

// groups reads the lists of verbs in a help text: a title that ends in a colon,
// then lines of name, spaces and sentence.
func groups(help string) []group {
	var list []group
	title := ""
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, " ") {
			title = strings.TrimSuffix(line, ":")
			continue
		}
		name, short, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || strings.HasPrefix(name, "-") || strings.HasSuffix(title, "Flags") || title == "Usage" {
			continue
		}
		if len(list) == 0 || list[len(list)-1].title != title {
			list = append(list, group{title: title})
		}
		list[len(list)-1].verbs = append(list[len(list)-1].verbs, verb{name, strings.TrimSpace(short)})
	}
	return list
}
