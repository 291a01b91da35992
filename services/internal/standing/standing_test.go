package standing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/trust"
)

func rules(id string) string {
	return fmt.Sprintf("version = 1\n[[rule]]\nid = %q\nprogram = \"true\"\ndecision = \"ask\"\nreason = \"a test\"\n", id)
}

func digestOf(text string) string { return events.Digest([]byte(text)) }

// inForce wants a policy by its text.
func inForce(t *testing.T, s *stage.Stage, r *standing.Standing, text string) {
	t.Helper()
	p, err := r.Policy(s.Context())
	if err != nil || p.Digest() != digestOf(text) {
		t.Errorf("in force is %s, %v, want %s", p.Digest(), err, digestOf(text))
	}
}

// noPolicy wants an error that says why.
func noPolicy(t *testing.T, s *stage.Stage, r *standing.Standing, why string) {
	t.Helper()
	if p, err := r.Policy(s.Context()); err == nil || p != nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%v, %v, want an error about %q", p, err, why)
	}
}

func TestPolicyIsReplacedAtOnce(t *testing.T) {
	s := stage.New(t, stage.Options{})
	r := s.Standing("gate")
	noPolicy(t, s, r, "published none")
	s.Publish(rules("one"))
	inForce(t, s, r, rules("one"))
	first, _ := r.Policy(s.Context())
	if again, _ := r.Policy(s.Context()); again != first {
		t.Error("what did not change was parsed again")
	}
	s.Publish(rules("two"))
	inForce(t, s, r, rules("two"))
}

func TestUnbelievablePolicyIsNoPolicy(t *testing.T) {
	s := stage.New(t, stage.Options{Policy: rules("good")})
	r := s.Standing("gate")
	inForce(t, s, r, rules("good"))
	s.PublishRaw(events.PolicyPublished{Digest: digestOf("other"), Text: rules("x")})
	noPolicy(t, s, r, "another digest")
	s.PublishRaw(events.PolicyPublished{Digest: digestOf("nonsense"), Text: "nonsense"})
	noPolicy(t, s, r, "parse policy in event")
	forge(s, "p9z4", rules("mine")) // a person, no admin
	noPolicy(t, s, r, trust.CodeNoRight)
	forge(s, "gate", rules("mine"))
	noPolicy(t, s, r, trust.CodeNoRight)
	s.Publish(rules("better"))
	inForce(t, s, r, rules("better"))
}

// forge stores a policy that an actor has signed, past the rights of the bus.
func forge(s *stage.Stage, actor, text string) {
	s.T.Helper()
	m, err := events.New(stage.Origin, events.For("policy.published", "site", "main", actor), events.ID{Actor: actor, Session: strings.Repeat("0", 20), N: s.Last("bm.>")},
		time.Unix(1, 0), s.Last(events.Filter("policy", "main")), events.PolicyPublished{Digest: digestOf(text), Text: text})
	stage.Must(s.T, err)
	k := s.Signing(actor)
	m.Sign(stage.Origin, k.Key(), k.Sign)
	s.AppendSigned(m)
}

// Who owns the bus stores what an admin signed long ago once more.
func TestOldPolicyStoredAgainIsNoPolicy(t *testing.T) {
	s := stage.New(t, stage.Options{Policy: rules("lax")})
	old, _, err := s.Conn("reader").Last(s.Context(), events.Filter("policy", "main"))
	stage.Must(t, err)
	s.Publish(rules("strict"))
	b := &twice{Reader: s.Conn("reader"), again: old}
	r := standing.New(b, trust.New(stage.Origin, s.Root.Public()), s.Env())
	inForce(t, s, r, rules("strict"))
	b.again.Seq = s.Last("bm.>") + 1
	b.on = true
	noPolicy(t, s, r, "signed to follow event")
}

// twice is a bus that shows a policy event once more, as its last.
type twice struct {
	standing.Reader
	again events.Stored
	on    bool
}

func (b *twice) Last(ctx context.Context, filter string) (events.Stored, bool, error) {
	if b.on && filter == events.Filter("policy", "main") {
		return b.again, true, nil
	}
	return b.Reader.Last(ctx, filter)
}

func (b *twice) Newer(ctx context.Context, after uint64, filters ...string) ([]events.Stored, uint64, error) {
	page, through, err := b.Reader.Newer(ctx, after, filters...)
	if b.on && slices.Contains(filters, events.Filter("policy", "main")) {
		page, through = append(page, b.again), b.again.Seq
	}
	return page, through, err
}

// An admin is revoked between two questions to the bus: the policy that came
// after is not believed by the file before.
func TestPolicyOfAnAdminRevokedMeanwhile(t *testing.T) {
	s := stage.New(t, stage.Options{Policy: rules("good")})
	b := &hooked{Reader: s.Conn("reader")}
	r := standing.New(b, trust.New(stage.Origin, s.Root.Public()), s.Env())
	inForce(t, s, r, rules("good"))
	b.before = func(filter string) {
		if filter == events.Filter("policy", "main") {
			b.before = nil
			f := s.Trust()
			f.Version, f.Actors = 2, f.Actors[:1:1]
			s.AppendTrust(s.Root, f, s.Last(events.Filter("trust", "main")))
			forge(s, stage.Person, rules("late"))
		}
	}
	noPolicy(t, s, r, trust.CodeUnknownActor)
}

