package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/logserver"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// Pager reads streams; *bus.Conn is one.
type Pager interface {
	Page(ctx context.Context, stream string, from uint64) ([]events.Stored, error)
}

// Source is the site that is put into a file.
type Source struct {
	Layout  site.Layout
	Origin  string
	RootKey string
	Version string
	Bus     Pager
}

// ErrOpenFolder is a folder that others may read.
var ErrOpenFolder = errors.New("others may read the folder, and a backup holds keys; choose one with mode 0700")

// Write makes the backup.
func (s Source) Write(ctx context.Context, to string) (Manifest, error) {
	m, err := s.write(ctx, to)
	if err != nil {
		return Manifest{}, fmt.Errorf("back up %s to %s: %w", s.Layout.Dir, to, err)
	}
	return m, nil
}

func (s Source) write(ctx context.Context, to string) (m Manifest, err error) {
	folder := filepath.Dir(to)
	info, err := os.Stat(folder)
	if err != nil {
		return m, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return m, ErrOpenFolder
	}
	if _, err := os.Lstat(to); err == nil {
		return m, fs.ErrExist
	}
	f, err := os.CreateTemp(folder, ".banksman-backup-") // mode 0600
	if err != nil {
		return m, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	w := &writer{Source: s, ctx: ctx, out: tar.NewWriter(f), scratch: f.Name() + ".stream", m: Manifest{
		Format: format, Version: s.Version, Made: time.Now().UTC(), Origin: s.Origin, RootKey: s.RootKey, Dir: s.Layout.Dir, Epoch: s.Layout.Epoch(),
	}}
	for _, step := range []func() error{w.logs, w.files, w.streams, w.end, f.Sync} {
		if err := step(); err != nil {
			return m, err
		}
	}
	return w.m, os.Link(f.Name(), to) // unlike a rename it replaces nothing
}

// writer fills one file.
type writer struct {
	Source
	ctx     context.Context
	out     *tar.Writer
	scratch string
	m       Manifest
}

// logs writes every epoch's log up to a signed head, which is read first.
func (w *writer) logs() error {
	for n := events.FirstEpoch; n <= w.m.Epoch; n++ {
		if err := w.log(n); err != nil {
			return fmt.Errorf("the audit log of %s: %w", events.EpochID(n), err)
		}
	}
	return nil
}

func (w *writer) log(n int) error {
	dir := w.Layout.AuditLogOf(n)
	r, err := tlog.OpenReader(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	head, err := r.Checkpoint()
	if err != nil {
		return err
	}
	entries, raw, err := r.Ends(head.Size)
	if err != nil {
		return err
	}
	w.m.Size, w.m.Root = head.Size, base64.StdEncoding.EncodeToString(head.Root[:])
	if w.m.Through, err = r.Covers(head.Size); err != nil {
		return err
	}
	name := path.Join(logFolder, events.EpochID(n))
	if err := w.prefix(path.Join(name, "entries.log"), filepath.Join(dir, "entries.log"), entries); err != nil {
		return err
	}
	if err := w.prefix(path.Join(name, "raw.log"), filepath.Join(dir, "raw.log"), raw); err != nil {
		return err
	}
	return w.bytes(path.Join(name, "checkpoint"), head.Note)
}

// prefix writes the first so many bytes of a file.
func (w *writer) prefix(name, from string, size int64) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return w.add(name, 0o600, size, io.LimitReader(f, size))
}

func (w *writer) bytes(name string, content []byte) error {
	return w.add(name, 0o600, int64(len(content)), strings.NewReader(string(content)))
}

func (w *writer) add(name string, mode fs.FileMode, size int64, content io.Reader) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if err := w.out.WriteHeader(&tar.Header{Name: name, Mode: int64(mode.Perm()), Size: size, Typeflag: tar.TypeReg, ModTime: w.m.Made.Truncate(time.Second)}); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w.out, sum), content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if name != manifestName {
		w.m.Files = append(w.m.Files, File{Name: name, Bytes: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	}
	return nil
}

// files writes the site's own files: everything but what runs and what is kept elsewhere
// in the backup.
func (w *writer) files() error {
	for _, skip := range []string{w.Layout.Secrets, w.Layout.Runtime} {
		if skip != "" {
			return fmt.Errorf("the keys lie in %s, apart from the rest; back up each role's folders where they lie, see deploy/README.md", skip)
		}
	}
	return filepath.WalkDir(w.Layout.Dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if at == w.Layout.State() || at == w.Layout.Run() {
			return fs.SkipDir
		}
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no file; take it out of the site's folder", at)
		}
		below, err := filepath.Rel(w.Layout.Dir, at)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		return w.add(path.Join(siteFolder, filepath.ToSlash(below)), info.Mode(), int64(len(content)), strings.NewReader(string(content)))
	})
}

// streams writes what the bus holds beside the audited stream.
func (w *writer) streams() error {
	defer os.Remove(w.scratch)
	for _, name := range streams() {
		a, err := logserver.NewArchive(w.scratch, 0)
		if err != nil {
			return err
		}
		if err := w.pages(name, a.Add); err != nil {
			return errors.Join(err, a.Discard())
		}
		if err := a.Commit(); err != nil {
			return err
		}
		info, err := os.Stat(w.scratch)
		if err != nil {
			return err
		}
		if err := w.prefix(path.Join(streamsFolder, name), w.scratch, info.Size()); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) pages(stream string, add func(events.Stored) error) error {
	for next := uint64(1); ; {
		page, err := w.Bus.Page(w.ctx, stream, next)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, st := range page {
			if err := add(st); err != nil {
				return err
			}
			next = st.Seq + 1
		}
	}
}

// end writes the manifest.
func (w *writer) end() error {
	text, err := json.Marshal(w.m, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	if err := w.bytes(manifestName, text); err != nil {
		return err
	}
	return w.out.Close()
}
