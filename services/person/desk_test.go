package person

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/texts"
	"github.com/banksman/banksman/services/internal/trust"
)

const rules = "version = 1\n[[rule]]\nid = \"asked\"\nprogram = \"make\"\ndecision = \"ask\"\nreason = \"a test\"\n"

func newStage(t *testing.T) *stage.Stage { return stage.New(t, stage.Options{Policy: rules}) }

func desk(s *stage.Stage, actor string) *Desk {
	c := DefaultConfig()
	c.ActorName = actor
	return &Desk{Config: c, Layout: s.Layout, Bus: s.Conn(actor), Standing: s.Standing(actor)}
}

// ready is a job that waits for persons.
func ready(s *stage.Stage, quorum int, change ...func(*events.JobProposed)) string {
	id := s.Propose([]string{"make"}, change...)
	s.Resolve(id, "/usr/bin/make")
	s.Assess(id, quorum)
	return id
}

func TestQuorum(t *testing.T) {
	s := newStage(t)
	id := ready(s, 2)
	first, err := desk(s, stage.Person).Approve(s.Context(), id)
	if err != nil || first.Status != lifecycle.Pending || len(first.Approvals) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	if _, err := desk(s, stage.Person).Approve(s.Context(), id); codeOf(err) != CodeTwice {
		t.Error(err)
	}
	second, err := desk(s, stage.Second).Approve(s.Context(), id)
	if err != nil || second.Status != lifecycle.Approved || second.Tainted {
		t.Fatalf("%+v, %v", second, err)
	}
	a := second.Approvals[0]
	if a.Basis != "person" || a.Actor != stage.Person || a.Policy != events.Digest([]byte(rules)) {
		t.Errorf("%+v", a)
	}
	if _, err := desk(s, stage.Second).Deny(s.Context(), id, "too late"); codeOf(err) != CodeDecided {
		t.Error(err)
	}
}

func TestDeny(t *testing.T) {
	s := newStage(t)
	id := s.Propose([]string{"make"}) // nobody has looked at it yet
	j, err := desk(s, stage.Second).Deny(s.Context(), id, "not today")
	if err != nil || j.Status != lifecycle.Denied || j.DeniedBy != stage.Second {
		t.Errorf("%+v, %v", j, err)
	}
	if said := j.Denial.Ruling.Reason; strings.Contains(said, "not today") {
		t.Errorf("the event holds the person's words: %q", said)
	}
	if err := (texts.Reader{Bus: s.Conn("reader"), Standing: desk(s, stage.Second).Standing}).Fill(s.Context(), &j.Denial.Ruling.Reason); err != nil || j.Denial.Ruling.Reason != "not today" {
		t.Errorf("%q, %v", j.Denial.Ruling.Reason, err)
	}
	if _, err := desk(s, stage.Person).Approve(s.Context(), id); codeOf(err) != CodeDecided || !strings.Contains(err.Error(), "denied") {
		t.Error(err)
	}
}

