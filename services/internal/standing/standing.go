package standing

import (
	"context"
	"fmt"
	"sync"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/trust"
)

// Reader is the part of the bus that is asked.
type Reader interface {
	Last(ctx context.Context, filter string) (events.Stored, bool, error)
	Read(ctx context.Context, from uint64, filter string, limit int) ([]events.Stored, error)
	History(ctx context.Context, job string) ([]events.Stored, error)
}

// Standing reads what is in force.
type Standing struct {
	bus  Reader
	book *trust.Book
	env  policy.Env

	mu        sync.Mutex // guards the rest
	trustSeq  uint64     // last trust event in the book
	policySeq uint64     // the event that policy was parsed from
	policy    *policy.Policy
}

// New makes a Standing over a book that pins the root key.
func New(bus Reader, book *trust.Book, env policy.Env) *Standing {
	return &Standing{bus: bus, book: book, env: env}
}

// Book is the trust book. It is current as of the last Refresh.
func (s *Standing) Book() *trust.Book { return s.book }

var (
	trustFilter  = events.Filter("trust", events.TrustID)
	policyFilter = events.Filter("policy", events.PolicyID)
)

// Refresh brings the trust book up to date.
func (s *Standing) Refresh(ctx context.Context) error {
	last, found, err := s.bus.Last(ctx, trustFilter)
	if err != nil {
		return fmt.Errorf("read the trust file in force: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !found || last.Seq <= s.trustSeq {
		return nil
	}
	for from := s.trustSeq + 1; from <= last.Seq; {
		page, err := s.bus.Read(ctx, from, trustFilter, 64)
		if err != nil {
			return fmt.Errorf("read trust files: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for _, st := range page {
			if _, err := s.book.Open(st); err != nil {
				return fmt.Errorf("trust file: %w", err)
			}
			s.trustSeq, from = st.Seq, st.Seq+1
		}
	}
	return nil
}

// Policy returns the policy in force.
func (s *Standing) Policy(ctx context.Context) (*policy.Policy, error) {
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	st, found, err := s.bus.Last(ctx, policyFilter)
	if err != nil {
		return nil, fmt.Errorf("read the policy in force: %w", err)
	}
	if !found {
		return nil, fmt.Errorf("read the policy in force: the site has published none")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.policy != nil && s.policySeq == st.Seq {
		return s.policy, nil
	}
	e, err := s.book.Open(st)
	if err != nil {
		return nil, fmt.Errorf("policy in force: %w", err)
	}
	published, ok := e.Payload.(*events.PolicyPublished)
	if !ok {
		return nil, fmt.Errorf("policy in force: event %d is %s", st.Seq, e.Kind)
	}
	p, err := policy.Parse(fmt.Sprintf("policy event %d", st.Seq), []byte(published.Text), s.env)
	if err != nil {
		return nil, err
	}
	if p.Digest() != published.Digest {
		return nil, fmt.Errorf("policy in force: event %d names another digest than its text has", st.Seq)
	}
	s.policy, s.policySeq = p, st.Seq
	return p, nil
}

// Job folds what the stream holds of a job. The error is jobs.ErrUnknown when
// it holds nothing.
func (s *Standing) Job(ctx context.Context, id string) (lifecycle.Job, error) {
	history, err := s.bus.History(ctx, id)
	if err != nil {
		return lifecycle.Job{}, fmt.Errorf("read job %s: %w", id, err)
	}
	if len(history) == 0 {
		return lifecycle.Job{}, fmt.Errorf("job %s: %w", id, jobs.ErrUnknown)
	}
	if err := s.Refresh(ctx); err != nil {
		return lifecycle.Job{}, err
	}
	j, _ := jobs.Fold(s.book, history)
	return j, nil
}
