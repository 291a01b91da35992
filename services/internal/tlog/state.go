package tlog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"
)

// A state stands at fixed leaf counts: every leaf whose number is a multiple of
// stateStep, and from stateStep*stateShare*2 leaves on of the largest power of two that
// is at most a quarter of the number. A state costs a look at every job, up to 1 us each;
// since the steps grow with the log, that is a look at less than seven jobs per event
// however long the log is, and at one with seven events to a job. Nobody is further from
// a state than a quarter of the log.
const (
	stateStep  = 1024
	stateShare = 4
)

// StateAt says whether a leaf of this number is a state. Nothing else enters: no clock,
// no batch and no restart, so that two logs of one stream have the same ones.
func StateAt(leaf int64) bool {
	if leaf <= 0 {
		return false
	}
	step := int64(1) << (bits.Len64(uint64(leaf)) - 1) / stateShare
	return leaf%max(stateStep, step) == 0
}

// compare looks at eight bytes first, which tell most keys apart.
func (k jobKey) compare(other jobKey) int {
	if c := cmp.Compare(binary.BigEndian.Uint64(k[:]), binary.BigEndian.Uint64(other[:])); c != 0 {
		return c
	}
	return bytes.Compare(k[8:], other[8:])
}

// jobAt is one line of a directory.
type jobAt struct {
	key  jobKey
	last int64
}

// appendLine appends the line that is hashed for a job.
func (j jobAt) appendLine(b []byte) []byte {
	b = hex.AppendEncode(append(b, "job "...), j.key[:])
	return append(strconv.AppendInt(append(b, " last "...), j.last, 10), '\n')
}

// Directory says for each job of a log where its newest event lies, in the order of the
// jobs' digests. A line is
//
//	job <first 16 bytes of SHA-256(job), hex> last <leaf>
//
// and LF. How many events a job has is not in it: the newest one leads to all others by
// their links, under the same head. Nor is the job's status, which this package does not
// know. Jobs are named by digests since that is what the job table holds, and so that
// the proof of one says nothing about its neighbours.
type Directory struct{ jobs []jobAt }

func directoryOf(last map[jobKey]int64) *Directory {
	d := &Directory{jobs: make([]jobAt, 0, len(last))}
	for key, leaf := range last {
		d.jobs = append(d.jobs, jobAt{key, leaf})
	}
	d.sort()
	return d
}

// Directory makes the directory that the state at a leaf is about, from the entries
// before it.
func (r *Reader) Directory(ctx context.Context, leaf int64) (*Directory, error) {
	last := map[jobKey]int64{}
	err := r.Entries(1, leaf, func(leaf int64, e Entry) error {
		if e.Job != "" {
			last[keyOf(e.Job)] = leaf
		}
		return ctx.Err()
	})
	return directoryOf(last), err
}

func (d *Directory) sort() {
	slices.SortFunc(d.jobs, func(a, b jobAt) int { return a.key.compare(b.key) })
}

// Jobs returns how many jobs there are.
func (d *Directory) Jobs() int64 { return int64(len(d.jobs)) }

// Root returns the RFC 6962 tree hash of the lines.
func (d *Directory) Root() Hash { return rootOf(d.jobs) }

func rootOf(jobs []jobAt) Hash {
	var tree frontier
	var line, scratch, stored []byte
	var leaf Hash
	for _, j := range jobs {
		line = j.appendLine(line[:0])
		leaf, scratch = leafHash(line, scratch)
		stored = tree.append(leaf, stored[:0])
	}
	return tree.root()
}

// Listed is one line of a directory with the proof that it is in it.
type Listed struct {
	Last  int64 // leaf of the job's newest event
	Index int64 // of the line
	Path  tlog.RecordProof
}

// Prove returns the line of a job.
func (d *Directory) Prove(job string) (Listed, error) {
	key := keyOf(job)
	at, found := slices.BinarySearchFunc(d.jobs, key, func(j jobAt, key jobKey) int { return j.key.compare(key) })
	if !found {
		return Listed{}, fmt.Errorf("prove job %s in a directory of %d: %w", job, len(d.jobs), ErrRange)
	}
	return Listed{Last: d.jobs[at].last, Index: int64(at), Path: pathTo(d.jobs, at)}, nil
}

// pathTo is the RFC 6962 path of one of the lines.
func pathTo(jobs []jobAt, at int) tlog.RecordProof {
	if len(jobs) == 1 {
		return nil
	}
	half := 1 << (bits.Len(uint(len(jobs)-1)) - 1) // the largest power of two below
	in, beside := jobs[:half], jobs[half:]
	if at >= half {
		in, beside, at = beside, in, at-half
	}
	return append(pathTo(in, at), rootOf(beside))
}

// Line is the line of a job whose newest event is at Last.
func (p *Listed) Line(job string) []byte { return jobAt{keyOf(job), p.Last}.appendLine(nil) }

// Check says whether the directory of a state has the line of the job.
func (p *Listed) Check(job string, state *Entry) error {
	switch {
	case state.Kind != KindState:
		return fmt.Errorf("a %s holds no directory", state.Kind)
	case p.Index < 0 || p.Index >= state.Jobs:
		return fmt.Errorf("line %d of a directory of %d jobs", p.Index, state.Jobs)
	}
	err := tlog.CheckRecord(p.Path, state.Jobs, tlog.Hash(state.Root), p.Index, tlog.RecordHash(p.Line(job)))
	if err != nil {
		return fmt.Errorf("the directory of %d leaves does not lead to leaf %d for job %s", state.Size, p.Last, job)
	}
	return nil
}

// stateOf is what the entry at a leaf says that stands for a state.
func stateOf(leaf int64, prev Hash, seq uint64, d *Directory) Entry {
	return Entry{Kind: KindState, Prev: prev, Size: leaf, Seq: seq, Jobs: d.Jobs(), Root: d.Root()}
}

// sameState compares what a state says about the jobs with their directory.
func sameState(e *Entry, d *Directory) error {
	if root := d.Root(); e.Jobs != d.Jobs() || e.Root != root {
		return fmt.Errorf("it says %d jobs with root %x, the leaves before it make %d with %x", e.Jobs, e.Root, d.Jobs(), root)
	}
	return nil
}

// addState adds the state that is due before the next event, if one is. It is durable
// with that event; a crash, or an event that no entry can express, may leave it alone at
// the end, and the next event follows then.
func (l *Log) addState() error {
	if !StateAt(l.size) {
		return nil
	}
	d, err := l.jobs.directory()
	if err != nil {
		l.err = errors.Join(err, l.jobs.discard())
		return l.err
	}
	e := stateOf(l.size, l.prev, l.leafSeq, d)
	if err := l.add(&e); err != nil {
		return err
	}
	return l.appended()
}

// directory lists the jobs as of the leaf that comes next. What is pending is newer than
// what lies in the file.
func (t *jobTable) directory() (*Directory, error) {
	d := &Directory{jobs: make([]jobAt, 0, t.count+int64(len(t.rebuilt)+len(t.pending)))}
	note := func(key jobKey, leaf int64) {
		if _, newer := t.pending[key]; !newer {
			d.jobs = append(d.jobs, jobAt{key, leaf})
		}
	}
	if t.rebuilt != nil {
		for key, leaf := range t.rebuilt {
			note(key, leaf)
		}
	} else if err := t.each(note); err != nil {
		return nil, err
	}
	for key, leaf := range t.pending {
		d.jobs = append(d.jobs, jobAt{key, leaf})
	}
	d.sort()
	return d, nil
}
