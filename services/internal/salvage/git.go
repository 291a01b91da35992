package salvage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// settings take the sting out of what a repository's own configuration could
// make git do. They come from the command line and so win over every file.
var settings = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.untrackedCache=false",
	"core.splitIndex=false",
	"core.safecrlf=false",
	"core.pager=cat",
	"core.editor=false",
	"commit.gpgSign=false",
	"gc.auto=0",
	"maintenance.auto=false",
	"protocol.allow=never",
	"advice.addEmbeddedRepo=false",
	"submodule.recurse=false",
}

// identity signs the commits; a machine need not have one.
const (
	identityName  = "banksman"
	identityEmail = "banksman@localhost"
)

// git is one repository being salvaged.
type git struct {
	run  Run
	dir  string // where it is called
	base []string
	env  []string
}

// newGit makes the calls' environment: nothing of this process's own git
// variables, and of the rest only what finds programs and the user's own
// settings.
func newGit(run Run, dir string, now time.Time) *git {
	g := &git{run: run, dir: dir}
	for _, s := range settings {
		g.base = append(g.base, "-c", s)
	}
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			g.env = append(g.env, name+"="+v)
		}
	}
	date := strconv.FormatInt(now.Unix(), 10) + " +0000"
	g.env = append(g.env, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0",
		"GIT_PROTOCOL_FROM_USER=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_LITERAL_PATHSPECS=1",
		"GIT_AUTHOR_NAME="+identityName, "GIT_AUTHOR_EMAIL="+identityEmail, "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME="+identityName, "GIT_COMMITTER_EMAIL="+identityEmail, "GIT_COMMITTER_DATE="+date)
	return g
}

// with adds variables for the calls that follow.
func (g *git) with(env ...string) { g.env = append(g.env, env...) }

// stderrBytes bounds what is kept of git's complaints.
const stderrBytes = 4 << 10

// Exit is git's refusal.
type Exit struct {
	Args   []string
	Status int
	Stderr string
}

func (e *Exit) Error() string {
	return fmt.Sprintf("git %s exited with status %d: %s", e.Args[0], e.Status, strings.TrimSpace(e.Stderr))
}

// stream calls git and hands its output over.
func (g *git) stream(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	var complaints head
	status, err := g.run(ctx, Command{
		Args: append(append([]string{}, g.base...), args...), Dir: g.dir, Env: g.env, Stdin: in, Stdout: out, Stderr: &complaints,
	})
	if err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	if status != 0 {
		return &Exit{Args: args, Status: status, Stderr: complaints.String()}
	}
	return nil
}

// line calls git for one line of output.
func (g *git) line(ctx context.Context, args ...string) (string, error) {
	var out head
	err := g.stream(ctx, nil, &out, args...)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// head keeps the first bytes of what is written.
type head struct{ b bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	if room := stderrBytes - h.b.Len(); room > 0 {
		h.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (h *head) String() string { return h.b.String() }

// refused says whether an error is git's own exit, and which.
func refused(err error) (*Exit, bool) {
	var e *Exit
	ok := errors.As(err, &e)
	return e, ok
}
