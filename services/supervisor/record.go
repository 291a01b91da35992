package supervisor

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/banksman/banksman/events"
)

// record is what the disk knows of a round that is not over. It is written
// before the round's start is published and removed after its end and its
// leftovers are.
type record struct {
	Project string `json:"project"`
	Round   string `json:"round"`
	// Marker finds the round's processes; see proc.SweepMarker.
	Marker string `json:"marker"`
	// Ended is the end that waits to be stored.
	Ended *events.RoundEnded `json:"ended,omitempty"`
	// Looked says that leftovers were seen to; Salvaged or Failed is what
	// came of it, neither when there was nothing to keep.
	Looked   bool                      `json:"looked,omitzero"`
	Salvaged *events.WorkSalvaged      `json:"salvaged,omitempty"`
	Failed   *events.WorkSalvageFailed `json:"failed,omitempty"`
}

const (
	recordSuffix = ".round.json"
	logSuffix    = ".log"
)

// journal is the folder of a project's rounds. It keeps no state of its own.
type journal struct{ dir string }

func openJournal(dir string) (journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return journal{}, fmt.Errorf("make the folder of rounds: %w; the supervisor needs it to remember what it runs", err)
	}
	return journal{dir: dir}, nil
}

func (j journal) path(round string) string { return filepath.Join(j.dir, round+recordSuffix) }
func (j journal) log(round string) string  { return filepath.Join(j.dir, round+logSuffix) }

// put writes the record in one step. With sync it survives a power cut;
// without, the death of this process.
func (j journal) put(r record, sync bool) error {
	text, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode round %s: %w", r.Round, err)
	}
	path := j.path(r.Round)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("record round %s: %w", r.Round, err)
	}
	_, err = f.Write(text)
	if err == nil && sync {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("record round %s: %w", r.Round, err)
	}
	return nil
}

// drop forgets a round. Its log stays.
func (j journal) drop(round string) error {
	if err := os.Remove(j.path(round)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget round %s: %w", round, err)
	}
	return nil
}

// leftovers lists the rounds of an earlier life. What cannot be read is named
// in the error and stays where it is.
func (j journal) leftovers() ([]record, error) {
	list, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, fmt.Errorf("list the rounds of an earlier run: %w", err)
	}
	var out []record
	var unread error
	for _, e := range list {
		if !strings.HasSuffix(e.Name(), recordSuffix) {
			continue
		}
		var r record
		text, err := os.ReadFile(filepath.Join(j.dir, e.Name()))
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err == nil && r.Round+recordSuffix != e.Name() {
			err = fmt.Errorf("it names round %s", r.Round)
		}
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("round file %s: %w", e.Name(), err))
			continue
		}
		out = append(out, r)
	}
	return out, unread
}
