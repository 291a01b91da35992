package front

import (
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

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/view"
)

// finding is one line of the doctor's report.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"` // ok, warn or fail
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"`
}

const (
	fine = "ok"
	warn = "warn"
	bad  = "fail"
)

func (a *app) doctorCommand() *cobra.Command {
	var settings string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check keys, permissions, namespaces, stream, clock, disk, git and the hook, and say what to do", GroupID: "start", Args: cobra.NoArgs,
		Long: "Check what a site needs from this machine and say what to do about each fault. Exits 1\nwhen something fails; a warning is no failure. A hook that is installed for Claude Code is tried\nas that program would: with a tool that is none of its business, with commands that have to be\ndenied, and with an input that is none.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.layout()
			if err != nil {
				return err
			}
			found := append(a.examine(cmd.Context(), l), a.checkHook(cmd.Context(), l, settings)...)
			err = a.print(map[string]any{"findings": found}, func(w io.Writer) { findingTable(w, found) })
			for _, f := range found {
				if err == nil && f.State == bad {
					err = &exit{code: ExitError}
				}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&settings, "settings", "", "settings file of Claude Code (default: .claude/settings.json in the home folder)")
	return cmd
}

func findingTable(w io.Writer, found []finding) {
	var rows [][]string
	for _, f := range found {
		rows = append(rows, []string{f.Check, f.State, view.Printable(f.Detail)})
		if f.Next != "" {
			rows = append(rows, []string{"", "", "-> " + view.Printable(f.Next)})
		}
	}
	table(w, []string{"CHECK", "STATE", "WHAT"}, rows)
}

// examine runs every check; one that needs a site is left out where there is
// none.
func (a *app) examine(ctx context.Context, l site.Layout) []finding {
	found := []finding{checkNamespaces(l), checkLandlock(), checkGit(ctx), checkClock()}
	s, err := host.LoadSite(l)
	if err != nil {
		return append(found, finding{"site", bad, err.Error(), "make one with 'banksman init', or name its folder with --dir"})
	}
	found = append(found, finding{"site", fine, s.Origin + " in " + l.Dir, ""}, a.checkConfig(l), checkModes(l), checkDisk(l))
	found = append(found, a.checkKeys(l)...)
	return append(found, a.checkBus(ctx, l, s)...)
}

func checkNamespaces(l site.Layout) finding {
	dir := l.Dir
	if _, err := os.Stat(dir); err != nil {
		dir = os.TempDir() // there is no site yet
	}
	if err := proc.Namespaces(dir); err != nil {
		return finding{"namespaces", bad, "jobs cannot be kept from banksman's own files: " + err.Error(),
			"allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or the container's setting), or accept it with --unsafe-shared-user"}
	}
	return finding{"namespaces", fine, "jobs see an empty folder where banksman keeps its files", ""}
}

func checkLandlock() finding {
	version, err := proc.Landlock()
	if err != nil {
		return finding{"landlock", warn, err.Error(), "needed only where reach_read or reach_write of [worker] are set"}
	}
	return finding{"landlock", fine, fmt.Sprintf("version %d; jobs can be kept to parts of the file system", version), ""}
}

func checkGit(ctx context.Context) finding {
	out, err := exec.CommandContext(ctx, "git", "--version").Output()
	if err != nil {
		return finding{"git", warn, "git does not run: " + err.Error(), "install git; work of agents is salvaged with it"}
	}
	return finding{"git", fine, strings.TrimSpace(string(out)), ""}
}

func checkClock() finding {
	state, err := clockState()
	switch {
	case err != nil:
		return finding{"clock", warn, "the kernel does not say whether the clock is kept: " + err.Error(), ""}
	case state:
		return finding{"clock", fine, "kept by a time service; " + time.Now().UTC().Format(time.RFC3339), ""}
	}
	return finding{"clock", warn, "no time service keeps it; approvals and leases end by it", "run chrony or systemd-timesyncd"}
}

func (a *app) checkConfig(l site.Layout) finding {
	list, _, _, _ := sections()
	if err := config.Load(l.Config(), list...); err != nil {
		return finding{"configuration", bad, err.Error(), "mend " + l.Config()}
	}
	if _, err := a.policyFile(l.Policy()); err != nil {
		return finding{"configuration", bad, err.Error(), "mend " + l.Policy()}
	}
	return finding{"configuration", fine, "every key is known, the policy and its examples are good", ""}
}

// checkModes looks for what others may read.
func checkModes(l site.Layout) finding {
	var open []string
	err := filepath.WalkDir(l.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went while we looked
		}
		if err == nil && info.Mode().Perm()&0o077 != 0 && path == l.Dir {
			open = append(open, path)
		}
		if err == nil && info.Mode().Perm()&0o077 != 0 && strings.HasPrefix(path, l.Keys()) {
			open = append(open, path)
		}
		return err
	})
	if err != nil {
		return finding{"permissions", bad, err.Error(), "run it as the user who owns " + l.Dir}
	}
	if len(open) > 0 {
		return finding{"permissions", bad, "others may read " + strings.Join(open, ", "), "chmod go-rwx " + strings.Join(open, " ")}
	}
	return finding{"permissions", fine, "keys and folder are the owner's alone", ""}
}

