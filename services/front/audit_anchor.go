package front

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/internal/tlog"
)

// anchored is what audit anchor --json prints.
type anchored struct {
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
	Root   string `json:"root"`
	Where  string `json:"where"`
}

func (a *app) auditAnchorCommand() *cobra.Command {
	var file, repo string
	var t stamping
	cmd := &cobra.Command{
		Use: "anchor", Short: "Leave the signed head somewhere else: in a file, a git commit or a time stamp", Args: cobra.NoArgs,
		Long: "Write the newest signed head to a new file, or commit it to a git work tree. Whoever keeps it\ncan later show that the log was put back or told anew: 'banksman audit verify --checkpoint FILE'.\nWith --tsa, an authority stamps it (RFC 3161); the stamp is kept beside the log, and verify\nchecks it. Where the authority is out of reach, --tsq FILE writes the request, and --tsr FILE\ntakes the answer. The authority learns a digest and nothing else.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n := t.count(); n+given(file)+given(repo) != 1 {
				return usage("give one of --file, --git, --tsa, --tsq and --tsr", "anchor: name one place")
			} else if n == 1 {
				return a.anchorStamp(cmd.Context(), t)
			}
			r, err := a.openLog()
			if err != nil {
				return err
			}
			defer r.Close()
			cp, err := r.Checkpoint()
			if err != nil {
				return err
			}
			origin, _, err := tlog.ParseCheckpoint(cp.Note)
			if err != nil {
				return err
			}
			done := anchored{Origin: origin, Size: cp.Size, Root: base64.StdEncoding.EncodeToString(cp.Root[:]), Where: file}
			if file != "" {
				err = anchorFile(file, cp.Note)
			} else {
				done.Where, err = anchorGit(cmd.Context(), repo, cp)
			}
			if err != nil {
				return fmt.Errorf("anchor the head of %d entries: %w", cp.Size, err)
			}
			return a.print(done, func(w io.Writer) {
				fmt.Fprintf(w, "the head of %d entries, root %s, is in %s\n", done.Size, done.Root, done.Where)
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "file to write; it must not exist yet, unless it holds this head")
	cmd.Flags().StringVar(&repo, "git", "", "git work tree to commit to")
	t.flags(cmd)
	return cmd
}

// anchorFile writes a file that is not there yet: an older anchor is never replaced.
func anchorFile(path string, checkpoint []byte) error {
	b, err := os.ReadFile(path)
	if err == nil && bytes.Equal(b, checkpoint) {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s is there already; name another", path))
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(checkpoint)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// anchorGit commits the head as one file for each size, and only that file.
func anchorGit(ctx context.Context, dir string, cp tlog.Checkpoint) (where string, err error) {
	name := fmt.Sprintf("checkpoint.%d", cp.Size)
	if err := anchorFile(filepath.Join(dir, name), cp.Note); err != nil {
		return "", err
	}
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(out))
		}
		return strings.TrimSpace(string(out)), nil
	}
	if _, err := git("add", "--", name); err != nil {
		return "", err
	}
	if held, err := git("status", "--porcelain", "--", name); err != nil {
		return "", err
	} else if held != "" {
		if _, err := git("commit", "-q", "-m", fmt.Sprintf("Anchor the audit log at %d entries", cp.Size), "--", name); err != nil {
			return "", err
		}
	}
	commit, err := git("log", "-1", "--format=%H", "--", name)
	return "commit " + commit + " of " + dir, err
}
