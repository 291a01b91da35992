package backup

import (
	"errors"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/logserver"
	"github.com/banksman/banksman/services/internal/site"
)

// format changes when an older banksman could not restore the file.
const format = "banksman-backup/1"

// manifestName is the last file of a backup.
const manifestName = "manifest.json"

// Manifest says what a backup holds.
type Manifest struct {
	Format  string    `json:"format"`
	Version string    `json:"version"` // of banksman
	Made    time.Time `json:"made"`
	Origin  string    `json:"origin"`
	RootKey string    `json:"root_key"`
	Dir     string    `json:"dir"` // where the site lay
	Epoch   int       `json:"epoch"`
	Size    int64     `json:"size"` // leaves of the newest epoch's log
	Root    string    `json:"root"` // of its head, base64
	Through uint64    `json:"through_seq"`
	Files   []File    `json:"files"`
}

// File is one file of a backup.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Folders of a backup.
const (
	siteFolder    = "site"
	logFolder     = "logs"
	streamsFolder = "streams"
)

// streams are those that the log does not hold.
func streams() []string { return []string{grants.OutputStream, grants.TextStream} }

// logFiles are the files of a log that are not derived from others.
func logFiles() []string { return []string{"entries.log", "raw.log", "checkpoint"} }

// errName is a file that no backup has.
var errName = errors.New("no backup has such a file")

// place is where a file of a backup lies in a site's folder.
func place(l site.Layout, name string) (string, error) {
	folder, rest, _ := strings.Cut(name, "/")
	local := filepath.FromSlash(rest)
	if path.Clean(name) != name || !filepath.IsLocal(local) {
		return "", errName
	}
	switch folder {
	case siteFolder:
		if first, _, _ := strings.Cut(rest, "/"); first == "state" || first == "run" {
			return "", errName
		}
		return filepath.Join(l.Dir, local), nil
	case logFolder:
		id, file, _ := strings.Cut(rest, "/")
		epoch, ok := events.ParseEpoch(id)
		for _, known := range logFiles() {
			if ok && file == known {
				return filepath.Join(l.AuditLogOf(epoch), file), nil
			}
		}
	case streamsFolder:
		for _, known := range streams() {
			if rest == known {
				return logserver.ArchivePath(l.BusStore(), rest), nil
			}
		}
	}
	return "", errName
}
