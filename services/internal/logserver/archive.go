package logserver

import (
	"bufio"
	"context"
	oldjson "encoding/json" // as the server and its client write durations
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// Archive writes the file from which [Start] makes the audited stream again: events at
// their old sequences and times, holes included. The file appears whole or not at all.
type Archive struct {
	path string
	file *os.File
	buf  *bufio.Writer
	pack *s2.Writer
	out  *archive.Writer
	last uint64
}

// streamHead is what an archive begins with; the server's own names.
type streamHead struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	First    uint64 `json:"first_seq"`
	Last     uint64 `json:"last_seq"`
}

// NewArchive begins an archive of a stream that ends at a sequence.
func NewArchive(path string, last uint64) (*Archive, error) {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write the stream to an archive: %w", err)
	}
	a := &Archive{path: path, file: f, buf: bufio.NewWriterSize(f, 1<<20)}
	a.pack = s2.NewWriter(a.buf)
	a.out = archive.NewWriter(a.pack)
	head, err := json.Marshal(streamHead{First: 1, Last: last})
	if err == nil {
		err = a.entry(archive.Header{Name: "state.json", Timestamp: time.Now().UnixNano(), PayloadSize: int64(len(head))}, head)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the stream to an archive: %w", err), a.Discard())
	}
	return a, nil
}

func (a *Archive) entry(h archive.Header, parts ...[]byte) error {
	if err := a.out.WriteHeader(&h); err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := a.out.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// Add appends an event; sequences rise.
func (a *Archive) Add(st events.Stored) error {
	if st.Seq <= a.last {
		return fmt.Errorf("write event %d to an archive that ends at %d: out of order", st.Seq, a.last)
	}
	a.last = st.Seq
	head := headerBytes(st.Header)
	err := a.entry(archive.Header{
		Name: st.Subject, Timestamp: st.Time.UnixNano(), Sequence: st.Seq, HeaderSize: int64(len(head)), PayloadSize: int64(len(st.Data)),
	}, head, st.Data)
	if err != nil {
		return fmt.Errorf("write event %d to an archive: %w", st.Seq, err)
	}
	return nil
}

// headerBytes is the wire form of headers.
func headerBytes(h map[string][]string) []byte {
	if len(h) == 0 {
		return nil
	}
	b := []byte("NATS/1.0\r\n")
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range h[name] {
			b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
		}
	}
	return append(b, "\r\n"...)
}

// Commit makes the archive durable and gives it its name.
func (a *Archive) Commit() error {
	err := a.entry(archive.Header{})
	err = errors.Join(err, a.out.Flush(), a.out.Close(), a.pack.Close(), a.buf.Flush(), a.file.Sync(), a.file.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("write the stream to an archive: %w", err), os.Remove(a.path+".tmp"))
	}
	if err := os.Rename(a.path+".tmp", a.path); err != nil {
		return fmt.Errorf("write the stream to an archive: %w", err)
	}
	return syncFolder(filepath.Dir(a.path))
}

// Discard gives the archive up.
func (a *Archive) Discard() error {
	return errors.Join(a.file.Close(), os.Remove(a.path+".tmp"))
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// ArchivePath is the file from which a stream is made again at the start, if it is there.
func ArchivePath(storeDir, stream string) string {
	return filepath.Join(filepath.Dir(storeDir), stream+".archive")
}

// putBackAll makes every stream again that has an archive.
func (s *Server) putBackAll(ctx context.Context) error {
	for _, c := range s.layout().Streams() {
		if err := s.putBack(ctx, c); err != nil {
			return fmt.Errorf("make stream %s again: %w", c.Name, err)
		}
	}
	return nil
}

// putBack makes a stream from its archive, if there is one. Until the archive is gone
// nobody could connect, so whatever the stream holds is what an interrupted attempt left.
func (s *Server) putBack(ctx context.Context, c jetstream.StreamConfig) error {
	path := ArchivePath(s.opts.StoreDir, c.Name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.admin.DropStream(ctx, c.Name); err != nil {
		return err
	}
	account, err := s.srv.LookupAccount(string(grants.Core))
	if err != nil {
		return err
	}
	config, err := serverConfig(c)
	if err != nil {
		return err
	}
	if _, err := account.RestoreStreamV2(config, f); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	s.opts.Log.Info("a stream was made again from its archive", "stream", c.Name)
	return syncFolder(filepath.Dir(path))
}

// serverConfig is a stream's configuration in the server's own type, which has the same
// members as the client's.
func serverConfig(c jetstream.StreamConfig) (*server.StreamConfig, error) {
	text, err := oldjson.Marshal(c)
	if err != nil {
		return nil, err
	}
	var out server.StreamConfig
	return &out, oldjson.Unmarshal(text, &out)
}

// Thin lets go of every event that is not kept. It may be called by Prepare alone: nobody
// else may be connected.
func (s *Server) Thin(ctx context.Context, keep func(seq uint64, subject string) bool) error {
	last, err := s.admin.LastSeq(ctx)
	if err != nil {
		return err
	}
	a, err := NewArchive(ArchivePath(s.opts.StoreDir, grants.Stream), last)
	if err != nil {
		return err
	}
	for next := uint64(1); ; {
		page, err := s.admin.Read(ctx, next, events.PrefixStored+".>", 1<<10)
		if err != nil {
			return errors.Join(err, a.Discard())
		}
		if len(page) == 0 {
			break
		}
		for _, st := range page {
			next = st.Seq + 1
			if !keep(st.Seq, st.Subject) {
				continue
			}
			if err := a.Add(st); err != nil {
				return errors.Join(err, a.Discard())
			}
		}
	}
	if err := a.Commit(); err != nil {
		return err
	}
	if err := s.putBackAll(ctx); err != nil {
		return err
	}
	return s.admin.Provision(ctx, s.layout())
}
