package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/query"
)

// sealSubjects are all seals of the audit log, in whichever epoch; whether one may be believed is
// the trust file's matter.
const sealSubjects = events.PrefixStored + ".audit.*.*.sealed.*"

// seal is one believable head of the audit log.
type seal struct {
	seq      uint64
	through  uint64
	dispatch string
	stored   events.Stored
}

// sealWatch holds the newest seal.
type sealWatch struct {
	mu      sync.Mutex
	newest  seal
	refused uint64        // the last one that was not believed
	line    int           // changes as the connection comes and goes
	heard   int           // the line on which the auditor said that dispatch is open
	changed chan struct{} // closed and replaced with every newer seal
}

func newSealWatch() *sealWatch { return &sealWatch{line: 1, changed: make(chan struct{})} }

// connection notes that the connection came or went.
func (w *sealWatch) connection() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line++
}

// onLine says on which line the worker is, and whether the auditor was heard on it.
func (w *sealWatch) onLine() (line int, heard bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.line, w.heard == w.line
}

// hear notes on which line the auditor said that dispatch is open.
func (w *sealWatch) hear(line int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = line
}

// offer takes a seal if it is newer.
func (w *sealWatch) offer(n seal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.seq <= w.newest.seq {
		return
	}
	w.newest = n
	close(w.changed)
	w.changed = make(chan struct{})
}

// refuse notes a seal that is not believed and says whether that is news.
func (w *sealWatch) refuse(seq uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := w.refused != seq
	w.refused = seq
	return news
}

func (w *sealWatch) get() (seal, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest, w.changed
}

// covers says whether jobs approved up to a sequence may start; otherwise why
// not.
func (n seal) covers(through uint64) (why string) {
	switch {
	case n.through < through:
		return "waiting for seal"
	case n.dispatch != "open":
		return "dispatch closed by the auditor"
	}
	return ""
}

// believe reads a stored seal.
func (s *shift) believe(st events.Stored) (seal, error) {
	e, err := s.env.Standing.Book().Open(st)
	if err != nil {
		return seal{}, err
	}
	p, ok := e.Payload.(*events.AuditSealed)
	if !ok || p.ThroughSeq >= e.Seq {
		return seal{}, fmt.Errorf("event %d is no seal of what was stored before it", e.Seq)
	}
	return seal{seq: e.Seq, through: p.ThroughSeq, dispatch: p.Dispatch, stored: st}, nil
}

// offerSeal judges a seal and takes it. A seal that cannot be believed may be
// signed under a trust file that this worker has not read yet.
func (s *shift) offerSeal(ctx context.Context, st events.Stored) {
	n, err := s.believe(st)
	if err != nil {
		if s.env.Standing.Refresh(ctx) == nil {
			n, err = s.believe(st)
		}
	}
	if err != nil {
		if s.seals.refuse(st.Seq) {
			s.log.Warn("a seal of the audit log is not believed", "seq", st.Seq, "error", err)
		}
		return
	}
	s.seals.offer(n)
}

// readSeal asks the stream for the newest seal; live copies may be lost.
func (s *shift) readSeal(ctx context.Context) error {
	st, found, err := s.env.Bus.Last(ctx, sealSubjects)
	if err != nil {
		return fmt.Errorf("read the newest seal: %w", err)
	}
	if newest, _ := s.seals.get(); found && st.Seq > newest.seq {
		s.offerSeal(ctx, st)
	}
	return nil
}

// askWithin bounds one question to the auditor.
const askWithin = 5 * time.Second

// audited asks the auditor, once on every connection, whether dispatch is open;
// otherwise it says why not. The bus may have come back with another stream or with a
// part of the one it had, and then the newest seal in it says nothing; the auditor
// answers "open" only after it has looked.
func (s *shift) audited(ctx context.Context) (why string) {
	line, heard := s.seals.onLine()
	if heard {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var a query.AuditStatus
	if err := s.env.Bus.Ask(ctx, query.Audit, struct{}{}, &a); err != nil {
		return "waiting for the auditor"
	}
	if a.Dispatch != "open" {
		return "dispatch closed by the auditor"
	}
	s.seals.hear(line)
	return ""
}

// awaitSeal waits until the audit log covers a sequence and dispatch is open.
func (s *shift) awaitSeal(ctx context.Context, job string, through uint64) (seal, error) {
	began := time.Now()
	defer s.done(job)
	again := time.NewTimer(time.Second)
	defer again.Stop()
	for {
		n, changed := s.seals.get()
		why := n.covers(through)
		if why == "" {
			why = s.audited(ctx)
		}
		if why == "" {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return seal{}, context.Cause(ctx)
		case <-changed:
		case <-again.C:
			s.waits(job, why, began)
			if err := s.readSeal(ctx); err != nil {
				return seal{}, err
			}
			again.Reset(time.Second)
		}
	}
}

// wait is what a job waits for and since when.
type wait struct {
	since time.Time
	what  string
}

// waits shows on the board what a job waits for.
func (s *shift) waits(job, what string, since time.Time) {
	s.mu.Lock()
	s.waiting[job] = wait{since, what}
	s.mu.Unlock()
	s.tell()
}

// done takes a job's line off the board.
func (s *shift) done(job string) {
	s.mu.Lock()
	_, was := s.waiting[job]
	delete(s.waiting, job)
	s.mu.Unlock()
	if was {
		s.tell()
	}
}

// tell writes the board: the bus that is away, or what has waited longest.
func (s *shift) tell() {
	s.mu.Lock()
	phase, away, longest := s.phase, s.away, wait{}
	for _, w := range s.waiting {
		if longest.since.IsZero() || w.since.Before(longest.since) {
			longest = w
		}
	}
	n := len(s.waiting)
	s.mu.Unlock()
	switch {
	case phase != "":
		s.env.Report(false, phase)
	case !away.IsZero():
		s.env.Report(false, "the bus is away since "+stamp(away)+"; running jobs go on, results wait")
	case n > 0:
		s.env.Report(true, fmt.Sprintf("%s since %s (%d jobs)", longest.what, stamp(longest.since), n))
	case !s.cfg.Hide:
		s.env.Report(true, "jobs can reach the files of banksman, because hide is false in [worker]")
	default:
		s.env.Report(true, "")
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
