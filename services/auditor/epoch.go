package auditor

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// epochEnds says that the next event of the stream opens another epoch. Everything
// before it is in the log of the epoch that ends, sealed.
type epochEnds struct {
	st   events.Stored
	open *events.EpochOpened
}

func (e *epochEnds) Error() string {
	return fmt.Sprintf("event %d opens %s", e.st.Seq, events.EpochID(e.open.Epoch))
}

// opensEpoch returns a *epochEnds for an event that opens the next epoch. Whether one
// does is a function of the stored events, so that every auditor goes on at the same
// place; one that does not is an event like others, and a violation.
func (a *auditor) opensEpoch(st events.Stored) error {
	if !strings.HasPrefix(st.Subject, events.PrefixStored+".epoch.") {
		return nil
	}
	e, err := a.ledger.book.Open(st)
	p, ok := e.Payload.(*events.EpochOpened)
	if err != nil || !ok || p.Follows(e, a.epoch) != nil {
		return nil
	}
	if _, err := a.seal(); err != nil {
		return err
	}
	if namesHead(p, a.reader, a.log.SealedSize()) != nil {
		return nil
	}
	return &epochEnds{st: st, open: p}
}

// namesHead says what is wrong with the head that an event names as one of the log
// before, or nil.
func namesHead(p *events.EpochOpened, log *tlog.Reader, sealed int64) error {
	g, err := log.Genesis()
	if err != nil {
		return err
	}
	if p.Origin != g.Origin || p.Size < 1 || p.Size > sealed {
		return fmt.Errorf("it names a head of %d leaves of %q, the log before is %q and has %d", p.Size, p.Origin, g.Origin, sealed)
	}
	root, err := log.TreeHash(p.Size)
	if err != nil {
		return err
	}
	through, err := log.Covers(p.Size)
	if err != nil {
		return err
	}
	if base64.StdEncoding.EncodeToString(root[:]) != p.Root || through != p.Through {
		return fmt.Errorf("it names another head of %d leaves than the log before has", p.Size)
	}
	return nil
}

// epochOf is the epoch whose log a reader reads.
func epochOf(r *tlog.Reader) int {
	g, err := r.Genesis()
	if err != nil {
		return 0
	}
	n, _ := events.ParseEpoch(lastWord(g.Origin))
	return n
}

// lastWord is the epoch in the origin of a log.
func lastWord(origin string) string { return origin[strings.LastIndexByte(origin, '/')+1:] }

// logOf opens the log of an epoch, up to this one, and says how much of it is sealed.
func (a *auditor) logOf(epoch int) (r *tlog.Reader, sealed int64, err error) {
	switch {
	case epoch == a.epoch:
		return a.reader, a.log.SealedSize(), nil
	case epoch < events.FirstEpoch || epoch > a.epoch:
		return nil, 0, fmt.Errorf("there is no epoch %d", epoch)
	}
	if r, err = tlog.OpenReader(a.layout.AuditLogOf(epoch)); err != nil {
		return nil, 0, err
	}
	head, err := r.Checkpoint()
	if err != nil {
		return nil, 0, errors.Join(err, r.Close())
	}
	return r, head.Size, nil
}

// letGo closes what logOf opened.
func (a *auditor) letGo(r *tlog.Reader) {
	if r != a.reader {
		_ = r.Close() // it was only read
	}
}

