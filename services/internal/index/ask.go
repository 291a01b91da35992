package index

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/banksman/banksman/events/lifecycle"
)

// maxCandidates bounds how many ids an ErrAmbiguous names.
const maxCandidates = 8

// Get returns the job of exactly this id.
func (x *Index) Get(id string) (j lifecycle.Job, found bool, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	err = x.view("get "+id, func(tx *bolt.Tx) error {
		j, found, err = get(tx, id)
		return err
	})
	return j, found, err
}

func get(tx *bolt.Tx, id string) (lifecycle.Job, bool, error) {
	if id == "" {
		return lifecycle.Job{}, false, nil
	}
	at := tx.Bucket(bucketIDs).Get([]byte(id))
	if at == nil {
		return lifecycle.Job{}, false, nil
	}
	j, err := decodeJob(tx.Bucket(bucketJobs).Get(at))
	if err == nil && j.ID != id {
		err = damaged("job "+id, "its place holds "+j.ID)
	}
	return j, err == nil, err
}

// Job returns the job that has this id, or whose id alone begins like it. The error
// is ErrUnknown or *ErrAmbiguous.
func (x *Index) Job(idOrPrefix string) (j lifecycle.Job, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	err = x.view("find "+idOrPrefix, func(tx *bolt.Tx) error {
		var found bool
		if j, found, err = get(tx, idOrPrefix); found || err != nil {
			return err
		}
		var ids []string
		c := tx.Bucket(bucketIDs).Cursor()
		prefix := []byte(idOrPrefix)
		for k, _ := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix) && len(ids) <= maxCandidates; k, _ = c.Next() {
			ids = append(ids, string(k))
		}
		switch {
		case len(ids) == 0 || idOrPrefix == "":
			return fmt.Errorf("job %q: %w", idOrPrefix, ErrUnknown)
		case len(ids) > 1:
			more := len(ids) > maxCandidates
			return &ErrAmbiguous{Prefix: idOrPrefix, Candidates: ids[:min(len(ids), maxCandidates)], More: more}
		}
		j, _, err = get(tx, ids[0])
		return err
	})
	return j, err
}

// Query chooses jobs. The zero Query is all jobs that were proposed.
type Query struct {
	Status   []lifecycle.Status // none means every one
	Pool     string             // empty means every one
	Proposer string             // as in "agent:local"; empty means every one
	Limit    int                // at most so many, newest first; 0 means none
	Before   string             // a job's id: only jobs that are older; empty means from the newest
}

// among says whether a job of the query's proposer is one of the others' choice, too.
func (q Query) among(j lifecycle.Job) bool {
	return (q.Pool == "" || j.Pool == q.Pool) && (len(q.Status) == 0 || slices.Contains(q.Status, j.Status))
}

// List returns jobs, newest first, and whether there are more of them.
func (x *Index) List(q Query) (jobs []lifecycle.Job, more bool, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	err = x.view("list", func(tx *bolt.Tx) error {
		before := uint64(1<<64 - 1)
		if q.Before != "" {
			var known bool
			if before, known = placeOf(tx.Bucket(bucketIDs).Get([]byte(q.Before))); !known {
				return fmt.Errorf("list jobs older than %q: %w", q.Before, ErrUnknown)
			}
		}
		w := newWalk(tx, q, before)
		for {
			at, key := w.previous()
			if key == nil {
				return nil
			}
			if q.Proposer == "" && len(jobs) >= q.Limit {
				more = true
				return nil
			}
			j, err := decodeJob(tx.Bucket(bucketJobs).Get(place(at)))
			if err != nil {
				return err
			}
			if q.Proposer != "" && !q.among(j) {
				continue
			}
			if len(jobs) >= q.Limit {
				more = true
				return nil
			}
			jobs = append(jobs, j)
		}
	})
	if err != nil {
		return nil, false, err
	}
	return jobs, more, nil
}

// walk goes through several key ranges at once, from their ends.
type walk struct{ ranges []*keyRange }

type keyRange struct {
	prefix []byte
	cursor *bolt.Cursor
	key    []byte // nil at the end
}

