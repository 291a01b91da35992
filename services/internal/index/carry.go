package index

import (
	bolt "go.etcd.io/bbolt"

	"github.com/banksman/banksman/events/lifecycle"
)

// Open shows every job that has not ended, and those that ended as lost, together with
// the position that the index had at that moment.
func (x *Index) Open(visit func(lifecycle.Job)) (at Position, err error) {
	q := Query{Status: []lifecycle.Status{lifecycle.Lost}}
	for _, s := range lifecycle.Statuses {
		if !s.Final() && s != lifecycle.None {
			q.Status = append(q.Status, s)
		}
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	err = x.view("list open jobs", func(tx *bolt.Tx) error {
		for w := newWalk(tx, q, 1<<64-1); ; {
			where, key := w.previous()
			if key == nil {
				break
			}
			j, err := decodeJob(tx.Bucket(bucketJobs).Get(place(where)))
			if err != nil {
				return err
			}
			visit(j)
		}
		at, err = readPosition(tx)
		return err
	})
	return at, err
}