// continueLog makes the log of the epoch that begins: a genesis that names the last head
// of the log that ends, and everything that is carried. A process that is killed here
// finds the same event next in the stream and does the same again; the new log counts
// from the moment on when its head is written.
func (a *auditor) continueLog(ctx context.Context, env *host.Env, end *epochEnds) error {
	epoch := end.open.Epoch
	dir, lock, settle, err := a.logPlace(ctx, env, epoch)
	if err != nil {
		return err
	}
	old, err := tlog.OpenReader(env.Layout.AuditLogOf(epoch - 1))
	if err != nil {
		return err
	}
	defer old.Close()
	head, err := old.Checkpoint()
	if err != nil {
		return err
	}
	g, err := old.Genesis()
	if err != nil {
		return err
	}
	signer, also := a.keyring.all()
	log, err := tlog.Open(dir, signer, lock, also...)
	if errors.Is(err, tlog.ErrNoHead) {
		log, err = tlog.Continue(dir, tlog.Genesis{
			Origin: site.CheckpointOriginOf(env.Site.Origin, epoch), Stream: g.Stream,
			Created: end.st.Time, Config: sha256.Sum256(end.st.Data),
			Old: tlog.Before{Origin: g.Origin, Size: head.Size, Root: head.Root, Through: end.st.Seq - 1, Why: end.open.Why},
		}, carry(ctx, old, head.Size, end.open), signer, lock, also...)
	}
	if err != nil {
		return logFault(err)
	}
	if err := settle(); err != nil {
		return errors.Join(err, log.Close())
	}
	env.Log.Info("a new epoch begins", "epoch", epoch, "why", end.open.Why, "through", end.st.Seq-1, "leaves", log.Size())
	if err := log.Close(); err != nil {
		return err
	}
	return end
}

// carry hands over what goes along into the epoch, in order.
func carry(ctx context.Context, old *tlog.Reader, size int64, open *events.EpochOpened) tlog.Carry {
	carried := open.Carries()
	return func(add func(tlog.Record, tlog.Meta) error) error {
		return old.Entries(1, size, func(leaf int64, e tlog.Entry) error {
			if e.Kind != tlog.KindEvent || !carried(e.Seq, e.Subject) {
				return ctx.Err()
			}
			rec, err := old.Record(leaf)
			if err != nil {
				return err
			}
			return add(rec, metaOf(storedOf(rec)))
		})
	}
}

// resumeOld folds the rest of the log of an epoch that has ended, and goes over to the
// next one.
func (a *auditor) resumeOld(ctx context.Context, epoch int, from int64) (next int64, err error) {
	old, sealed, err := a.logOf(epoch)
	if err != nil {
		return 0, err
	}
	defer a.letGo(old)
	if err := a.resumeFrom(ctx, old, from, sealed, sealed); err != nil {
		return 0, err
	}
	log, _, err := a.logOf(epoch + 1)
	if err != nil {
		return 0, err
	}
	defer a.letGo(log)
	return a.handOver(log)
}

// carriedLeaves shows what a log took over from the one before, and returns how many
// leaves end with the last of it; there are states between.
func carriedLeaves(log *tlog.Reader, show func(leaf int64, e tlog.Entry)) (leaves int64, err error) {
	head, err := log.Checkpoint()
	if err != nil {
		return 0, err
	}
	done := errors.New("the carried leaves end")
	leaves = 1
	err = log.Entries(1, head.Size, func(leaf int64, e tlog.Entry) error {
		switch {
		case e.Kind == tlog.KindState:
			return nil
		case e.Kind != tlog.KindEvent || e.Seq > log.Through():
			return done
		}
		leaves = leaf + 1
		show(leaf, e)
		return nil
	})
	if err != nil && !errors.Is(err, done) {
		return 0, err
	}
	return leaves, nil
}

// handOver brings the index from the end of one log to where the carried leaves of the
// next one end. They are folded already; only where trust files lie has changed.
func (a *auditor) handOver(log *tlog.Reader) (leaves int64, err error) {
	carried := uint64(0)
	leaves, err = carriedLeaves(log, func(leaf int64, e tlog.Entry) {
		carried++
		if strings.HasPrefix(e.Subject, events.PrefixStored+".trust.") {
			a.ledger.setNumber(fmt.Sprintf("%s%016x", factTrust, e.Seq), uint64(leaf))
		}
	})
	if err != nil {
		return 0, err
	}
	missing, err := a.ledger.number(factCount + countMissing)
	if err != nil {
		return 0, err
	}
	a.ledger.setNumber(factDropped, log.Through()-missing-carried)
	gone, err := a.ledger.keys(factLost) // the bus has let go of them, or they were carried from the log
	if err != nil {
		return 0, err
	}
	for _, key := range append(gone, factAudit, factRequest, factEnded) {
		a.ledger.facts[key] = nil
	}
	to, err := positionAt(log, leaves)
	if err == nil {
		_, err = a.ledger.commit(to)
	}
	return leaves, err
}

