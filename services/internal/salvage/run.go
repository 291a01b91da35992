package salvage

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"time"
)

// Command is one call of git.
type Command struct {
	Args   []string // without the program's name
	Dir    string   // absolute
	Env    []string // complete
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Run executes git and returns its exit status. An error means that it could
// not be executed or was ended because ctx had ended.
type Run func(ctx context.Context, c Command) (status int, err error)

// killAfter bounds how long output is awaited once a call was ended.
const killAfter = 2 * time.Second

// Direct runs the git that PATH names as a child of this process.
func Direct(ctx context.Context, c Command) (int, error) {
	cmd := exec.CommandContext(ctx, "git", c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr
	cmd.WaitDelay = killAfter
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return -1, context.Cause(ctx)
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	case err != nil:
		return -1, err
	}
	return 0, nil
}
