package logbook

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Record is what a book remembers: JSON with a name that is unique in its folder
// and fit for a file.
type Record interface{ Name() string }

// Book is a folder of records of one kind.
type Book[R Record] struct {
	dir    string
	suffix string
}

// Open makes the folder. The suffix tells the records' files from others.
func Open[R Record](dir, suffix string) (Book[R], error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Book[R]{}, fmt.Errorf("make the folder that remembers what runs: %w", err)
	}
	return Book[R]{dir: dir, suffix: suffix}, nil
}

// Dir is the folder.
func (b Book[R]) Dir() string { return b.dir }

// Beside is a file of the caller's that belongs to a record.
func (b Book[R]) Beside(name, suffix string) string { return filepath.Join(b.dir, name+suffix) }

func (b Book[R]) path(r R) string { return b.Beside(r.Name(), b.suffix) }

// Put writes the record in one step, and with sync to the disk itself.
func (b Book[R]) Put(r R, sync bool) error {
	text, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode the record of %s: %w", r.Name(), err)
	}
	err = b.replace(b.path(r), text, sync)
	if errors.Is(err, fs.ErrNotExist) { // somebody has tidied up
		if err = os.MkdirAll(b.dir, 0o700); err == nil {
			err = b.replace(b.path(r), text, sync)
		}
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", r.Name(), err)
	}
	return nil
}

func (b Book[R]) replace(path string, text []byte, sync bool) error {
	_, older := os.Lstat(path)
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
		if gone := os.Remove(path + ".new"); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return err
	}
	if sync && older == nil {
		return syncFolder(b.dir)
	}
	return nil
}

// syncFolder makes a rename outlive a power cut.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Drop forgets a record, and the files beside it that have these suffixes.
func (b Book[R]) Drop(r R, beside ...string) error {
	var all error
	for _, suffix := range append(beside, b.suffix) {
		if err := os.Remove(b.Beside(r.Name(), suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	if all != nil {
		return fmt.Errorf("forget %s: %w", r.Name(), all)
	}
	return nil
}

// Leftovers lists the records of an earlier life.
func (b Book[R]) Leftovers() ([]R, error) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, fmt.Errorf("list what an earlier run has left: %w", err)
	}
	var out []R
	var unread error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), b.suffix) {
			continue
		}
		var r R
		text, err := os.ReadFile(filepath.Join(b.dir, e.Name()))
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err == nil && r.Name()+b.suffix != e.Name() {
			err = fmt.Errorf("it names %s", r.Name())
		}
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("file %s: %w", e.Name(), err))
			continue
		}
		out = append(out, r)
	}
	return out, unread
}
