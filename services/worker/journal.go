package worker

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

// record is what the disk knows of an attempt. It is written before the claim
// is published, so that no attempt of this worker can be forgotten, and removed
// after the end is stored. The sequence of the claim is not in it: the job's
// history tells it by session and number.
type record struct {
	Job     string `json:"job"`
	Pool    string `json:"pool"`
	Attempt int    `json:"attempt"`
	Session string `json:"session"`
	// Marker finds the attempt's processes; see proc.SweepMarker.
	Marker string `json:"marker"`
	// Finished or Cancelled is the end that waits to be stored.
	Finished  *events.JobFinished  `json:"finished,omitempty"`
	Cancelled *events.JobCancelled `json:"cancelled,omitempty"`
}

func (r record) name() string { return fmt.Sprintf("%s.%d.%s", r.Job, r.Attempt, r.Session) }

// ended says whether the record holds an end.
func (r record) ended() bool { return r.Finished != nil || r.Cancelled != nil }

const (
	recordSuffix = ".attempt.json"
	spoolSuffix  = ".output"
)

// journal is the folder of attempts. It keeps no state of its own.
type journal struct{ dir string }

// openJournal makes the folder.
func openJournal(dir string) (journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return journal{}, fmt.Errorf("make the folder of attempts: %w; the worker needs it to remember what it runs", err)
	}
	return journal{dir: dir}, nil
}

// spool is where the attempt's output waits for the bus.
func (j journal) spool(r record) string { return filepath.Join(j.dir, r.name()+spoolSuffix) }

// put writes the record in one step. With sync it survives a power cut;
// without, the death of this process.
func (j journal) put(r record, sync bool) error {
	text, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode attempt %s: %w", r.name(), err)
	}
	path := filepath.Join(j.dir, r.name()+recordSuffix)
	err = replace(path, text, sync)
	if errors.Is(err, fs.ErrNotExist) { // somebody has tidied up
		if err = os.MkdirAll(j.dir, 0o700); err == nil {
			err = replace(path, text, sync)
		}
	}
	if err != nil {
		return fmt.Errorf("record attempt %s: %w", r.name(), err)
	}
	return nil
}

func replace(path string, text []byte, sync bool) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
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
		return errors.Join(err, unlessGone(os.Remove(path+".new")))
	}
	return nil
}

// drop forgets an attempt.
func (j journal) drop(r record) error {
	var all error
	for _, path := range []string{j.spool(r), filepath.Join(j.dir, r.name()+recordSuffix)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	if all != nil {
		return fmt.Errorf("forget attempt %s: %w", r.name(), all)
	}
	return nil
}

// leftovers lists the attempts of an earlier life. What cannot be read is
// named in the error and stays where it is.
func (j journal) leftovers() ([]record, error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, fmt.Errorf("list the attempts of an earlier run: %w", err)
	}
	var out []record
	var unread error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), recordSuffix) {
			continue
		}
		var r record
		text, err := os.ReadFile(filepath.Join(j.dir, e.Name()))
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err == nil && r.name()+recordSuffix != e.Name() {
			err = fmt.Errorf("it names attempt %s", r.name())
		}
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("attempt file %s: %w", e.Name(), err))
			continue
		}
		out = append(out, r)
	}
	return out, unread
}
