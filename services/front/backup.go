package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/auditor"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/host/embed"
	"github.com/banksman/banksman/services/internal/backup"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
)

// backedUp is what backup says.
type backedUp struct {
	File    string `json:"file"`
	Epoch   int    `json:"epoch"`
	Size    int64  `json:"size"`
	Root    string `json:"root"`
	Through uint64 `json:"through_seq"`
	Files   int    `json:"files"`
}

func (a *app) backupCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "backup --to FILE", Short: "Put the whole site into one file, also while it runs", GroupID: "prove", Args: cobra.NoArgs,
		Long: "Put the site's files and keys, the audit log of every epoch, the output of jobs and the words\nof people into one new file, which only you can read. The log holds every event of the stream,\nso the backup is that of one signed head, also while the site runs. It holds keys: keep it as\nyou keep them. 'banksman restore' makes the site again.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return usage("name a file that does not exist yet, in a folder of mode 0700", "backup: --to is required")
			}
			return a.backup(cmd.Context(), to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "file to make")
	return cmd
}

func (a *app) backup(ctx context.Context, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	l, s, err := a.site()
	if err != nil {
		return err
	}
	if _, err := os.Stat(l.AuditLog()); err != nil {
		return fmt.Errorf("back up %s: it holds no audit log; run backup where the auditor runs, and start the site once if it is new: %w", l.Dir, err)
	}
	conn, done, err := a.reading(ctx, l, s)
	if err != nil {
		return err
	}
	defer done()
	m, err := backup.Source{Layout: l, Origin: s.Origin, RootKey: s.RootKey, Version: host.Version(), Bus: conn}.Write(ctx, to)
	if err != nil {
		return err
	}
	told := backedUp{File: to, Epoch: m.Epoch, Size: m.Size, Root: m.Root, Through: m.Through, Files: len(m.Files)}
	return a.print(told, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d files, sealed through event %d\n%s has %d entries, root %s\nkeep the root elsewhere: it tells this backup from an older one\n",
			told.File, told.Files, told.Through, events.EpochID(told.Epoch), told.Size, told.Root)
	})
}

// reading connects to the site's bus to read. Where the site is stopped, the bus runs in
// this process meanwhile.
func (a *app) reading(ctx context.Context, l site.Layout, s host.SiteConfig) (conn *bus.Conn, done func(), err error) {
	release, err := host.Claim(l, "backup", "bus")
	var held *host.Held
	if errors.As(err, &held) {
		conn, err = a.connect(ctx, l, s, "reader", events.RoleReader)
		if err != nil {
			return nil, nil, err
		}
		return conn, conn.Close, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(l.BusStore()); err != nil {
		release()
		conn, err = a.connect(ctx, l, s, "reader", events.RoleReader) // the bus is elsewhere
		if err != nil {
			return nil, nil, err
		}
		return conn, conn.Close, nil
	}
	log, err := a.log()
	if err != nil {
		return nil, release, err
	}
	c := host.DefaultBus()
	if err := config.Load(l.Config(), config.Section{Name: "bus", Into: &c}); err != nil {
		release()
		return nil, nil, err
	}
	quiet, err := embed.Quiet(ctx, l, s, c, log)
	if err != nil {
		release()
		return nil, nil, err
	}
	end := func() { quiet.Close(); release() }
	conn, err = host.Connection{Layout: l, Site: s, Actor: "reader", Power: events.RoleReader, Log: log, Once: true, Use: quiet.Use}.Dial(ctx)
	if err != nil {
		end()
		return nil, nil, err
	}
	return conn, func() { conn.Close(); end() }, nil
}

// restored is what restore says.
type restored struct {
	Dir     string `json:"dir"`
	Made    string `json:"made"` // when the backup was
	Through uint64 `json:"through_seq"`
	Opens   string `json:"opens"` // the epoch that the next start begins
	RootKey string `json:"root_key"`
}

func (a *app) restoreCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use: "restore --from FILE --to DIR", Short: "Make a site again from a backup, as a new epoch that says so", GroupID: "prove", Args: cobra.NoArgs,
		Long: "Make the folder of a site from a backup. Every file is compared with its digest and the audit\nlogs are verified first. The site's next start begins a new epoch, whose log names the head of\nthe backup and says \"restored\": what came after the backup is lost, and everybody sees that it\nis. The old site must never run again.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" || to == "" {
				return usage("name the backup and a folder that does not exist yet", "restore: --from and --to are required")
			}
			return a.restore(cmd.Context(), from, to)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the backup")
	cmd.Flags().StringVar(&to, "to", "", "folder to make")
	return cmd
}