// newWalk goes through what status and pool choose, or through all jobs of one
// proposer, of which there are few enough to look at each.
func newWalk(tx *bolt.Tx, q Query, before uint64) *walk {
	if q.Proposer != "" {
		r := &keyRange{prefix: fromPrefix(q.Proposer), cursor: tx.Bucket(bucketFrom).Cursor()}
		r.seekBefore(before)
		return &walk{ranges: []*keyRange{r}}
	}
	statuses := q.Status
	if len(statuses) == 0 {
		statuses = lifecycle.Statuses[1:]
	}
	w := &walk{}
	for _, s := range statuses {
		r := &keyRange{prefix: statusPrefix(s), cursor: tx.Bucket(bucketStatus).Cursor()}
		if q.Pool != "" {
			r.prefix, r.cursor = poolPrefix(q.Pool, s), tx.Bucket(bucketPool).Cursor()
		}
		r.seekBefore(before)
		w.ranges = append(w.ranges, r)
	}
	return w
}

// seekBefore goes to the last key of the range whose place is smaller.
func (r *keyRange) seekBefore(before uint64) {
	k, _ := r.cursor.Seek(append(bytes.Clone(r.prefix), place(before)...))
	if k == nil {
		k, _ = r.cursor.Last()
	} else {
		k, _ = r.cursor.Prev()
	}
	r.take(k)
}

func (r *keyRange) take(k []byte) {
	r.key = nil
	if len(k) == len(r.prefix)+8 && bytes.HasPrefix(k, r.prefix) {
		r.key = k
	}
}

// previous returns the greatest place of all ranges and moves past it.
func (w *walk) previous() (at uint64, key []byte) {
	var best *keyRange
	for _, r := range w.ranges {
		if r.key == nil {
			continue
		}
		if p, _ := placeOf(r.key); best == nil || p > at {
			best, at = r, p
		}
	}
	if best == nil {
		return 0, nil
	}
	key = best.key
	k, _ := best.cursor.Prev()
	best.take(k)
	return at, key
}

// Ready lists the ids of jobs of a pool that a worker may start at a moment of stream
// time and whose approvals are sealed, oldest first.
func (x *Index) Ready(pool string, limit int, now time.Time, sealedThrough uint64) (ids []string, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	err = x.view("ready "+pool, func(tx *bolt.Tx) error {
		for _, s := range []lifecycle.Status{lifecycle.RetryWait, lifecycle.Approved} {
			c := tx.Bucket(bucketPool).Cursor()
			prefix := poolPrefix(pool, s)
			for k, _ := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix) && len(ids) < limit; k, _ = c.Next() {
				at, _ := placeOf(k)
				j, err := decodeJob(tx.Bucket(bucketJobs).Get(place(at)))
				if err != nil {
					return err
				}
				if j.Ready(now) && j.LastApproval() <= sealedThrough {
					ids = append(ids, j.ID)
				}
			}
		}
		return nil
	})
	return ids, err
}

// Counts says how many jobs stand where.
func (x *Index) Counts() (map[lifecycle.Status]int64, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := map[lifecycle.Status]int64{}
	err := x.view("count", func(tx *bolt.Tx) error {
		for _, s := range lifecycle.Statuses {
			n, err := readCount(tx.Bucket(bucketCounts), s)
			if err != nil {
				return err
			}
			if n > 0 {
				out[s] = n
			}
		}
		return nil
	})
	return out, err
}

// Fact returns one of the caller's values.
func (x *Index) Fact(key string) (value []byte, found bool, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	err = x.view("fact "+key, func(tx *bolt.Tx) error {
		v := tx.Bucket(bucketFacts).Get([]byte(key))
		if v == nil {
			return nil
		}
		body, err := checked(v)
		if err != nil {
			return damaged("fact "+key, err)
		}
		value, found = bytes.Clone(body), true
		return nil
	})
	return value, found, err
}

// Facts shows the caller's values whose keys begin with prefix, in order. The value
// lives until visit returns.
func (x *Index) Facts(prefix string, visit func(key string, value []byte) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.view("facts "+prefix, func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketFacts).Cursor()
		for k, v := c.Seek([]byte(prefix)); k != nil && strings.HasPrefix(string(k), prefix); k, v = c.Next() {
			body, err := checked(v)
			if err != nil {
				return damaged("fact "+string(k), err)
			}
			if err := visit(string(k), body); err != nil {
				return err
			}
		}
		return nil
	})
}
