package auditor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/index"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// streamName is the audited stream, as the genesis names it.
const streamName = "BANKSMAN"

// openLog opens the log of an epoch, or creates that of the first from the first event
// of the stream. The genesis is a function of that event, so that every auditor of the
// stream starts alike.
func (a *auditor) openLog(ctx context.Context, env *host.Env) (*tlog.Log, error) {
	origin, epoch := env.Site.Origin, a.epoch
	signer, also := a.keyring.all()
	dir, lock, settle, err := a.logPlace(ctx, env, epoch)
	if err != nil {
		return nil, err
	}
	log, err := tlog.Open(dir, signer, lock, also...)
	if err == nil {
		if want := site.CheckpointOriginOf(origin, epoch); log.Origin() != want {
			return nil, errors.Join(fault(faultLog, "the log is of %q, the site of %q", log.Origin(), want), log.Close())
		}
		if err := settle(); err != nil {
			return nil, errors.Join(err, log.Close())
		}
		return log, nil
	}
	if !errors.Is(err, tlog.ErrNoHead) || epoch > events.FirstEpoch {
		return nil, logFault(err)
	}
	first, err := firstEvent(ctx, a.stream)
	if err != nil {
		return nil, err
	}
	log, err = tlog.Create(dir, tlog.Genesis{
		Origin: site.CheckpointOriginOf(origin, epoch), Stream: streamName,
		Created: first.Time, Config: sha256.Sum256(first.Data),
	}, signer, lock, also...)
	return log, logFault(err)
}

// logPlace makes room for the log of an epoch and says where its head is kept. Settle is
// called once the log was opened and is what its head says.
func (a *auditor) logPlace(ctx context.Context, env *host.Env, epoch int) (dir string, lock tlog.Lock, settle func() error, err error) {
	dir, head := env.Layout.AuditLogOf(epoch), filepath.Dir(env.Layout.AuditHeadOf(epoch))
	lock, settle = tlog.FileLock(head), func() error { return nil }
	if a.config.KeepsElsewhere() {
		a.heads = newHeadLock(ctx, env, site.CheckpointOriginOf(env.Site.Origin, epoch), lock)
		lock, settle = a.heads, a.heads.follow
	}
	return dir, lock, settle, errors.Join(keys.MakePrivateDir(head), keys.MakePrivateDir(filepath.Dir(dir)))
}

// logFault tells damage from a disk that does not work.
func logFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tlog.ErrRollback):
		return fault(faultRollback, "%v", err)
	case errors.Is(err, tlog.ErrFork), errors.Is(err, tlog.ErrCorrupt), errors.Is(err, tlog.ErrMalformed),
		errors.Is(err, fs.ErrExist), errors.Is(err, tlog.ErrLockMoved):
		return fault(faultLog, "%v", err)
	}
	return err
}

// firstEvent waits for the first event of the stream.
func firstEvent(ctx context.Context, stream Stream) (first events.Stored, err error) {
	got := errors.New("got it")
	err = stream.Follow(ctx, 1, everything, func(st events.Stored) error {
		first = st
		return got
	})
	switch {
	case ctx.Err() != nil:
		return first, ctx.Err()
	case !errors.Is(err, got):
		return first, fmt.Errorf("read the first event: %w", err)
	case first.Seq != 1:
		return first, fault(faultStream, "it begins at sequence %d", first.Seq)
	}
	return first, nil
}

// openIndex opens the index and empties it unless it is a prefix of the logs.
func (a *auditor) openIndex(path string) (*index.Index, string, error) {
	x, err := index.Open(path)
	if err != nil {
		return nil, "", err
	}
	why := x.Anew()
	if p, err := x.Position(); why == "" && (err != nil || !a.isPrefix(p)) {
		why = "it does not belong to the log"
		if err := x.Reset(); err != nil {
			return nil, "", errors.Join(err, x.Close())
		}
	}
	return x, why, nil
}

func (a *auditor) isPrefix(p index.Position) bool {
	if p.Leaves == 0 {
		return p == index.Position{}
	}
	r, sealed, err := a.logOf(p.Epoch)
	if err != nil || p.Leaves > sealed {
		return false
	}
	defer a.letGo(r)
	at, err := positionAt(r, p.Leaves)
	return err == nil && at == p
}

// positionAt is the position after so many leaves of the log.
func positionAt(r *tlog.Reader, leaves int64) (index.Position, error) {
	_, raw, err := r.Entry(leaves - 1)
	if err != nil {
		return index.Position{}, err
	}
	through, err := r.Covers(leaves)
	if err != nil {
		return index.Position{}, err
	}
	return index.Position{Epoch: epochOf(r), Through: through, Leaves: leaves, Last: sha256.Sum256(raw)}, nil
}

// resume brings book and ledger to the end of the log: trust files that the index has
// seen, then every leaf that it has not. Sealed leaves are committed on the way.
func (a *auditor) resume(ctx context.Context) error {
	return a.resumeTo(ctx, a.log.SealedSize(), a.log.Size())
}

// resumeTo is resume for a log of so many leaves, so many of them sealed.
func (a *auditor) resumeTo(ctx context.Context, sealed, size int64) error {
	pos, err := a.index.Position()
	if err != nil {
		return err
	}
	epoch := max(pos.Epoch, events.FirstEpoch)
	log, _, err := a.logOf(epoch)
	if err != nil {
		return err
	}
	defer a.letGo(log)
	err = a.index.Facts(factTrust, func(key string, value []byte) error {
		var leaf int64
		if _, err := fmt.Sscanf(string(value), "%d", &leaf); err != nil {
			return fmt.Errorf("%w: fact %s", index.ErrDamaged, key)
		}
		rec, err := log.Record(leaf)
		if err != nil {
			return err
		}
		_, err = a.ledger.book.Open(storedOf(rec))
		return err
	})
	if err != nil {
		return fmt.Errorf("read trust files from the log: %w", err)
	}
	for ; epoch < a.epoch; epoch++ {
		if pos.Leaves, err = a.resumeOld(ctx, epoch, pos.Leaves); err != nil {
			return err
		}
	}
	err = a.resumeFrom(ctx, a.reader, pos.Leaves, sealed, size)
	a.ledger.news() // what it found then may have been said since; unsaid tells
	return err
}

