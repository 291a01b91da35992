package backup

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/evidence"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/logserver"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// restored is the moment of the restore; the stream's clock does not go back.
func (m *Manifest) restored() time.Time {
	now := time.Now().UTC()
	if now.Before(m.Made) {
		return m.Made
	}
	return now
}

// writeStream writes the archive of the audited stream: what the newest log holds, which
// is all that the stream held, and the event that opens the epoch.
func writeStream(l site.Layout, log *tlog.Reader, size int64, opened events.Stored) error {
	path := logserver.ArchivePath(l.BusStore(), grants.Stream)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	a, err := logserver.NewArchive(path, opened.Seq)
	if err != nil {
		return err
	}
	err = log.Entries(1, size, func(leaf int64, e tlog.Entry) error {
		if e.Kind != tlog.KindEvent {
			return nil
		}
		rec, err := log.Record(leaf)
		if err != nil {
			return err
		}
		return a.Add(evidence.StoredOf(rec))
	})
	if err == nil {
		err = a.Add(opened)
	}
	if err != nil {
		return errors.Join(err, a.Discard())
	}
	return a.Commit()
}
