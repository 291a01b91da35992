package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/banksman/banksman/services/internal/hook"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/view"
)

// probeWithin bounds one run of an installed hook.
const probeWithin = 20 * time.Second

// checkHook runs the hook that is installed for Claude Code, as that program does:
// what has to be denied is denied, what fails blocks, and the rest is left alone.
func (a *app) checkHook(ctx context.Context, l site.Layout, file string) []finding {
	path, err := settingsPath(file)
	if err != nil {
		return []finding{{"hook", warn, err.Error(), ""}}
	}
	text, _, err := readSettings(path)
	if err != nil {
		return []finding{{"hook", warn, err.Error(), ""}}
	}
	entries, err := hook.Installed(text)
	switch {
	case err != nil:
		return []finding{{"hook", bad, "the settings " + path + " cannot be read, so nothing says that the hook is asked: " + err.Error(), "mend the file"}}
	case len(entries) == 0:
		return []finding{{"hook", fine, "not installed in " + path, ""}}
	}
	var found []finding
	for _, e := range entries {
		if !a.installs(l, e.Command) {
			found = append(found, finding{"hook", bad, "the entry in " + path + " is not what this banksman installs, so it was not tried: " + view.Printable(e.Command), reinstall})
			continue
		}
		found = append(found, proveHook(ctx, path, e)...)
	}
	return found
}

// reinstall mends a hook.
const reinstall = "install it with 'banksman hook install claude'"

// installs says whether a shell text is exactly one that install would write for
// this banksman and site. Whoever can edit the settings must not choose what a
// person's doctor runs.
func (a *app) installs(l site.Layout, command string) bool {
	f, err := a.follower()
	if err != nil {
		return false
	}
	for _, dir := range []string{"", f.Dir, l.Dir} {
		for _, caller := range []bool{false, true} {
			if (hook.Follower{Program: f.Program, Dir: dir, Caller: caller}).EntryCommand() == command {
				return true
			}
		}
	}
	return false
}

func proveHook(ctx context.Context, path string, e hook.Entry) []finding {
	var found []finding
	if !e.Blocks {
		found = append(found, finding{"hook", warn, "it has lost its blocking failure mode in " + path, reinstall})
	}
	if !e.Covers {
		found = append(found, finding{"hook", bad, "it is not asked about every tool that runs commands; see its matcher in " + path, reinstall})
	}
	for _, p := range hook.Probes() {
		code, stdout, stderr, err := runHook(ctx, e.Command, p.Input)
		switch {
		case err != nil:
			return append(found, finding{"hook", bad, p.Name + ": " + err.Error(), reinstall})
		case p.Met(code, stdout):
		case p.Wants == "deny" && code == 2:
			found = append(found, finding{"hook", warn, "it blocks everything now: " + view.Printable(firstLine(stderr)), "start the site with 'banksman up'"})
		default:
			return append(found, finding{"hook", bad, fmt.Sprintf("%s: it exits %d and says %q, so the agent's program may go on; want %s", p.Name, code, clip(stdout, 80), p.Wants), reinstall})
		}
	}
	if len(found) == 0 {
		found = append(found, finding{"hook", fine, "tried as installed in " + path + ": it denies, blocks when it fails, and leaves other tools alone", ""})
	}
	return found
}

// runHook runs a hook's shell text with an input.
func runHook(ctx context.Context, command, input string) (code int, stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		return 0, "", "", err
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String(), nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