func TestOwnProposal(t *testing.T) {
	s := newStage(t)
	id := ready(s, 1, func(p *events.JobProposed) { p.Proposer = events.Proposer{Kind: "person", ID: stage.Person} })
	if _, err := desk(s, stage.Person).Approve(s.Context(), id); codeOf(err) != CodeSelfApproval {
		t.Error(err)
	}
	if s.Count("job.approved", id) != 0 {
		t.Error("it was stored")
	}
	if j, err := desk(s, stage.Second).Approve(s.Context(), id); err != nil || j.Status != lifecycle.Approved {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestUnknownJob(t *testing.T) {
	s := newStage(t)
	for _, id := range []string{"nothing", "*", ">"} {
		if _, err := desk(s, stage.Person).Approve(s.Context(), id); err == nil || !strings.Contains(err.Error(), "no such job") {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// Approve waits for what has to be there before: the worker's report, and the
// gate's word how many persons are asked.
func TestWaitsForResolutionAndAssessment(t *testing.T) {
	s := newStage(t)
	id := s.Propose([]string{"make"})
	s.Assess(id, 1) // unresolved
	d, done := desk(s, stage.Person), make(chan error, 1)
	go func() {
		_, err := d.Approve(s.Context(), id)
		done <- err
	}()
	s.Resolve(id, "/usr/bin/make")
	select {
	case err := <-done:
		t.Fatalf("approved before the gate had assessed it: %v", err)
	default:
	}
	s.Assess(id, 1)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if j := s.Job(id); j.Status != lifecycle.Approved {
		t.Errorf("%+v", j)
	}
}

func TestGivesUpWaiting(t *testing.T) {
	s := newStage(t)
	id := s.Propose([]string{"make"})
	ctx, cancel := context.WithCancel(s.Context())
	d := desk(s, stage.Person)
	done := make(chan error, 1)
	go func() {
		_, err := d.Approve(ctx, id)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What moves between reading and signing is read, and shown, again.
func TestConflictIsReadAgain(t *testing.T) {
	s := newStage(t)
	id := ready(s, 2)
	d, shown := desk(s, stage.Person), 0
	d.Show = func(lifecycle.Job) {
		if shown++; shown == 1 {
			if _, err := desk(s, stage.Second).Approve(s.Context(), id); err != nil {
				t.Error(err)
			}
		}
	}
	j, err := d.Approve(s.Context(), id)
	if err != nil || j.Status != lifecycle.Approved || len(j.Approvals) != 2 || j.Tainted || shown != 2 {
		t.Errorf("%+v, %v, shown %d times", j, err, shown)
	}
}

func TestSomebodyElseWasFirst(t *testing.T) {
	s := newStage(t)
	id := ready(s, 1)
	d := desk(s, stage.Person)
	d.Show = func(lifecycle.Job) {
		d.Show = nil
		if _, err := desk(s, stage.Second).Deny(s.Context(), id, "no"); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.Approve(s.Context(), id); codeOf(err) != CodeDecided || !strings.Contains(err.Error(), "denied") {
		t.Error(err)
	}
	if j := s.Job(id); j.Tainted || j.Status != lifecycle.Denied {
		t.Errorf("%+v", j)
	}
}

// A key that the trust file does not name would taint the job.
func TestOtherKeySignsNothing(t *testing.T) {
	s := newStage(t)
	id := ready(s, 1)
	d := desk(s, stage.Second)
	path := s.Layout.SignKey(stage.Second)
	stage.Must(t, os.Remove(path))
	other, err := keys.GenerateSigner()
	stage.Must(t, err)
	stage.Must(t, keys.WriteSigner(path, other, []byte("secret"), keys.WorkFactor(10)))
	asked := 0
	d.Ask = func(string) ([]byte, error) { asked++; return []byte("secret"), nil }
	if _, err := d.Approve(s.Context(), id); codeOf(err) != CodeOtherKey || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	d.Ask = func(string) ([]byte, error) { return []byte("wrong"), nil }
	if _, err := d.Approve(s.Context(), id); !errors.Is(err, keys.ErrWrongPassphrase) {
		t.Error(err)
	}
	asked = 0
	d.Ask = func(string) ([]byte, error) { asked++; return nil, nil }
	if _, err := d.Deny(s.Context(), id, ""); codeOf(err) != CodeNoReason || asked != 0 {
		t.Errorf("%v, asked %d times although nothing was to be signed", err, asked)
	}
	if j := s.Job(id); j.Tainted || j.Status != lifecycle.Pending {
		t.Errorf("%+v", j)
	}
}

func TestRevokedPersonSignsNothing(t *testing.T) {
	s := newStage(t)
	id := ready(s, 1)
	d := desk(s, stage.Second)
	f := s.Trust()
	f.Version, f.Actors = 2, slices.DeleteFunc(slices.Clone(f.Actors), func(a events.Actor) bool { return a.Actor == stage.Second }) // the bus has not reloaded it yet
	s.AppendTrust(s.Root, f, s.Last(events.Filter("trust", "main")))
	if _, err := d.Approve(s.Context(), id); codeOf(err) != CodeNoRight {
		t.Error(err)
	}
	if j := s.Job(id); j.Tainted || s.Count("job.approved", id) != 0 {
		t.Errorf("%+v", j)
	}
}

// The person's clock is behind: what was stored too late does not count, and
// the person learns it.
func TestTooLateIsTold(t *testing.T) {
	s := newStage(t)
	id := ready(s, 1)
	d := desk(s, stage.Person)
	seq := s.Last("bm.>")
	if _, err := d.counted(s.Context(), id, seq); codeOf(err) != CodeTooLate {
		t.Error(err)
	}
}

func TestAmend(t *testing.T) {
	s := newStage(t)
	d := desk(s, stage.Person)
	line := s.Enrol("second-worker", events.RoleWorker)
	file, err := d.Amend(s.Context(), s.Root, func(f *events.TrustPublished) error { return AddActor(f, line) })
	if err != nil || file.Version != 2 {
		t.Fatalf("%+v, %v", file, err)
	}
	r := s.Standing("reader")
	stage.Must(t, r.Refresh(s.Context()))
	if a, ok := r.Book().Current().Find("second-worker"); !ok || a.Sign != line.Sign || len(r.Book().Current().Actors) != len(s.Trust().Actors)+1 {
		t.Errorf("%+v", r.Book().Current())
	}
	if file, err = d.Amend(s.Context(), s.Root, func(f *events.TrustPublished) error { return RevokeActor(f, "second-worker") }); err != nil || file.Version != 3 {
		t.Errorf("%+v, %v", file, err)
	}
	stage.Must(t, r.Refresh(s.Context()))
	if _, ok := r.Book().Current().Find("second-worker"); ok {
		t.Error("it is still there")
	}
}

func TestAmendNeedsTheRootKey(t *testing.T) {
	s := newStage(t)
	thief, err := keys.GenerateSigner()
	stage.Must(t, err)
	before := s.Last("bm.>")
	if _, err := desk(s, stage.Person).Amend(s.Context(), thief, func(*events.TrustPublished) error { return nil }); codeOf(err) != CodeWrongRoot {
		t.Error(err)
	}
	no := errors.New("no")
	if _, err := desk(s, stage.Person).Amend(s.Context(), s.Root, func(*events.TrustPublished) error { return no }); !errors.Is(err, no) {
		t.Error(err)
	}
	if s.Last("bm.>") != before {
		t.Error("something was stored")
	}
}

// Root may sign what the bus could not put into force, and would not start with.
func TestAmendRefusesWhatTheBusCannotUse(t *testing.T) {
	s := newStage(t)
	before := s.Last("bm.>")
	_, err := desk(s, stage.Person).Amend(s.Context(), s.Root, func(f *events.TrustPublished) error {
		a := s.Enrol("both", events.RoleWorker, events.RoleProposer)
		return AddActor(f, a)
	})
	if codeOf(err) != CodeBadActor || s.Last("bm.>") != before {
		t.Error(err)
	}
}

// A trust file stored at the same moment is not overwritten, and no version is
// given twice: that would stop every reader.
func TestConcurrentAmendments(t *testing.T) {
	s := newStage(t)
	var wg sync.WaitGroup
	for _, name := range []string{"w1", "w2", "w3", "w4", "w5", "w6"} {
		a, d := s.Enrol(name, events.RoleWorker), desk(s, stage.Person)
		wg.Go(func() {
			if _, err := d.Amend(s.Context(), s.Root, func(f *events.TrustPublished) error { return AddActor(f, a) }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := s.Conn("reader").Read(s.Context(), 1, events.Filter("trust", "main"), 64)
	stage.Must(t, err)
	book := trust.New(stage.Origin, s.Root.Public())
	for _, st := range list {
		if _, err := book.Open(st); err != nil {
			t.Error(err)
		}
	}
	if f := book.Current(); f.Version != 7 || len(f.Actors) != len(s.Trust().Actors)+6 {
		t.Errorf("version %d with %d actors", f.Version, len(f.Actors))
	}
}
