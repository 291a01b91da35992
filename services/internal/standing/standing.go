package standing

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/trust"
)

// Reader is the part of the bus that is asked.
type Reader interface {
	Last(ctx context.Context, filter string) (events.Stored, bool, error)
	Read(ctx context.Context, from uint64, filter string, limit int) ([]events.Stored, error)
	History(ctx context.Context, job string) ([]events.Stored, error)
	Newer(ctx context.Context, after uint64, filters ...string) (page []events.Stored, through uint64, err error)
}

// Standing reads what is in force.
type Standing struct {
	bus  Reader
	book *trust.Book
	env  policy.Env

	mu         sync.Mutex // guards the rest
	trustSeq   uint64     // last trust event that was shown to the book
	trustFault error      // what the book cannot get past
	policySeq  uint64     // the event that policy was parsed from
	policy     *policy.Policy
	trusted    uint64 // between trustSeq and here there is no other, by one answer of the bus
	jobs       shelf
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

// Refresh brings the trust book up to date. Trust files that root did not sign
// and old ones stored once more change nothing, so that nobody can stop a site
// with them; one that this version cannot interpret, or that follows a missing
// one, is an error.
func (s *Standing) Refresh(ctx context.Context) error {
	last, found, err := s.bus.Last(ctx, trustFilter)
	if err != nil {
		return fmt.Errorf("read the trust file in force: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trustFault != nil {
		return s.trustFault
	}
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
			before := s.book.Current()
			if e, err := s.book.Open(st); err != nil && closes(e, err, before) {
				s.trustFault = fmt.Errorf("read the trust file in force, event %d: %w", st.Seq, err)
				return s.trustFault
			}
			s.trustSeq, from = st.Seq, st.Seq+1
		}
	}
	return nil
}

// closes says whether a trust file that was not taken leaves in doubt what is
// in force: it is root's own, and newer than what was read before.
func closes(e events.Event, err error, before *events.TrustPublished) bool {
	var v *trust.Violation
	if !errors.As(err, &v) {
		return true
	}
	p, ok := e.Payload.(*events.TrustPublished)
	return v.Code == trust.CodeTrustVersion && ok && (before == nil || p.Version > before.Version)
}

// Policy returns the policy in force.
func (s *Standing) Policy(ctx context.Context) (*policy.Policy, error) {
	if p, err := s.samePolicy(ctx); p != nil || err != nil {
		return p, err
	}
	st, found, err := s.bus.Last(ctx, policyFilter)
	if err != nil {
		return nil, fmt.Errorf("read the policy in force: %w", err)
	}
	if !found {
		return nil, fmt.Errorf("read the policy in force: the site has published none; an admin publishes one with 'banksman policy publish'")
	}
	// Afterwards, so that the book holds every trust file before the policy.
	if err := s.Refresh(ctx); err != nil {
		return nil, err
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
	if err := s.placed(ctx, e); err != nil {
		return nil, err
	}
	published, ok := e.Payload.(*events.PolicyPublished)
	if !ok {
		return nil, fmt.Errorf("policy in force: event %d is %s", st.Seq, e.Kind)
	}
	p, err := policy.Parse(fmt.Sprintf("in event %d", st.Seq), []byte(published.Text), s.env)
	if err != nil {
		return nil, err
	}
	if p.Digest() != published.Digest {
		return nil, fmt.Errorf("policy in force: event %d names another digest than its text has", st.Seq)
	}
	s.policy, s.policySeq = p, st.Seq
	return p, nil
}

// samePolicy returns the policy that was in force the last time, if the stream holds
// no newer one and no newer trust file; nil if that is not so or not known.
func (s *Standing) samePolicy(ctx context.Context) (*policy.Policy, error) {
	s.mu.Lock()
	p, seq := s.policy, s.policySeq
	after := min(seq, s.trusted)
	s.mu.Unlock()
	if p == nil {
		return nil, nil
	}
	page, through, err := s.newer(ctx, after, policyFilter)
	if err != nil || through < seq || len(beyond(page, seq)) > 0 {
		return nil, err
	}
	return p, nil
}

// placed refuses a policy that does not stand where its admin has signed it to
// stand. Who owns the store could otherwise put an old one into force again.
func (s *Standing) placed(ctx context.Context, e events.Event) error {
	next, err := s.bus.Read(ctx, e.Expect+1, policyFilter, 1)
	if err != nil {
		return fmt.Errorf("read the policy before the one in force: %w", err)
	}
	if len(next) == 0 || next[0].Seq != e.Seq {
		return fmt.Errorf("policy in force: event %d was signed to follow event %d and does not; an admin has to publish it anew", e.Seq, e.Expect)
	}
	return nil
}
