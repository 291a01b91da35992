package auditor

import (
	"runtime"
	"slices"
	"sync"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/trust"
)

const (
	// aheadLeaves and aheadBytes bound what is read ahead of what is judged.
	aheadLeaves = 512
	aheadBytes  = 4 << 20
)

// ahead collects leaves, reads their messages and checks their signatures on every
// processor, and then has them judged in order. Checking a signature costs more than
// everything else that a verification does.
type ahead struct {
	v      *verifier
	leaves []leafAhead
	bytes  int
}

type leafAhead struct {
	leaf  int64
	entry tlog.Entry
	rec   *readRecord
}

// readRecord is the message of a leaf.
type readRecord struct {
	st   events.Stored
	read trust.Read
}

// take is what tlog.Verify calls.
func (a *ahead) take(leaf int64, e tlog.Entry, rec *tlog.Record) error {
	next := leafAhead{leaf: leaf, entry: e}
	if rec != nil {
		next.rec = &readRecord{st: storedOf(*rec)}
		next.rec.st.Data = slices.Clone(next.rec.st.Data) // its memory ends with the visit
		a.bytes += len(next.rec.st.Data)
	}
	a.leaves = append(a.leaves, next)
	if len(a.leaves) >= aheadLeaves || a.bytes >= aheadBytes {
		a.work()
	}
	return nil
}

// work reads and judges what was collected.
func (a *ahead) work() {
	if len(a.leaves) == 0 {
		return
	}
	workers := min(runtime.GOMAXPROCS(0), len(a.leaves))
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < len(a.leaves); i += workers {
				if rec := a.leaves[i].rec; rec != nil {
					rec.read = a.v.book.Read(rec.st)
				}
			}
		})
	}
	group.Wait()
	for _, l := range a.leaves {
		a.v.visit(l.leaf, l.entry, l.rec)
	}
	if tell := a.v.options.Progress; tell != nil {
		tell(a.v.next, max(a.v.head(), a.v.next))
	}
	clear(a.leaves)
	a.leaves, a.bytes = a.leaves[:0], 0
}
