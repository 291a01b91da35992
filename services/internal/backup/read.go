package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// ErrSpoilt is a file that is not the backup that was made.
var ErrSpoilt = errors.New("it is not the backup that was made")

// maxManifest_bytes bounds what a stranger's file makes the reader hold.
const maxManifest_bytes = 64 << 20

// Unpack makes the folder of a site from a backup, as it was: nothing may be started from
// it before [Reopen]. Every file is compared with its digest.
func Unpack(ctx context.Context, from string, l site.Layout) (Manifest, error) {
	f, err := os.Open(from)
	if err != nil {
		return Manifest{}, fmt.Errorf("read the backup: %w", err)
	}
	defer f.Close()
	r := reader{ctx: ctx, layout: l, got: map[string]File{}}
	if err := r.read(tar.NewReader(f)); err != nil {
		return Manifest{}, fmt.Errorf("read the backup %s: %w", from, err)
	}
	for n := events.FirstEpoch; n <= r.m.Epoch; n++ {
		if err := finishLog(l, n); err != nil {
			return Manifest{}, fmt.Errorf("read the backup %s: the audit log of %s: %w", from, events.EpochID(n), err)
		}
	}
	return r.m, nil
}

type reader struct {
	ctx    context.Context
	layout site.Layout
	m      Manifest
	got    map[string]File
}

func (r *reader) read(in *tar.Reader) error {
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return r.compare()
		}
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrSpoilt, err)
		case r.ctx.Err() != nil:
			return context.Cause(r.ctx)
		case r.m.Format != "" || h.Typeflag != tar.TypeReg:
			return fmt.Errorf("%w: %q follows the manifest or is no file", ErrSpoilt, h.Name)
		case h.Name == manifestName:
			err = r.manifest(in)
		default:
			err = r.file(h, in)
		}
		if err != nil {
			return err
		}
	}
}

func (r *reader) manifest(in io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, maxManifest_bytes))
	if err == nil {
		err = json.Unmarshal(text, &r.m)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: the manifest: %w", ErrSpoilt, err)
	case r.m.Format != format:
		return fmt.Errorf("its format is %q, this banksman reads %q; use the version that made it", r.m.Format, format)
	}
	return nil
}

func (r *reader) file(h *tar.Header, in io.Reader) error {
	to, err := place(r.layout, h.Name)
	if _, again := r.got[h.Name]; err != nil || again {
		return fmt.Errorf("%w: %q: %w", ErrSpoilt, h.Name, errors.Join(err, errName))
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(h.Mode)&0o644)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), in)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("%w: %q: %w", ErrSpoilt, h.Name, err)
	}
	r.got[h.Name] = File{Name: h.Name, Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	return nil
}

// compare compares what was read with the manifest, both ways.
func (r *reader) compare() error {
	if r.m.Format == "" {
		return fmt.Errorf("%w: it has no manifest, so it is cut or no backup", ErrSpoilt)
	}
	for _, want := range r.m.Files {
		if r.got[want.Name] != want {
			return fmt.Errorf("%w: %q is missing or has another digest than the manifest says", ErrSpoilt, want.Name)
		}
		delete(r.got, want.Name)
	}
	for name := range r.got {
		return fmt.Errorf("%w: %q is not in the manifest", ErrSpoilt, name)
	}
	return nil
}

// finishLog makes a log's lock and the files that are derived. Its signed head stays the
// one that was in the backup.
func finishLog(l site.Layout, epoch int) error {
	path := filepath.Join(l.AuditLogOf(epoch), "checkpoint")
	head, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lock, err := tlog.LockOf(head)
	if err != nil {
		return err
	}
	folder := filepath.Dir(l.AuditHeadOf(epoch))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(l.AuditHeadOf(epoch), lock, 0o600); err != nil {
		return err
	}
	key, err := keys.GenerateCheckpointKey("banksman/restore") // Open signs; its head is put away again
	if err != nil {
		return err
	}
	log, err := tlog.Open(l.AuditLogOf(epoch), key.Signer(), tlog.FileLock(folder))
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, head, 0o600)
}

// Reopen makes the next start of the site begin a new epoch, which says that it was
// restored: it leaves behind the archive of the stream as the backup has it, with one event
// more, signed by the auditor's key.
// The folder is going to lie at dir.
func Reopen(l site.Layout, dir string, m Manifest, actor string) (uint64, error) {
	seq, err := reopen(l, dir, m, actor)
	if err != nil {
		return 0, fmt.Errorf("open an epoch for the restored site: %w", err)
	}
	return seq, nil
}

func reopen(l site.Layout, dir string, m Manifest, actor string) (uint64, error) {
	log, err := tlog.OpenReader(l.AuditLogOf(m.Epoch))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	opened, err := opening(l, m, log, actor)
	if err != nil {
		return 0, err
	}
	if err := writeStream(l, log, m.Size, opened); err != nil {
		return 0, err
	}
	if err := moveContexts(l, m.Dir, dir); err != nil {
		return 0, err
	}
	return opened.Seq, os.WriteFile(l.BusEpoch(), []byte(events.EpochID(m.Epoch+1)+"\n"), 0o600)
}

// opening is the event that opens the epoch. It carries everything: which of it is still
// in force nobody could know before the site runs again.
func opening(l site.Layout, m Manifest, log *tlog.Reader, actor string) (events.Stored, error) {
	genesis, err := log.Genesis()
	if err != nil {
		return events.Stored{}, err
	}
	signer, err := keys.LoadSigner(l.SignKey(actor), nil)
	if err != nil {
		return events.Stored{}, err
	}
	session := make([]byte, 10)
	rand.Read(session)
	now := m.restored()
	epoch := m.Epoch + 1
	msg, err := events.New(m.Origin, events.For("epoch.opened", events.SiteScope, events.EpochID(epoch), actor),
		events.ID{Actor: actor, Session: hex.EncodeToString(session), N: 1}, now, 0, events.EpochOpened{
			Epoch: epoch, Why: events.EpochRestored, Origin: genesis.Origin, Size: m.Size, Root: m.Root, Through: m.Through,
			Carried: map[string][]string{},
		})
	if err != nil {
		return events.Stored{}, err
	}
	msg.Sign(m.Origin, string(signer.Public()), signer.Sign)
	return events.Stored{Seq: m.Through + 1, Time: now, Subject: msg.Subject.String(), Header: msg.Header, Data: msg.Data}, nil
}

// moveContexts lets the contexts of the nats command line name the new folder.
func moveContexts(l site.Layout, old, dir string) error {
	if old == "" || old == dir {
		return nil
	}
	return filepath.WalkDir(l.NATS(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, bytes.ReplaceAll(text, []byte(old+"/"), []byte(dir+"/")), 0o600)
	})
}