// resumeFrom folds the leaves of a log from one on.
func (a *auditor) resumeFrom(ctx context.Context, log *tlog.Reader, from, sealed, size int64) error {
	a.ledger.epoch, a.ledger.opening = epochOf(log), log.Through()+1
	for leaf := from; leaf < size; leaf++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := a.replay(log, leaf); err != nil {
			return err
		}
		if leaf+1 == sealed || (leaf+1 < sealed && (leaf+1-from)%replayBatch == 0) {
			to, err := positionAt(log, leaf+1)
			if err == nil {
				_, err = a.ledger.commit(to)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// replayBatch is how many leaves one transaction takes in while the index is made anew.
const replayBatch = 2000

// replay folds one leaf that is in the log already.
func (a *auditor) replay(log *tlog.Reader, leaf int64) error {
	e, _, err := log.Entry(leaf)
	if err != nil {
		return err
	}
	switch e.Kind {
	case tlog.KindGap:
		return a.ledger.gap(e.From, e.To)
	case tlog.KindEvent:
		rec, err := log.Record(leaf)
		if err != nil {
			return logFault(err)
		}
		return a.ledger.take(storedOf(rec), leaf)
	}
	return nil
}

// checkResume fetches the last sealed event and every later one that the log holds
// again, and compares them byte for byte: a stream that was rolled back and written
// anew is found here.
func (a *auditor) checkResume(ctx context.Context) error {
	covered := a.log.LastSeq()
	if err := a.reaches(ctx, covered); err != nil {
		return err
	}
	if covered > 0 { // the first event stands for the time before the last ones
		if err := a.compare(ctx, 1, 1); err != nil {
			return err
		}
	}
	from := a.log.SealedSize() - 1
	for ; from > 0; from-- {
		if e, _, err := a.reader.Entry(from); err != nil {
			return err
		} else if e.Kind == tlog.KindEvent {
			break
		}
	}
	for leaf := from; leaf < a.log.Size(); leaf++ {
		e, _, err := a.reader.Entry(leaf)
		if err != nil {
			return err
		}
		if e.Kind != tlog.KindEvent {
			continue
		}
		if err := a.compare(ctx, leaf, e.Seq); err != nil {
			return err
		}
	}
	return nil
}

// reaches wants the stream to go as far as the log. A stream that was emptied has no
// last event, but still says how far it went.
func (a *auditor) reaches(ctx context.Context, covered uint64) error {
	last, err := a.stream.LastSeq(ctx)
	if err != nil || last >= covered {
		return err
	}
	now, err := a.stream.StreamState(ctx)
	if err != nil || now.Last >= covered {
		return err
	}
	return a.blame(ctx, fault(faultRollback, "the stream ends at sequence %d, the log covers %d", last, covered))
}

// compare fetches an event again and compares it with its leaf. One that is not there
// any more, in a stream that goes further, is lost: the watcher counts those.
func (a *auditor) compare(ctx context.Context, leaf int64, seq uint64) error {
	page, err := a.stream.Read(ctx, seq, everything, 1)
	if err != nil {
		return err
	}
	if len(page) == 0 || page[0].Seq != seq {
		return a.reaches(ctx, seq)
	}
	err = a.sameAs(leaf, page[0])
	var f *Fault
	if errors.As(err, &f) {
		return a.blame(ctx, f)
	}
	return err
}

// blame says of a stream that is not the audited one whether it was made anew.
func (a *auditor) blame(ctx context.Context, f *Fault) error {
	now, err := a.stream.StreamState(ctx)
	if err != nil {
		return err
	}
	if made := a.recreated(now); made != nil {
		made.Detail += ": " + f.Detail
		return made
	}
	return f
}

// recreated is the fault of a stream that is younger than its first event, nil if it is
// not: of use only where something is wrong, since clocks may have been set back.
func (a *auditor) recreated(now bus.State) *Fault {
	genesis, _, err := a.reader.Entry(0)
	if err != nil || !now.Created.After(genesis.Created) || a.epoch > events.FirstEpoch { // each epoch has a stream of its own
		return nil
	}
	return fault(faultRecreated, "the stream was made at %s, the audited one held its first event at %s", stamp(now.Created), stamp(genesis.Created))
}

// sameAs compares a message with the leaf that stands for it.
func (a *auditor) sameAs(leaf int64, st events.Stored) error {
	err := a.log.Matches(leaf, recordOf(st), metaOf(st))
	if errors.Is(err, tlog.ErrDiffers) {
		return fault(faultFork, "sequence %d of the stream is not the event that was audited", st.Seq)
	}
	return err
}

// leafOf finds the leaf of a sequence that the log covers.
func (a *auditor) leafOf(seq uint64) (int64, error) {
	failed := logFault(a.log.Flush()) // the sequence may have been read a moment ago
	n := sort.Search(int(a.log.Size()), func(i int) bool {
		e, _, err := a.reader.Entry(int64(i))
		if err != nil {
			failed = err
			return true
		}
		last, _ := e.LastSeq()
		return last >= seq
	})
	return int64(n), failed
}
