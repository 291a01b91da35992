package auditor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/index"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/witness"
)

// auditor is one running auditor. The fold, one goroutine, owns log, ledger and the
// writing side of the index; what others may read lies in state.
type auditor struct {
	config *Config
	stream Stream
	slog   *slog.Logger
	report func(ready bool, reason string)

	keyring *keyring
	eraser  *eraser
	layout  site.Layout
	epoch   int

	standing *standing.Standing // what is in force on the stream, to be carried

	witnesses *witness.Policy // nil for none

	heads  *headLock // of the log; nil if a file alone holds its head
	log    *tlog.Log
	reader *tlog.Reader
	index  *index.Index
	ledger *ledger
	outbox *outbox
	board  *jobBoard
	rouse  chan struct{} // the board is to be told anew

	state state
}

// state is what the fold tells the others.
type state struct {
	mu       sync.Mutex
	status   status
	fault    *Fault        // set once
	advanced chan struct{} // closed and replaced whenever status moves
}

// status is where the auditor stands.
type status struct {
	head     tlog.Checkpoint
	through  uint64 // covered by the head
	seen     uint64 // last sequence read
	covered  uint64 // through, or further if only audit events follow
	sealedAt time.Time
	caughtUp bool
	weak     string      // the stream's setting that is too weak now
	percent  int64       // of max_bytes that the stream fills
	own      int64       // percent of max_bytes that this epoch's log would fill
	looked   bool        // the stream was looked at since the connection came
	told     []openFault // faults that were found and are not yet read from the stream
	counts
}

// counts are what the ledger has counted.
type counts struct {
	open    []openFault // what waits for an acknowledgement
	found   uint64      // violations
	gaps    uint64
	missing uint64 // sequences in these gaps
	lost    []Gap  // sequences that the stream has lost after they were read
	acks    uint64 // acknowledgements
	dropped uint64 // messages that the bus may have let go of, with the epochs before
	request uint64 // sequence of a request to close the epoch, 0 for none
	ended   uint64 // jobs that ended in this epoch
}

// closed says whether dispatch is.
func (c *counts) closed() bool { return len(c.open) > 0 }

// faults are those that wait for an acknowledgement, and those that are about to.
func (s *status) faults() []openFault {
	return slices.Concat(s.open, s.told)
}

func (s *state) get() (status, *Fault, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.advanced == nil {
		s.advanced = make(chan struct{})
	}
	return s.status, s.fault, s.advanced
}

func (s *state) change(f func(*status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.status)
	s.wake()
}

func (s *state) wake() {
	if s.advanced != nil {
		close(s.advanced)
	}
	s.advanced = make(chan struct{})
}

// fail notes the first fault and says whether it was the first.
func (s *state) fail(f *Fault) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return false
	}
	s.fault = f
	s.wake()
	return true
}

// queued is how many events may wait between the follower and the fold.
const queued = 4096