// hooked does something before it answers what is last.
type hooked struct {
	standing.Reader
	before func(filter string)
}

func (b *hooked) Last(ctx context.Context, filter string) (events.Stored, bool, error) {
	if b.before != nil {
		b.before(filter)
	}
	return b.Reader.Last(ctx, filter)
}

func (b *hooked) Newer(ctx context.Context, after uint64, filters ...string) ([]events.Stored, uint64, error) {
	for _, filter := range filters {
		if b.before != nil {
			b.before(filter)
		}
	}
	return b.Reader.Newer(ctx, after, filters...)
}

func TestManyTrustFiles(t *testing.T) {
	s := stage.New(t, stage.Options{})
	early := s.Standing("reader")
	stage.Must(t, early.Refresh(s.Context()))
	file := s.Trust()
	last := s.Last(events.Filter("trust", "main"))
	for range 150 {
		file.Version++
		last = s.AppendTrust(s.Root, file, last)
	}
	for name, r := range map[string]*standing.Standing{"a reader from the start": early, "a new reader": s.Standing("reader")} {
		stage.Must(t, r.Refresh(s.Context()))
		if got := r.Book().Current(); got.Version != 151 {
			t.Errorf("%s stands at version %d", name, got.Version)
		}
	}
}

// A trust file that root did not sign stops nobody.
func TestForgedTrustFileChangesNothing(t *testing.T) {
	s := stage.New(t, stage.Options{Policy: rules("good")})
	r := s.Standing("reader")
	thief, err := keys.GenerateSigner()
	stage.Must(t, err)
	f := s.Trust()
	f.Version = 2
	last := s.AppendTrust(thief, f, s.Last(events.Filter("trust", "main")))
	inForce(t, s, r, rules("good"))
	f.Version = 1 // root's own first file, stored once more
	last = s.AppendTrust(s.Root, f, last)
	inForce(t, s, r, rules("good"))
	f.Version = 2
	s.AppendTrust(s.Root, f, last)
	inForce(t, s, r, rules("good"))
	if got := r.Book().Current().Version; got != 2 {
		t.Errorf("version %d", got)
	}
	f.Version = 4 // the third, which may revoke anybody, is missing
	s.AppendTrust(s.Root, f, s.Last(events.Filter("trust", "main")))
	noPolicy(t, s, r, trust.CodeTrustVersion)
	noPolicy(t, s, r, trust.CodeTrustVersion)
	if _, err := r.Job(s.Context(), s.Propose([]string{"true"})); err == nil {
		t.Error("a job was folded without the trust in force")
	}
}

func TestJob(t *testing.T) {
	s := stage.New(t, stage.Options{})
	r := s.Standing("reader")
	id := s.Propose([]string{"true"})
	if j, err := r.Job(s.Context(), id); err != nil || j.ID != id || j.Status != lifecycle.Proposed {
		t.Errorf("%+v, %v", j, err)
	}
	for _, other := range []string{"nothing", "", "*", ">", "job1.>", "a b", "JOB1", strings.Repeat("a", 65)} {
		if _, err := r.Job(s.Context(), other); !errors.Is(err, jobs.ErrUnknown) {
			t.Errorf("%q: %v", other, err)
		}
	}
}

func TestSilentBusIsNoAnswer(t *testing.T) {
	down := errors.New("down")
	r := standing.New(silent{down}, trust.New(stage.Origin, ""), (&stage.Stage{}).Env())
	_, err1 := r.Policy(t.Context())
	_, err2 := r.Job(t.Context(), "j1")
	for _, err := range []error{err1, err2, r.Refresh(t.Context())} {
		if !errors.Is(err, down) {
			t.Error(err)
		}
	}
}

type silent struct{ err error }

func (s silent) Last(context.Context, string) (events.Stored, bool, error) {
	return events.Stored{}, false, s.err
}
func (s silent) Read(context.Context, uint64, string, int) ([]events.Stored, error) {
	return nil, s.err
}
func (s silent) History(context.Context, string) ([]events.Stored, error) { return nil, s.err }
func (s silent) Newer(context.Context, uint64, ...string) ([]events.Stored, uint64, error) {
	return nil, 0, s.err
}

func TestManyAskAtOnce(t *testing.T) {
	s := stage.New(t, stage.Options{Policy: rules("good")})
	r := s.Standing("reader")
	id := s.Propose([]string{"true"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if _, err := r.Policy(s.Context()); err != nil {
					t.Error(err)
				}
				if _, err := r.Job(s.Context(), id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 5 {
		s.Publish(rules(fmt.Sprint("p", i)))
	}
	wg.Wait()
	inForce(t, s, r, rules("p4"))
}
