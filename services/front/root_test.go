package front

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// misuse runs a command line that is wrong before anything is looked at.
func misuse(t *testing.T, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	a := &app{in: os.Stdin, out: &said, err: &said}
	if code := a.execute(t.Context(), append([]string{"--dir", t.TempDir()}, args...)); code != ExitUsage {
		t.Errorf("banksman %s: exit %d, want %d", strings.Join(args, " "), code, ExitUsage)
	}
	return said.String()
}

func TestWrongArgumentsAreAnsweredWithTheRightForm(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"show", []string{"banksman show JOB", "0 argument(s)", "banksman show --help"}},
		{"deny a b", []string{"banksman deny JOB --reason TEXT", "2 argument(s)"}},
		{"audit prove", []string{"banksman audit prove JOB"}},
		{"ls more", []string{`unknown command "more" for "banksman ls"`}},
		{"aprove x", []string{`unknown command "aprove" for "banksman"`, "did you mean 'banksman approve'"}},
		{"show --jsn x", []string{"unknown flag: --jsn", "banksman show --help"}},
	} {
		said := misuse(t, strings.Fields(c.args)...)
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("banksman %s: %q lacks %q", c.args, said, want)
			}
		}
	}
}

// Each verb that takes no job, file or name says so for words that it gets.
func TestEveryVerbChecksItsArguments(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Args == nil && c.Runnable() {
			t.Errorf("%s takes any number of arguments: set Args", c.CommandPath())
		}
	}
	walk((&app{in: os.Stdin, out: os.Stdout, err: os.Stderr}).root())
}