// turn opens the next epoch when it is time. What it publishes ends the work on this
// one as soon as the fold reads it.
func (a *auditor) turn(ctx context.Context) error {
	for {
		s, fault, advanced := a.state.get()
		if why := a.due(s); why != "" && fault == nil {
			done, err := a.openNext(ctx, why, s.request)
			if err != nil || done {
				return err
			}
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return nil
		}
	}
}

// ownPercent is what an epoch's own events must fill of max_bytes before the size of the
// stream ends it: a stream that cannot be thinned would otherwise end one after another.
const ownPercent = 10

// due says why the epoch has to end, or nothing. Nothing is closed while a gap waits to be
// acknowledged: a person should find things as they were.
func (a *auditor) due(s status) string {
	switch {
	case s.closed():
		return ""
	case s.request > 0:
		return events.EpochRequested
	case s.ended >= uint64(a.config.EpochJobs):
		return events.EpochFullJobs
	case s.percent >= int64(a.config.EpochPercent) && s.own >= ownPercent:
		return events.EpochFullBytes
	}
	return ""
}

// openNext publishes the event that opens the next epoch. It says false when that has to
// be tried again.
func (a *auditor) openNext(ctx context.Context, why string, request uint64) (done bool, err error) {
	if err := a.standing.Refresh(ctx); err != nil {
		return false, quiet(ctx, err)
	}
	p, err := a.inForce(ctx)
	if err != nil {
		return false, quiet(ctx, err)
	}
	p.Epoch, p.Why = a.epoch+1, why
	if why == events.EpochRequested {
		p.Request = request
	}
	if b, err := events.Encode(p); err != nil || len(b) > maxOpened_bytes {
		a.slog.Error("too much is in force to begin a new epoch; decide or cancel jobs", "bytes", len(b), "error", err)
		return false, nil
	}
	_, err = a.outbox.append.Append(ctx, events.For("epoch.opened", events.SiteScope, events.EpochID(p.Epoch), a.outbox.actor), 0, *p)
	var conflict *bus.Conflict
	if errors.As(err, &conflict) {
		return true, nil // it is there already, and will be read
	}
	return err == nil, quiet(ctx, err)
}

// maxOpened_bytes is what one event holds, with some room.
const maxOpened_bytes = 448 << 10

func quiet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// thinned says whether a stream that was made anew is the one of this epoch: everything
// that the epoch does not carry is gone, and nothing else.
func (a *auditor) thinned(now bus.State, seen status) bool {
	return a.epoch > events.FirstEpoch && now.First == 1 && now.Last-now.Messages == seen.missing+seen.dropped
}

// compareCarried compares what the stream holds with the log, from the first carried event
// to the signed head.
func (a *auditor) compareCarried(ctx context.Context) error {
	var page []events.Stored
	return a.reader.Entries(1, a.log.SealedSize(), func(leaf int64, e tlog.Entry) (err error) {
		if e.Kind != tlog.KindEvent {
			return nil
		}
		if len(page) == 0 {
			if page, err = a.stream.Read(ctx, e.Seq, everything, tailPage); err != nil {
				return err
			}
		}
		if len(page) == 0 || page[0].Seq != e.Seq {
			return fault(faultRollback, "the stream does not hold sequence %d any more, which was carried into the epoch", e.Seq)
		}
		st := page[0]
		page = page[1:]
		return a.sameAs(leaf, st)
	})
}