// Shares of a disk that is too full to go on, and that should be looked at.
const (
	diskLow  = 5  // percent free
	diskWarn = 15 // percent free
)

func checkDisk(l site.Layout) finding {
	var st unix.Statfs_t
	if err := unix.Statfs(l.Dir, &st); err != nil {
		return finding{"disk", bad, err.Error(), ""}
	}
	free := st.Bavail * uint64(st.Bsize)
	percent := int(st.Bavail * 100 / max(st.Blocks, 1))
	text := fmt.Sprintf("%d GiB free, %d %%", free>>30, percent)
	switch {
	case percent < diskLow:
		return finding{"disk", bad, text, "free space, or move the site: a full disk stops the bus"}
	case percent < diskWarn:
		return finding{"disk", warn, text, "free space before the bus stops"}
	}
	return finding{"disk", fine, text, ""}
}

// checkKeys tells which keys lie here, and how.
func (a *app) checkKeys(l site.Layout) []finding {
	var found []finding
	root := l.SignKey(string(events.RoleRoot))
	switch _, err := keys.LoadSigner(root, nil); {
	case errors.Is(err, fs.ErrNotExist):
		found = append(found, finding{"root key", fine, "not on this machine", ""})
	case err == nil:
		found = append(found, finding{"root key", warn, "here and without a passphrase: whoever reads it decides who may decide", "move " + root + " to a safe place"})
	case errors.Is(err, keys.ErrNeedsPassphrase):
		found = append(found, finding{"root key", warn, "here, guarded by its passphrase", "move " + root + " to a safe place; only 'actor add' and 'actor revoke' need it"})
	default:
		found = append(found, finding{"root key", bad, err.Error(), ""})
	}
	_, _, c, err := a.person()
	if err != nil {
		return found
	}
	switch _, err := keys.LoadSigner(l.SignKey(c.ActorName), nil); {
	case errors.Is(err, keys.ErrNeedsPassphrase):
		return append(found, finding{"your key", fine, "guarded by its passphrase", ""})
	case err == nil:
		return append(found, finding{"your key", warn, "without a passphrase: whatever runs as this user outside a job can approve in your name", "make the site with a passphrase"})
	default:
		return append(found, finding{"your key", bad, err.Error(), ""})
	}
}

// checkBus looks at the stream and the roles.
func (a *app) checkBus(ctx context.Context, l site.Layout, s host.SiteConfig) []finding {
	running, err := host.ReadStatus(ctx, l)
	if err != nil {
		return []finding{{"roles", bad, err.Error(), ""}}
	}
	var found []finding
	for _, r := range running.Roles {
		if !r.Ready {
			found = append(found, finding{"role " + r.Role, bad, r.Reason, "look at its log"})
		}
	}
	if running.Ready {
		found = append(found, finding{"roles", fine, fmt.Sprintf("%d run here and are ready", len(running.Roles)), ""})
	}
	c, err := a.connect(ctx, l, s, "reader", events.RoleReader)
	if errors.Is(err, bus.ErrOutage) {
		return append(found, finding{"bus", warn, "nothing answers at " + s.BusURL, "start it with 'banksman up'"})
	}
	if err != nil {
		return append(found, finding{"bus", bad, err.Error(), ""})
	}
	defer c.Close()
	return append(found, checkStream(ctx, c))
}

func checkStream(ctx context.Context, c *bus.Conn) finding {
	st, err := c.StreamState(ctx)
	if err != nil {
		return finding{"stream", bad, err.Error(), ""}
	}
	opened, thinned, err := c.Last(ctx, events.PrefixStored+".epoch.*.*.opened.*")
	if err != nil {
		return finding{"stream", bad, err.Error(), ""}
	}
	if thinned && st.First == 1 {
		return finding{"stream", fine, fmt.Sprintf("%d events; those before the epoch that began at %d are in the audit log, but for what was carried", st.Messages, opened.Seq), ""}
	}
	if st.First != 1 || st.Deleted != 0 || st.Messages != st.Last {
		return finding{"stream", bad, fmt.Sprintf("it is not whole: first %d, last %d, %d messages, %d deleted", st.First, st.Last, st.Messages, st.Deleted),
			"run 'banksman audit verify'; what is missing is missing for good"}
	}
	text := fmt.Sprintf("%d events, none missing, %d MiB of %d MiB", st.Messages, st.Bytes>>20, st.MaxBytes>>20)
	if st.MaxBytes > 0 && st.Bytes > uint64(st.MaxBytes)/10*8 {
		return finding{"stream", warn, text, "raise bus.max_bytes: above 80 % proposals are refused"}
	}
	return finding{"stream", fine, text + ", settings checked at the bus's start", ""}
}