// work folds until the context ends or something fails. A *Fault means that nothing
// may be sealed any more.
func (a *auditor) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	target, err := a.stream.LastSeq(ctx)
	if err != nil {
		return err
	}
	in := make(chan events.Stored, queued)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	spawn := func(what string, f func(context.Context) error) {
		group.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	from := a.log.LastSeq() + 1
	spawn("follow the stream", func(ctx context.Context) error {
		return a.stream.Follow(ctx, from, everything, func(st events.Stored) error {
			select {
			case in <- st:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	spawn("watch the stream", a.watch)
	spawn("erase texts", a.eraser.run)
	if a.witnesses != nil {
		spawn("show heads to witnesses", a.cosign)
	}
	if err := a.fold(ctx, in, target, spawn); err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// fold is the loop of the one goroutine that writes.
func (a *auditor) fold(ctx context.Context, in <-chan events.Stored, target uint64, spawn func(string, func(context.Context) error)) error {
	if err := a.settle(ctx, target, spawn); err != nil {
		return err
	}
	for {
		select {
		case st := <-in:
			if err := a.takeAll(ctx, in, st); err != nil {
				return err
			}
		case <-a.rouse:
		case <-ctx.Done():
			return nil
		}
		if err := a.settle(ctx, target, spawn); err != nil {
			return err
		}
	}
}

// takeAll folds what waits, up to a bound of number and time.
func (a *auditor) takeAll(ctx context.Context, in <-chan events.Stored, st events.Stored) error {
	due := time.Now().Add(time.Duration(a.config.SealMaxMS) * time.Millisecond)
	for n := 1; ; n++ {
		if err := a.take(st); err != nil {
			return err
		}
		if n >= a.config.SealMaxEntries || ctx.Err() != nil || (n%32 == 0 && time.Now().After(due)) {
			return nil
		}
		select {
		case st = <-in:
		default:
			return nil
		}
	}
}

// take appends one message to the log and folds it.
func (a *auditor) take(st events.Stored) error {
	covered := a.log.LastSeq()
	if st.Seq <= covered {
		leaf, err := a.leafOf(st.Seq)
		if err != nil {
			return err
		}
		return a.sameAs(leaf, st)
	}
	if st.Seq > covered+1 {
		if _, err := a.log.AppendGap(covered+1, st.Seq-1); err != nil {
			return logFault(err)
		}
		a.slog.Error("sequences of the stream are missing", "from", covered+1, "to", st.Seq-1)
		if err := a.ledger.gap(covered+1, st.Seq-1); err != nil {
			return err
		}
	}
	if err := a.opensEpoch(st); err != nil {
		return err
	}
	leaf, err := a.log.Append(recordOf(st), metaOf(st))
	if err != nil {
		return logFault(err)
	}
	return a.ledger.take(st, leaf)
}

// settle seals if there is a reason to, tells the outbox and the others, and once, when
// everything stored at the start was read, opens the outbox.
func (a *auditor) settle(ctx context.Context, target uint64, spawn func(string, func(context.Context) error)) error {
	var sealed *head
	if a.ledger.seals {
		var err error
		if sealed, err = a.seal(); err != nil {
			return err
		}
	}
	found, said := a.ledger.news()
	last, err := a.ledger.number(factAudit)
	if err != nil {
		return err
	}
	s, _, _ := a.state.get()
	seen := a.log.LastSeq()
	if s.caughtUp {
		a.outbox.update(found, said, last, sealed)
	} else if seen >= target {
		if found, err = a.ledger.unsaid(); err != nil {
			return err
		}
		slices.SortFunc(found, func(x, y unsaid) int { return int(x.Seq) - int(y.Seq) })
		if sealed == nil {
			sealed, err = a.unpublished(ctx)
		}
		if err != nil {
			return err
		}
		a.outbox.update(found, nil, last, sealed)
		spawn("publish", a.outbox.run)
		spawn("open the next epoch", a.turn)
		s.caughtUp = true
	}
	a.state.change(func(n *status) {
		n.seen, n.caughtUp = seen, s.caughtUp
		if !a.ledger.seals {
			n.covered = seen
		}
	})
	a.tellReady(s.caughtUp)
	return nil
}

// tellReady sets the line on the board.
func (a *auditor) tellReady(caughtUp bool) {
	s, _, _ := a.state.get()
	switch {
	case !caughtUp:
		a.report(false, fmt.Sprintf("reading the stream, at sequence %d", s.seen))
	case !s.looked:
		a.report(false, "looking at the stream")
	case a.ledger.disowned != "":
		a.report(false, "the auditor's own events are not believed: "+a.ledger.disowned)
	case len(s.faults()) > 0:
		list := s.faults()
		a.report(false, fmt.Sprintf("dispatch is closed by %d fault(s), such as fault %s: %s; see 'banksman audit status'", len(list), list[0].Code, list[0]))
	default:
		a.report(true, "")
	}
}
