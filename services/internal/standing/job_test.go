package standing_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/trust"
)

// counted is a bus that counts how often a history is read whole.
type counted struct {
	standing.Reader
	whole int
	lag   uint64 // of a replica that answers about news
}

func (b *counted) History(ctx context.Context, job string) ([]events.Stored, error) {
	b.whole++
	return b.Reader.History(ctx, job)
}

func (b *counted) Newer(ctx context.Context, after uint64, filters ...string) ([]events.Stored, uint64, error) {
	page, through, err := b.Reader.Newer(ctx, after, filters...)
	if b.lag > 0 {
		return nil, b.lag, err
	}
	return page, through, err
}

func watched(s *stage.Stage) (*counted, *standing.Standing) {
	b := &counted{Reader: s.Conn("reader")}
	return b, standing.New(b, trust.New(stage.Origin, s.Root.Public()), s.Env())
}

// TestJobIsFoldedOn compares a reader that has seen each step of a few jobs with one
// that reads every job for the first time, while forged events, trust files and
// other jobs come in between.
func TestJobIsFoldedOn(t *testing.T) {
	s := stage.New(t, stage.Options{})
	b, r := watched(s)
	ids := []string{s.Propose([]string{"one"}), s.Propose([]string{"two"})}
	version := 1
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.SampledFrom(ids).Draw(rt, "job")
		switch rapid.IntRange(0, 5).Draw(rt, "what") {
		case 0: // several on one subject, of which the stream's newest is not all
			for range rapid.IntRange(1, 3).Draw(rt, "times") {
				say(s, "worker", "job.declined", id, events.JobDeclined{Code: "no_program", Reason: "not here"})
			}
		case 1:
			say(s, "gate", "job.expired", id, events.JobExpired{})
		case 2: // a right that the worker has on the bus, under a signature of somebody else
			forgeStep(s, id)
		case 3:
			version++
			f := s.Trust()
			f.Version = version
			s.AppendTrust(s.Root, f, s.Last(events.Filter("trust", "main")))
		case 4:
			ids = append(ids, s.Propose([]string{fmt.Sprint(len(ids))}))
		}
		for _, id := range ids {
			same(rt, s, r, id)
		}
	})
	if b.whole > len(ids)*version+len(ids) {
		t.Errorf("%d histories of %d jobs were read whole under %d trust files", b.whole, len(ids), version)
	}
}

// say appends what an actor says about a job, at its end.
func say(s *stage.Stage, actor string, kind events.Kind, id string, payload any) {
	s.Say(actor, kind, "default", id, s.Last(events.Filter("job", id)), payload)
}

// forgeStep stores a decline that the worker has not signed.
func forgeStep(s *stage.Stage, id string) {
	s.T.Helper()
	filter := events.Filter("job", id)
	m, err := events.New(stage.Origin, events.For("job.declined", "default", id, "worker"), events.ID{Actor: "worker", Session: strings.Repeat("0", 20), N: s.Last("bm.>")},
		time.Unix(1, 0), s.Last(filter), events.JobDeclined{Code: "forged", Reason: "forged"})
	stage.Must(s.T, err)
	k := s.Signing("gate")
	m.Sign(stage.Origin, k.Key(), k.Sign)
	s.AppendSigned(m)
}

// same compares with a reader that knows nothing.
func same(t interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}, s *stage.Stage, r *standing.Standing, id string) {
	t.Helper()
	got, err := r.Job(s.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.Standing("reader").Job(s.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("job %s differs from one that is read anew:\n%s", id, diff)
	}
}

// A stream that ends before what was seen of it, on a replica or after it went back, is
// read whole: what it does not show any more is not remembered for it.
func TestStreamThatWentBackIsReadWhole(t *testing.T) {
	s := stage.New(t, stage.Options{})
	b, r := watched(s)
	id := s.Propose([]string{"true"})
	for range 2 {
		same(t, s, r, id)
	}
	before := b.whole
	b.lag = 1
	same(t, s, r, id)
	if b.whole != before+1 {
		t.Errorf("%d histories were read, want one", b.whole-before)
	}
}

// What is unchanged is not read again, and one step is one step.
func TestUnchangedJobIsNotReadAgain(t *testing.T) {
	s := stage.New(t, stage.Options{})
	b, r := watched(s)
	id := s.Propose([]string{"true"})
	for range 5 {
		same(t, s, r, id)
	}
	say(s, "gate", "job.expired", id, events.JobExpired{})
	j, err := r.Job(s.Context(), id)
	if err != nil || j.LastSeq == j.ProposedSeq || j.Status == lifecycle.None {
		t.Errorf("%+v, %v", j, err)
	}
	if b.whole != 1 {
		t.Errorf("the history was read %d times", b.whole)
	}
}
