package evidence

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/banksman/banksman/services/internal/tlog"
)

// ErrNoJob says that the log holds no event of a job under its signed head.
var ErrNoJob = errors.New("the signed log holds no event of this job")

// Names of the files that are not about one leaf.
const (
	jobFile        = "job"
	checkpointFile = "checkpoint"
	stampFile      = "checkpoint.tsr"
	laterFile      = "later.entries"
)

// page is how many leaves are read at once.
const page = 256

// Made says what a bundle holds.
type Made struct {
	Job    string  `json:"job"`
	Dir    string  `json:"dir,omitempty"`
	Size   int64   `json:"size"`   // leaves under the head
	Leaves []int64 `json:"leaves"` // of the job
	Later  int64   `json:"later"`  // entries after the job's last event
	State  int64   `json:"state"`  // the newest state among them, 0 for none
	// Words of people that the job's events name: in the bundle, erased by an order that
	// is in the bundle, or neither.
	Texts    int `json:"texts"`
	Erased   int `json:"erased"`
	Withheld int `json:"withheld"`
}

// Place is where the log holds a job, under one signed head.
type Place struct {
	Job        string
	Leaves     []int64          // events of the job
	Trust      []int64          // trust files
	Erased     map[string]int64 // the first order to erase each text, by digest
	Checkpoint tlog.Checkpoint
}

// Find looks a job up in the log; a unique prefix of its id will do. It reads the
// whole log once.
func Find(ctx context.Context, r *tlog.Reader, job string) (Place, error) {
	cp, err := r.Checkpoint()
	if err != nil {
		return Place{}, err
	}
	return find(ctx, r, cp, job)
}

// find looks a job up under a head.
func find(ctx context.Context, r *tlog.Reader, cp tlog.Checkpoint, job string) (Place, error) {
	if !plainID(job) {
		return Place{}, fmt.Errorf("find job %q: that cannot be an id", job)
	}
	p := Place{Checkpoint: cp, Erased: map[string]int64{}}
	found := map[string][]int64{}
	mark, trust, text := []byte("\njob "+job), []byte("\nsubject bm.trust."), []byte("\nsubject bm.text.")
	err := walk(ctx, r, 0, cp.Size, func(leaf int64, entry []byte) error {
		if bytes.Contains(entry, trust) {
			p.Trust = append(p.Trust, leaf)
		}
		if bytes.Contains(entry, text) {
			p.noteErased(leaf, entry)
		}
		_, rest, ok := bytes.Cut(entry, mark)
		if ok {
			more, _, _ := bytes.Cut(rest, []byte(" "))
			found[job+string(more)] = append(found[job+string(more)], leaf)
		}
		return nil
	})
	if err != nil {
		return Place{}, err
	}
	if _, exact := found[job]; !exact && len(found) > 1 {
		return Place{}, fmt.Errorf("find job %s: %d jobs begin like this; give more of the id", job, len(found))
	} else if !exact {
		for id := range found {
			job = id
		}
	}
	p.Job, p.Leaves = job, found[job]
	if len(p.Leaves) == 0 {
		return Place{}, fmt.Errorf("find job %s: %w", job, ErrNoJob)
	}
	return p, nil
}

// noteErased notes an entry that orders a text to be erased.
func (p *Place) noteErased(leaf int64, entry []byte) {
	e, err := tlog.ParseEntry(entry)
	if err != nil {
		return
	}
	digest, ok := erasedBy(e.Subject)
	if _, known := p.Erased[digest]; ok && !known {
		p.Erased[digest] = leaf
	}
}

// walk shows the entries of the leaves from up to, not including, to.
func walk(ctx context.Context, r *tlog.Reader, from, to int64, show func(leaf int64, entry []byte) error) error {
	for from < to {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n := min(page, to-from)
		b, err := r.Bundle(from, from+n)
		if err != nil {
			return err
		}
		for range n {
			if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
				return fmt.Errorf("read leaf %d: %w: its frame is short", from, tlog.ErrCorrupt)
			}
			size := 2 + int(binary.BigEndian.Uint16(b))
			if err := show(from, b[2:size]); err != nil {
				return err
			}
			b, from = b[size:], from+1
		}
	}
	return nil
}

// Prove makes the inclusion proof of a leaf under a head.
func Prove(r *tlog.Reader, leaf int64, head tlog.Checkpoint) (Proof, error) {
	path, err := r.Prove(leaf, head.Size)
	return Proof{Index: leaf, Path: path, Checkpoint: head.Note}, err
}