func (a *app) restore(ctx context.Context, from, to string) (err error) {
	to, err = filepath.Abs(to)
	if err != nil {
		return err
	}
	l := site.Layout{Dir: to}
	if err := site.Free(l); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(filepath.Dir(to), ".banksman-restore-")
	if err != nil {
		return fmt.Errorf("restore to %s: %w", to, err)
	}
	defer os.RemoveAll(draft)
	m, err := backup.Unpack(ctx, from, site.Layout{Dir: draft})
	if err != nil {
		return err
	}
	if err := a.verifyRestored(ctx, site.Layout{Dir: draft}, m); err != nil {
		return fmt.Errorf("restore from %s: %w", from, err)
	}
	audit := auditor.DefaultConfig()
	if err := config.Load(site.Layout{Dir: draft}.Config(), config.Section{Name: "auditor", Into: &audit}); err != nil {
		return err
	}
	seq, err := backup.Reopen(site.Layout{Dir: draft}, to, m, audit.ActorName)
	if err != nil {
		return err
	}
	if _, err := auditor.Relock(site.Layout{Dir: draft}); err != nil { // its bus is a new one
		return err
	}
	if err := site.MoveInto(draft, to); err != nil {
		return fmt.Errorf("restore to %s: %w", to, err)
	}
	told := restored{Dir: to, Made: m.Made.Format("2006-01-02T15:04:05Z"), Through: m.Through, Opens: events.EpochID(m.Epoch + 1), RootKey: m.RootKey}
	return a.print(told, func(w io.Writer) {
		fmt.Fprintf(w, "%s holds the site as of event %d, backed up at %s; event %d will open %s, which says \"restored\"\n"+
			"its root key is %s; compare it with the one you know, then: banksman up --dir %s\n", told.Dir, told.Through, told.Made, seq, told.Opens, told.RootKey, told.Dir)
	})
}

// verifyRestored verifies the logs of a restored folder. How old they are is for the
// operator to know.
func (a *app) verifyRestored(ctx context.Context, l site.Layout, m backup.Manifest) error {
	s, err := host.LoadSite(l)
	if err != nil {
		return err
	}
	if s.Origin != m.Origin || s.RootKey != m.RootKey {
		return fmt.Errorf("%w: the configuration is of site %q, the manifest of %q", backup.ErrSpoilt, s.Origin, m.Origin)
	}
	o := auditor.Options{Origin: s.Origin, RootKey: keys.PublicKey(s.RootKey)}
	o.AllEpochs(l)
	r, err := auditor.Verify(ctx, o)
	if err != nil {
		return err
	}
	if !r.Integrity.OK {
		return fmt.Errorf("the audit log in it fails integrity: %s", r.Integrity.Reason)
	}
	for _, v := range []auditor.Verdict{r.Authenticity, r.Completeness} {
		if !v.OK {
			a.say("the site was not in order when the backup was made: %s", v.Reason)
		}
	}
	if r.Size != m.Size || r.Root != m.Root {
		return fmt.Errorf("%w: its log has %d entries with root %s, the manifest says %d and %s", backup.ErrSpoilt, r.Size, r.Root, m.Size, m.Root)
	}
	return nil
}
