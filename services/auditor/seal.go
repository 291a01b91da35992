package auditor

import (
	"context"
	"errors"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/index"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/trust"
)

// seal signs everything folded so far and commits it to the index. The order matters:
// what the index and the stream say about a head must not outlive the head.
func (a *auditor) seal() (*head, error) {
	if err := a.chooseSigners(); err != nil {
		return nil, err
	}
	urgent := a.ledger.urgent
	checkpoint, err := a.log.Seal()
	if err != nil {
		return nil, logFault(err)
	}
	to, err := positionAt(a.reader, checkpoint.Size)
	if err != nil {
		return nil, err
	}
	stated := a.ledger.stated
	changed, err := a.commit(to)
	if err != nil {
		return nil, err
	}
	a.eraser.add(a.ledger.erased)
	a.ledger.erased = nil
	c, err := a.ledger.counts()
	if err != nil {
		return nil, err
	}
	a.state.change(func(s *status) {
		s.head, s.through, s.covered, s.sealedAt = checkpoint, to.Through, to.Through, time.Now().UTC()
		s.counts = c
		s.told = without(s.told, stated)
	})
	a.board.changed(changed)
	return &head{checkpoint: checkpoint, through: to.Through, closed: c.closed(), urgent: urgent || c.closed()}, nil
}

// chooseSigners lets those keys sign that the trust file in force lists.
func (a *auditor) chooseSigners() error {
	file := a.ledger.book.Current()
	if file == nil {
		return fault(faultKey, "no trust file is in force, so nobody may sign")
	}
	signers, changed := a.keyring.choose(file)
	if !changed {
		return nil
	}
	if len(signers) == 0 {
		return fault(faultKey, "trust file %d lists none of the keys in %s; publish one that does, then restart the auditor", file.Version, a.keyring.path)
	}
	a.log.SignWith(signers[0], signers[1:]...)
	return nil
}

// commit writes the batch to the index. A damaged index is made again from the log,
// which holds everything that the batch came from.
func (a *auditor) commit(to index.Position) ([]lifecycle.Job, error) {
	changed, err := a.ledger.commit(to)
	if !errors.Is(err, index.ErrDamaged) {
		return changed, err
	}
	a.slog.Warn("the job index is made anew", "error", err)
	if err := a.index.Reset(); err != nil {
		return nil, err
	}
	found, said := a.ledger.news()
	a.ledger.clear()
	if err := a.resume(context.Background()); err != nil {
		return nil, err
	}
	a.ledger.found, a.ledger.said = found, said
	return nil, nil
}

// unpublished is the newest head, if the stream does not say it yet.
func (a *auditor) unpublished(ctx context.Context) (*head, error) {
	s, _, _ := a.state.get()
	if s.through == 0 {
		return nil, nil
	}
	p, found, err := lastSealed(ctx, a.stream, a.ledger.book, events.EpochID(a.epoch))
	if err != nil {
		return nil, err
	}
	if found && p.Size >= s.head.Size && p.Dispatch == dispatch(s.closed()) {
		return nil, nil
	}
	return &head{checkpoint: s.head, through: s.through, closed: s.closed(), urgent: true}, nil
}

// lastSealed is what the stream says about the newest head of an epoch, "*" for any, if
// it is believable.
func lastSealed(ctx context.Context, stream Stream, book *trust.Book, epoch string) (*events.AuditSealed, bool, error) {
	filter := events.For("audit.sealed", events.SiteScope, epoch, "*").String()
	st, found, err := stream.Last(ctx, filter)
	if err != nil || !found {
		return nil, false, err
	}
	e, err := book.Open(st)
	if err != nil {
		return nil, false, nil
	}
	p, ok := e.Payload.(*events.AuditSealed)
	return p, ok, nil
}

// closeDispatch says on the stream what is wrong, and that nothing may start any more.
// It repeats the last head with dispatch closed, so that nobody's view of the log goes
// back.
func (a *auditor) closeDispatch(ctx context.Context, standing *standing.Standing, f *Fault) error {
	if err := standing.Refresh(ctx); err != nil {
		return err
	}
	if err := a.nameFault(ctx, standing.Book(), f); err != nil {
		return err
	}
	p, found, err := lastSealed(ctx, a.stream, standing.Book(), "*")
	if err != nil || found && p.Dispatch == dispatchClosed {
		return err
	}
	if !found {
		p = &events.AuditSealed{}
	}
	p.Dispatch, p.Extra = dispatchClosed, nil
	last, _, err := a.stream.Last(ctx, auditFilter(a.epoch))
	if err != nil {
		return err
	}
	_, err = a.outbox.say(ctx, "audit.sealed", last.Seq, *p)
	return err
}

// nameFault says on the stream why the auditor stands still, unless the last that was
// said there is the same.
func (a *auditor) nameFault(ctx context.Context, book *trust.Book, f *Fault) error {
	st, found, err := a.stream.Last(ctx, events.For("audit.fault_found", events.SiteScope, events.EpochID(a.epoch), "*").String())
	if err != nil {
		return err
	}
	if found {
		if e, err := book.Open(st); err == nil {
			if p, ok := e.Payload.(*events.AuditFaultFound); ok && p.Code == f.Code && p.Detail == printable(f.Detail) {
				return nil
			}
		}
	}
	last, _, err := a.stream.Last(ctx, auditFilter(a.epoch))
	if err != nil {
		return err
	}
	_, err = a.outbox.say(ctx, "audit.fault_found", last.Seq, events.AuditFaultFound{Code: f.Code, Detail: printable(f.Detail)})
	return err
}