// Source is what bundles are made of.
type Source struct {
	Log *tlog.Reader
	// Texts are the kept words of people; without them a bundle withholds them.
	Texts Texts
	// Head is the signed head that the bundle is about; the zero value is the newest.
	Head tlog.Checkpoint
	// Stamp is the answer of a time-stamping authority about the head, nil for none.
	Stamp []byte
}

// Write makes the bundle of a job in a folder that must not exist yet. The folder
// appears whole or not at all.
func Write(ctx context.Context, from Source, job, dir string) (made Made, err error) {
	if _, err := os.Lstat(dir); err == nil {
		return Made{}, fmt.Errorf("export job %s to %s: the folder is there already; name another", job, dir)
	}
	if from.Head.Size == 0 {
		if from.Head, err = from.Log.Checkpoint(); err != nil {
			return Made{}, err
		}
	}
	place, err := find(ctx, from.Log, from.Head, job)
	if err != nil {
		return Made{}, err
	}
	draft, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".")
	if err != nil {
		return Made{}, fmt.Errorf("export job %s: %w", job, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(draft))
		}
	}()
	w := writer{ctx: ctx, log: from.Log, kept: from.Texts, stamp: from.Stamp, dir: draft, place: place}
	if err := w.all(); err != nil {
		return Made{}, fmt.Errorf("export job %s to %s: %w", place.Job, dir, err)
	}
	if err := os.Rename(draft, dir); err != nil {
		return Made{}, fmt.Errorf("export job %s: %w", place.Job, err)
	}
	made = w.made
	made.Job, made.Dir, made.Size, made.Leaves, made.Later = place.Job, dir, place.Checkpoint.Size, place.Leaves, w.later
	return made, nil
}

// writer fills one folder.
type writer struct {
	ctx   context.Context
	log   *tlog.Reader
	kept  Texts // nil for none
	stamp []byte
	dir   string
	place Place
	later int64
	made  Made
}

func (w *writer) all() error {
	if err := w.file(jobFile, []byte(w.place.Job+"\n")); err != nil {
		return err
	}
	if err := w.file(checkpointFile, w.place.Checkpoint.Note); err != nil {
		return err
	}
	if w.stamp != nil {
		if err := w.file(stampFile, w.stamp); err != nil {
			return err
		}
	}
	leaves := slices.Concat(w.place.Trust, w.place.Leaves)
	slices.Sort(leaves)
	for _, leaf := range slices.Compact(leaves) {
		if err := w.leaf(leaf); err != nil {
			return err
		}
	}
	if err := w.texts(); err != nil {
		return err
	}
	if err := w.state(); err != nil {
		return err
	}
	return w.rest()
}

// leaf writes the files of one event.
func (w *writer) leaf(leaf int64) error {
	_, entry, err := w.log.Entry(leaf)
	if err != nil {
		return err
	}
	rec, err := w.log.Record(leaf)
	if err != nil {
		return err
	}
	if err := w.leafFile(leaf, "entry", entry); err != nil {
		return err
	}
	if block := tlog.AppendHeaderBlock(nil, rec.Header); len(block) > 0 {
		if err := w.leafFile(leaf, "headers", block); err != nil {
			return err
		}
	}
	if err := w.leafFile(leaf, "payload", rec.Payload); err != nil {
		return err
	}
	return w.proof(leaf)
}

func (w *writer) proof(leaf int64) error {
	p, err := Prove(w.log, leaf, w.place.Checkpoint)
	if err != nil {
		return err
	}
	return w.leafFile(leaf, "tlog-proof", p.Text())
}

// rest writes what shows that nothing of the job came later.
func (w *writer) rest() error {
	last := w.place.Leaves[len(w.place.Leaves)-1]
	w.later = w.place.Checkpoint.Size - 1 - last
	if w.later == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(w.dir, laterFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	err = walk(w.ctx, w.log, last+1, w.place.Checkpoint.Size, func(_ int64, entry []byte) error {
		_, err := f.Write(entry)
		return err
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return w.proof(w.place.Checkpoint.Size - 1) // which may be there already
}

func (w *writer) leafFile(leaf int64, kind string, content []byte) error {
	return w.file(strconv.FormatInt(leaf, 10)+"."+kind, content)
}

func (w *writer) file(name string, content []byte) error {
	return os.WriteFile(filepath.Join(w.dir, name), content, 0o644)
}

// leafOf reads the name of a file about one leaf.
func leafOf(name string) (leaf int64, kind string, ok bool) {
	number, kind, ok := strings.Cut(name, ".")
	leaf, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || leaf < 0 || strconv.FormatInt(leaf, 10) != number {
		return 0, "", false
	}
	switch kind {
	case "entry", "headers", "payload", "tlog-proof", "directory":
		return leaf, kind, true
	}
	return 0, "", false
}
