package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/hook"
)

func (a *app) hookInstallClaude() *cobra.Command {
	var file, version, executor string
	var dry bool
	cmd := &cobra.Command{
		Use: "claude", Short: "Write the hook into the settings of Claude Code", Args: cobra.NoArgs,
		Long: "Write the PreToolUse hook into the settings of Claude Code, show what changes, and keep\neverything else. Refuses versions that are not known to let a hook block.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := knownExecutor(executor); err != nil {
				return err
			}
			if err := a.checkClaude(cmd.Context(), version); err != nil {
				return err
			}
			f, err := a.follower()
			if err != nil {
				return err
			}
			f.Caller = executor == events.ExecutorCaller
			return a.changeSettings(file, dry, func(old []byte) ([]byte, error) { return hook.Install(old, f) })
		},
	}
	cmd.Flags().StringVar(&version, "agent-version", "", "version of Claude Code (default: what 'claude --version' says)")
	executorFlag(cmd, &executor)
	settingsFlags(cmd, &file, &dry)
	return cmd
}

func (a *app) hookUninstallClaude() *cobra.Command {
	var file string
	var dry bool
	cmd := &cobra.Command{
		Use: "claude", Short: "Take the hook out of the settings of Claude Code", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.changeSettings(file, dry, hook.Uninstall) },
	}
	settingsFlags(cmd, &file, &dry)
	return cmd
}

func settingsFlags(cmd *cobra.Command, file *string, dry *bool) {
	cmd.Flags().StringVar(file, "settings", "", "settings file (default: .claude/settings.json in the home folder)")
	cmd.Flags().BoolVar(dry, "dry-run", false, "show what would change and write nothing")
}

// checkClaude refuses a version whose hooks cannot block.
func (a *app) checkClaude(ctx context.Context, version string) error {
	if version == "" {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, "claude", "--version").Output()
		if err != nil {
			return usage("install it, or name its version with --agent-version", "ask 'claude --version': %v", err)
		}
		version = strings.TrimSpace(string(out))
	}
	strength, err := hook.StrengthOf(version)
	if err != nil {
		return usage("", "--agent-version: %v", err)
	}
	switch strength {
	case hook.CannotBlock:
		return fmt.Errorf("install the hook: Claude Code %s is not known to let a hook block; it needs %s or later", version, hook.Required())
	case hook.BlocksByShell:
		a.say("note: Claude Code %s has no blocking failure mode for hooks. A missing or failing banksman blocks all the same; a hook that is killed from outside, or stopped until it times out, does not", version)
	}
	return nil
}

// changeSettings rewrites a settings file whole, and shows the difference.
func (a *app) changeSettings(file string, dry bool, change func([]byte) ([]byte, error)) error {
	path, err := settingsPath(file)
	if err != nil {
		return err
	}
	old, mode, err := readSettings(path)
	if err != nil {
		return err
	}
	text, err := change(old)
	if err != nil {
		return fmt.Errorf("change %s: %w", path, err)
	}
	changed := !bytes.Equal(bytes.TrimSpace(old), bytes.TrimSpace(text)) && !(len(old) == 0 && string(text) == "{}")
	if changed && !dry {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("make the folder of the settings: %w", err)
		}
		if err := renameio.WriteFile(path, text, mode, renameio.IgnoreUmask()); err != nil {
			return fmt.Errorf("write the settings: %w", err)
		}
	}
	return a.print(map[string]any{"settings": path, "changed": changed, "written": changed && !dry}, func(w io.Writer) {
		if !changed {
			fmt.Fprintf(w, "%s needs no change\n", path)
			return
		}
		fmt.Fprintf(w, "--- %s\n+++ %s\n%s", path, path, difference(string(old), string(text)))
	})
}

// settingsPath is the file that is read and replaced; a link is followed, so
// that what it points to stays where it is kept.
func settingsPath(file string) (string, error) {
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the home folder: %w", err)
		}
		file = filepath.Join(home, ".claude", "settings.json")
	}
	real, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Abs(file)
	}
	if err != nil {
		return "", fmt.Errorf("find the settings: %w", err)
	}
	return filepath.Abs(real)
}

func readSettings(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the settings: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("read the settings: %w", err)
	}
	return text, info.Mode().Perm(), nil
}

// difference shows the lines between the first and the last that differ.
func difference(old, text string) string {
	a, b := lines(old), lines(text)
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out strings.Builder
	show := func(mark string, list []string) {
		for _, l := range list {
			out.WriteString(mark + l + "\n")
		}
	}
	show(" ", a[max(0, head-2):head])
	show("-", a[head:len(a)-tail])
	show("+", b[head:len(b)-tail])
	show(" ", a[len(a)-tail:min(len(a), len(a)-tail+2)])
	return out.String()
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
