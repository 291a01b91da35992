package index

import (
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/banksman/banksman/events/lifecycle"
)

// Batch is what one sealed stretch of the log changed.
type Batch struct {
	// Jobs are the jobs as they are after it, each at most once.
	Jobs []lifecycle.Job
	// Facts are small values that the caller keeps beside the jobs; nil removes one.
	Facts map[string][]byte
	// To is where the batch leads to.
	To Position
}

// Apply commits a batch, all of it or nothing.
func (x *Index) Apply(b Batch) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	err := x.update("apply", func(tx *bolt.Tx) error {
		at, err := readPosition(tx)
		if err != nil {
			return err
		}
		if b.To.Epoch < at.Epoch || b.To.Through < at.Through || b.To.Epoch == at.Epoch && b.To.Leaves < at.Leaves {
			return fmt.Errorf("%w: it is at %d (%d leaves), the batch leads to %d (%d leaves)",
				ErrOrder, at.Through, at.Leaves, b.To.Through, b.To.Leaves)
		}
		moved := map[lifecycle.Status]int64{}
		for _, j := range b.Jobs {
			if err := putJob(tx, j, moved); err != nil {
				return err
			}
		}
		if err := putCounts(tx, moved); err != nil {
			return err
		}
		if err := putFacts(tx, b.Facts); err != nil {
			return err
		}
		return writePosition(tx, b.To)
	})
	if err != nil {
		return fmt.Errorf("commit to the job index through %d: %w", b.To.Through, err)
	}
	return nil
}

// putJob stores a job and moves its keys.
func putJob(tx *bolt.Tx, j lifecycle.Job, moved map[lifecycle.Status]int64) error {
	ids, jobs := tx.Bucket(bucketIDs), tx.Bucket(bucketJobs)
	at := ids.Get([]byte(j.ID))
	if at == nil {
		first := j.ProposedSeq
		if first == 0 {
			first = j.LastSeq
		}
		at = place(first)
		if err := ids.Put([]byte(j.ID), at); err != nil {
			return err
		}
		if j.Proposal != nil {
			if err := tx.Bucket(bucketFrom).Put(append(fromPrefix(j.Proposal.Proposer.String()), at...), []byte(j.ID)); err != nil {
				return err
			}
		}
	} else {
		at = append([]byte(nil), at...) // a Put may move what Get returned
		before, err := decodeJob(jobs.Get(at))
		if err != nil {
			return err
		}
		if err := dropKeys(tx, before, at, j); err != nil {
			return err
		}
		moved[before.Status]--
	}
	moved[j.Status]++
	value, err := encodeJob(j)
	if err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	if err := jobs.Put(at, value); err != nil {
		return err
	}
	if err := tx.Bucket(bucketStatus).Put(append(statusPrefix(j.Status), at...), []byte(j.ID)); err != nil {
		return err
	}
	return tx.Bucket(bucketPool).Put(append(poolPrefix(j.Pool, j.Status), at...), []byte(j.ID))
}

// dropKeys removes the keys of a job's last state, if they are to change.
func dropKeys(tx *bolt.Tx, before lifecycle.Job, at []byte, after lifecycle.Job) error {
	if before.Status == after.Status && before.Pool == after.Pool {
		return nil
	}
	if err := tx.Bucket(bucketStatus).Delete(append(statusPrefix(before.Status), at...)); err != nil {
		return err
	}
	return tx.Bucket(bucketPool).Delete(append(poolPrefix(before.Pool, before.Status), at...))
}

func putCounts(tx *bolt.Tx, moved map[lifecycle.Status]int64) error {
	counts := tx.Bucket(bucketCounts)
	for s, by := range moved {
		if by == 0 {
			continue
		}
		n, err := readCount(counts, s)
		if err != nil {
			return err
		}
		if n+by < 0 {
			return damaged("count of "+string(s), n)
		}
		if err := counts.Put(countKey(s), withSum(binary.BigEndian.AppendUint64(nil, uint64(n+by)))); err != nil {
			return err
		}
	}
	return nil
}

// countKey is never empty: the database has no empty keys.
func countKey(s lifecycle.Status) []byte { return append([]byte("n"), s...) }

func readCount(counts *bolt.Bucket, s lifecycle.Status) (int64, error) {
	v := counts.Get(countKey(s))
	if v == nil {
		return 0, nil
	}
	body, err := checked(v)
	if err != nil || len(body) != 8 {
		return 0, damaged("count of "+string(s), err)
	}
	return int64(binary.BigEndian.Uint64(body)), nil
}

func putFacts(tx *bolt.Tx, facts map[string][]byte) error {
	b := tx.Bucket(bucketFacts)
	for k, v := range facts {
		var err error
		if v == nil {
			err = b.Delete([]byte(k))
		} else {
			err = b.Put([]byte(k), withSum(v))
		}
		if err != nil {
			return fmt.Errorf("fact %q: %w", k, err)
		}
	}
	return nil
}
