package auditor

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/tlog"
)

// head is a sealed head on its way to the stream.
type head struct {
	checkpoint tlog.Checkpoint
	through    uint64
	closed     bool
	urgent     bool // somebody may wait for it
}

// outbox holds what audit events must say until they have said it. The fold fills it
// and goes on; its own goroutine appends, so that one round trip covers every head
// that was sealed meanwhile: only the newest is published.
type outbox struct {
	append Appender
	actor  string
	epoch  string

	mu      sync.Mutex
	items   []unsaid
	faults  []events.AuditFaultFound
	head    *head
	due     time.Time // when the head is said although nobody waits for it
	last    uint64    // last sequence under auditFilter that was seen or appended
	changed chan struct{}
}

func newOutbox(a Appender, actor string, epoch int) *outbox {
	return &outbox{append: a, actor: actor, epoch: events.EpochID(epoch), changed: make(chan struct{}, 1)}
}

// update brings the outbox up to the fold. Items whose key was said are dropped: a
// process before this one may have said them.
func (o *outbox) update(found []unsaid, said []string, last uint64, h *head) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items = append(o.items, found...)
	if len(said) > 0 {
		o.items = slices.DeleteFunc(o.items, func(u unsaid) bool { return slices.Contains(said, u.key()) })
	}
	o.last = max(o.last, last)
	if h != nil {
		if o.head == nil {
			o.due = time.Now().Add(headPatience)
		} else {
			h.urgent = h.urgent || o.head.urgent
		}
		o.head = h
	}
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// fault takes a fault that is to be said.
func (o *outbox) fault(f events.AuditFaultFound) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = append(o.faults, f)
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// headPatience is how long a head is kept back that nobody waits for, so that the
// events of a job cause one audit event and not three, each of which every role reads. The
// log itself is sealed at once.
const headPatience = 250 * time.Millisecond

// pending is the head that is to be said now; if none is, until when one waits.
func (o *outbox) pending() (now *head, later <-chan time.Time, stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.head == nil {
		return nil, nil, func() {}
	}
	wait := time.Until(o.due)
	if o.head.urgent || wait <= 0 {
		return o.head, nil, func() {}
	}
	t := time.NewTimer(wait)
	return nil, t.C, func() { t.Stop() }
}

// conflictWait bounds the wait for the fold to read what an append conflicted with.
const conflictWait = time.Second

// run appends until the context ends.
func (o *outbox) run(ctx context.Context) error {
	for {
		for {
			more, err := o.step(ctx)
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
		_, later, stop := o.pending()
		select {
		case <-o.changed:
		case <-later:
		case <-ctx.Done():
			stop()
			return nil
		}
		stop()
	}
}

// step appends one event: faults, then violations and gaps, then heads. It says whether
// there may be more to do.
func (o *outbox) step(ctx context.Context) (more bool, err error) {
	h, _, stop := o.pending()
	stop()
	o.mu.Lock()
	item, last := o.first(), o.last
	var wrong *events.AuditFaultFound
	if len(o.faults) > 0 {
		f := o.faults[0]
		wrong = &f
	}
	o.mu.Unlock()
	var seq uint64
	switch {
	case wrong != nil:
		seq, err = o.say(ctx, "audit.fault_found", last, *wrong)
	case item != nil:
		kind, payload := item.event()
		seq, err = o.say(ctx, kind, last, payload)
	case h != nil:
		seq, err = o.say(ctx, "audit.sealed", last, h.event())
	default:
		return false, nil
	}
	var conflict *bus.Conflict
	switch {
	case errors.As(err, &conflict) && conflict.Last > 0 && conflict.Last < last:
		o.expect(conflict.Last) // the stream has lost what was said last
		return true, nil
	case errors.As(err, &conflict):
		o.await(ctx, max(conflict.Last, last+1), conflict.Last)
		return true, nil
	case errors.Is(err, bus.ErrFull): // a setting has made it so; whoever sets it back is told then
		o.await(ctx, math.MaxUint64, last)
		return true, nil
	}
	if err != nil {
		if ctx.Err() != nil {
			return false, nil
		}
		return false, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = max(o.last, seq)
	if wrong != nil {
		o.faults = o.faults[1:]
	} else if item != nil {
		o.items = slices.DeleteFunc(o.items, func(u unsaid) bool { return u.key() == item.key() })
	} else if o.head == h {
		o.head = nil
	}
	return true, nil
}

func (o *outbox) first() *unsaid {
	if len(o.items) == 0 {
		return nil
	}
	u := o.items[0]
	return &u
}

func (o *outbox) say(ctx context.Context, kind events.Kind, last uint64, payload any) (uint64, error) {
	return o.append.Append(ctx, events.For(kind, events.SiteScope, o.epoch, o.actor), last, payload)
}

// expect sets what an append names as the last sequence under auditFilter.
func (o *outbox) expect(seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = seq
}

// await waits until the fold has seen a sequence under auditFilter. If it takes long,
// the sequence that the server named is used: what matters is told by the next conflict.
func (o *outbox) await(ctx context.Context, seq, named uint64) {
	timeout := time.NewTimer(conflictWait)
	defer timeout.Stop()
	for {
		o.mu.Lock()
		reached := o.last >= seq
		o.mu.Unlock()
		if reached {
			return
		}
		select {
		case <-o.changed:
		case <-timeout.C:
			o.expect(named)
			return
		case <-ctx.Done():
			return
		}
	}
}

func (u unsaid) event() (events.Kind, any) {
	if u.Code == codeGap {
		return "audit.gap_found", events.AuditGapFound{From: u.Seq, To: u.To}
	}
	return "audit.violation_found", events.AuditViolationFound{Seq: u.Seq, Code: u.Code, Job: u.Job, Detail: printable(u.Detail)}
}

// maxDetail_bytes bounds what a stranger's message can make the auditor write.
const maxDetail_bytes = 500

func printable(text string) string {
	if len(text) > maxDetail_bytes {
		text = text[:maxDetail_bytes]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// Values of AuditSealed.Dispatch.
const (
	dispatchOpen   = "open"
	dispatchClosed = "closed"
)

func dispatch(closed bool) string {
	if closed {
		return dispatchClosed
	}
	return dispatchOpen
}

func (h *head) event() events.AuditSealed {
	return events.AuditSealed{
		Note: string(h.checkpoint.Note), Size: h.checkpoint.Size, ThroughSeq: h.through, Dispatch: dispatch(h.closed),
		Root: base64.StdEncoding.EncodeToString(h.checkpoint.Root[:]),
	}
}
