package auditor

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/view"
)

func isReady(ready bool, _ string) bool { return ready }

func (s *testSite) ask(subject string, q, into any) {
	s.t.Helper()
	if err := s.conn(s.plan.Person).Ask(s.t.Context(), subject, q, into); err != nil {
		s.t.Fatalf("ask %s: %v", subject, err)
	}
}

func TestSealsAndAnswers(t *testing.T) {
	s := newSite(t)
	a := s.audit(nil)
	a.until(t, "readiness", isReady)
	j := s.propose("aaa1")
	var d view.Detail
	s.ask(query.Get, query.GetRequest{Job: "aaa1"}, &d)
	if d.Status != lifecycle.Proposed || d.Argv[0] != "/bin/true" {
		t.Errorf("right after the proposal: %+v", d)
	}
	s.approve(j)
	s.sealed(j.approved)
	var ready query.ReadyJobs
	if err := s.conn("worker").Ask(t.Context(), query.Ready+".default", query.ReadyRequest{Limit: 5}, &ready); err != nil || !slices.Equal(ready.Jobs, []string{"aaa1"}) {
		t.Errorf("ready %v, %v", ready, err)
	}
	s.propose("aaa2")
	var list view.List
	s.ask(query.Jobs, query.List{Status: []lifecycle.Status{lifecycle.Proposed, lifecycle.Pending}}, &list)
	if len(list.Jobs) != 1 || list.Jobs[0].Job != "aaa2" {
		t.Errorf("open jobs %+v", list)
	}
	s.ask(query.Jobs, query.List{Limit: 1}, &list)
	if len(list.Jobs) != 1 || list.Jobs[0].Job != "aaa2" || !list.More {
		t.Errorf("the newest %+v", list)
	}
	s.finish(j)
	s.ask(query.Get, query.GetRequest{Job: "aaa1"}, &d)
	if d.Status != lifecycle.Succeeded {
		t.Errorf("after its end: %+v", d)
	}
	for prefix, code := range map[string]string{"aaa": "ambiguous_prefix", "zzz": "unknown_job", "": "unknown_job"} {
		var remote *bus.RemoteError
		if err := s.conn(s.plan.Person).Ask(t.Context(), query.Get, query.GetRequest{Job: prefix}, &d); !errors.As(err, &remote) || remote.Code != code {
			t.Errorf("%q: %v", prefix, err)
		}
		if prefix == "aaa" && remote != nil && !strings.Contains(remote.Message, "aaa1, aaa2") {
			t.Errorf("candidates: %v", remote)
		}
	}
	s.sealed(j.last)
	var status query.AuditStatus
	s.ask(query.Audit, struct{}{}, &status)
	if status.ThroughSeq < j.last || status.Dispatch != dispatchOpen || status.Violations != 0 || status.Gaps != 0 || status.SealedAt.IsZero() ||
		status.Bytes == 0 || status.MaxBytes != s.busCfg.MaxBytes {
		t.Errorf("status %+v", status)
	}
	s.checkView("aaa1", lifecycle.Succeeded)
	if r := s.verify(); r.ExitCode() != 0 {
		t.Errorf("verify beside the live auditor: %+v", r)
	}
	a.stop(t)
	if r := s.verify(); r.ExitCode() != 0 || len(r.Notes) > 0 {
		t.Errorf("verify after the end: %+v", r)
	}
	s.checkSeals()
}

// checkView waits for the key-value view, which may lag.
func (s *testSite) checkView(job string, want lifecycle.Status) {
	s.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		value, found, err := s.conn("reader").Jobs().Get(s.t.Context(), job)
		var d view.Detail
		if err == nil && found && json.Unmarshal(value, &d) == nil && d.Status == want {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the view holds %s, %v, %v", value, found, err)
		}
	}
}

// checkSeals checks that the auditor does not talk to itself: there are no more heads
// than other events, and they only grow.
func (s *testSite) checkSeals() {
	s.t.Helper()
	sealed, _, _ := s.audits()
	last, err := s.conn("reader").LastSeq(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if others := int(last) - len(sealed); len(sealed) == 0 || len(sealed) > others {
		s.t.Errorf("%d heads for %d other events", len(sealed), others)
	}
	for i := 1; i < len(sealed); i++ {
		if sealed[i].Size <= sealed[i-1].Size || sealed[i].ThroughSeq <= sealed[i-1].ThroughSeq {
			s.t.Errorf("head %d goes back: %+v after %+v", i, sealed[i], sealed[i-1])
		}
	}
}

// TestRestartKeepsAndRemakes: an auditor that stops and starts goes on; one that has
// lost its index makes the same one; one that has lost its log writes the same one.
func TestRestartKeepsAndRemakes(t *testing.T) {
	s := newSite(t)
	a := s.audit(nil)
	var jobs []*story
	for i := range 12 {
		j := s.propose(fmt.Sprintf("job%d", i))
		s.approve(j)
		if i%3 == 0 {
			s.sealed(j.approved)
			s.finish(j)
		}
		jobs = append(jobs, j)
	}
	s.sealed(jobs[11].last)
	a.stop(t)
	kept := s.dump()
	for _, lose := range []string{"", s.layout.AuditIndex()} {
		if lose != "" {
			if err := os.Remove(lose); err != nil {
				t.Fatal(err)
			}
		}
		a = s.audit(nil)
		a.until(t, "readiness", isReady)
		a.stop(t)
		if again := s.dump(); again != kept {
			t.Errorf("after losing %q the index differs:\n%s\n%s", lose, again, kept)
		}
	}
	whole, err := os.ReadFile(filepath.Join(s.layout.AuditLog(), "entries.log"))
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(s.layout.Dir, "state")
	if err := errors.Join(os.RemoveAll(filepath.Join(state, "audit")), os.RemoveAll(filepath.Join(state, "head"))); err != nil {
		t.Fatal(err)
	}
	a = s.audit(nil)
	a.until(t, "the bucket, which knows that there was a log", stands(faultRollback))
	a.stop(t)
	r, err := s.rebuild(func(o *RebuildOptions) { o.Replace, o.Elsewhere = true, true })
	if err != nil || r.Log != missing {
		t.Fatalf("%+v, %v", r, err)
	}
	a = s.audit(nil)
	a.until(t, "readiness", isReady)
	j := s.propose("one-more")
	s.sealed(j.last)
	a.stop(t)
	again, err := os.ReadFile(filepath.Join(s.layout.AuditLog(), "entries.log"))
	if err != nil || !bytes.HasPrefix(again, whole) {
		t.Errorf("a log made again from the stream differs, %v", err)
	}
	if r := s.verify(); r.ExitCode() != 0 {
		t.Errorf("verify: %+v", r)
	}
}

// dump is everything that the index says.
func (s *testSite) dump() string {
	s.t.Helper()
	return dumpIndex(s.t, s.layout.AuditIndex())
}

// forged is a proposal that the proposer's key did not sign, as who can write to the
// store would put it there.
func (s *testSite) forged(job string) uint64 {
	s.t.Helper()
	key := signer(s.t)
	id := events.ID{Actor: "proposer", Session: "ffffffffffffffffffff", N: 1}
	m, err := events.New(s.plan.Origin, events.For("job.proposed", "default", job, "proposer"), id, time.Now(), 0, proposal(job))
	if err != nil {
		s.t.Fatal(err)
	}
	m.Sign(s.plan.Origin, string(key.Public()), key.Sign)
	seq, err := s.conn("proposer").AppendRaw(s.t.Context(), m)
	if err != nil {
		s.t.Fatal(err)
	}
	return seq
}

func TestViolationIsReportedOnce(t *testing.T) {
	s := newSite(t)
	bad := s.forged("bad")
	isReport := func(p any) bool {
		v, ok := p.(*events.AuditViolationFound)
		return ok && v.Seq == bad && v.Code == "wrong_key" && v.Job == "bad"
	}
	for i := range 3 {
		a := s.audit(nil)
		a.until(t, "readiness", isReady)
		s.heard("the report", isReport)
		j := s.propose(fmt.Sprintf("good%d", i))
		s.sealed(j.last)
		a.stop(t)
		if i == 1 {
			if err := os.Remove(s.layout.AuditIndex()); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, violations, _ := s.audits()
	if len(violations) != 1 {
		t.Errorf("%d reports: %+v", len(violations), violations)
	}
	a := s.audit(nil)
	a.until(t, "readiness", isReady)
	var d view.Detail
	s.ask(query.Get, query.GetRequest{Job: "bad"}, &d)
	if d.Tainted != "wrong_key" {
		t.Errorf("the job: %+v", d)
	}
	if r := s.verify(); verdicts(r) != "IaCF" || r.Unreported != 0 {
		t.Errorf("verify: %s %+v", verdicts(r), r)
	}
}

// holey hides a sequence.
type holey struct {
	Stream
	hide uint64
}

func (h holey) Follow(ctx context.Context, from uint64, filter string, handle func(events.Stored) error) error {
	return h.Stream.Follow(ctx, from, filter, func(st events.Stored) error {
		if st.Seq == h.hide {
			return nil
		}
		return handle(st)
	})
}

func TestGapClosesDispatch(t *testing.T) {
	s := newSite(t)
	lost := s.propose("lost")
	j := s.propose("next")
	s.approve(j)
	hide := func(in Stream) Stream { return holey{in, lost.proposed} }
	a := s.audit(hide)
	closed := func(ready bool, reason string) bool { return !ready && strings.Contains(reason, "gap") }
	a.until(t, "the gap on the board", closed)
	s.heard("the gap", func(p any) bool {
		g, ok := p.(*events.AuditGapFound)
		return ok && g.From == lost.proposed && g.To == lost.proposed
	})
	s.heard("closed dispatch", func(p any) bool {
		h, ok := p.(*events.AuditSealed)
		return ok && h.Dispatch == dispatchClosed && h.ThroughSeq >= j.approved
	})
	for i := range 2 { // also over a restart
		var ready query.ReadyJobs
		if err := s.conn("worker").Ask(t.Context(), query.Ready+".default", query.ReadyRequest{}, &ready); err != nil || len(ready.Jobs) != 0 {
			t.Errorf("run %d: ready %v, %v", i, ready, err)
		}
		var status query.AuditStatus
		s.ask(query.Audit, struct{}{}, &status)
		if status.Dispatch != dispatchClosed || status.Gaps != 1 || status.Violations == 0 {
			t.Errorf("run %d: status %+v", i, status)
		}
		a.stop(t)
		if i == 0 {
			a = s.audit(nil)
			a.until(t, "the gap on the board", closed)
		}
	}
	_, violations, gaps := s.audits()
	if len(gaps) != 1 || len(violations) != 1 || violations[0].Code != codeSessionHole {
		t.Errorf("gaps %+v, violations %+v", gaps, violations)
	}
	if r := s.verify(); verdicts(r) != "IAcF" || len(r.Gaps) != 1 {
		t.Errorf("verify: %s %+v", verdicts(r), r)
	}
	a = s.audit(nil)
	a.until(t, "the gap on the board", closed)
	s.acknowledge("lost by a test")
	a.until(t, "readiness", isReady)
	var ready query.ReadyJobs
	if err := s.conn("worker").Ask(t.Context(), query.Ready+".default", query.ReadyRequest{}, &ready); err != nil || !slices.Equal(ready.Jobs, []string{j.id}) {
		t.Errorf("after the word of an admin: ready %v, %v", ready, err)
	}
	if r := s.verify(); verdicts(r) != "IACF" || r.ExitCode() != 0 || !strings.Contains(r.Completeness.Reason, "intact with 1 acknowledged gap(s), 1 sequence(s)") || r.Gaps[0].Acknowledged == 0 {
		t.Errorf("verify: %s %+v", verdicts(r), r)
	}
}

// acknowledge is an admin's word about every fault that the auditor lists.
func (s *testSite) acknowledge(reason string) {
	s.t.Helper()
	subject := events.For("gap.acknowledged", events.SiteScope, site.Epoch, s.plan.Person)
	last, _, err := s.conn("reader").Last(s.t.Context(), subject.Filter())
	if err != nil {
		s.t.Fatal(err)
	}
	word := events.GapAcknowledged{Reason: reason}
	for _, f := range s.faults() {
		if !f.Acknowledgeable {
			s.t.Errorf("%+v cannot be acknowledged", f)
		}
		word.Faults = append(word.Faults, events.FaultName{Code: f.Code, Seq: f.Seq, To: f.To})
	}
	s.say(s.plan.Person, subject, last.Seq, word)
}

// faults is what holds dispatch closed.
func (s *testSite) faults() []query.Fault {
	s.t.Helper()
	var status query.AuditStatus
	s.ask(query.Audit, struct{}{}, &status)
	return status.Faults
}

// other shows another stream than the audited one.
type other struct {
	Stream
	last  uint64
	alter bool
	state func(*bus.State)
}

func (o other) StreamState(ctx context.Context) (bus.State, error) {
	s, err := o.Stream.StreamState(ctx)
	if o.state != nil {
		o.state(&s)
	}
	return s, err
}

func (o other) LastSeq(ctx context.Context) (uint64, error) {
	if o.last > 0 {
		return o.last, nil
	}
	return o.Stream.LastSeq(ctx)
}

func (o other) Read(ctx context.Context, from uint64, filter string, limit int) ([]events.Stored, error) {
	page, err := o.Stream.Read(ctx, from, filter, limit)
	if o.alter && len(page) > 0 {
		page[0].Data = append(page[0].Data, ' ')
	}
	return page, err
}

func TestIntegrityFaultsCloseDispatch(t *testing.T) {
	for name, c := range map[string]struct {
		see  func(Stream) Stream
		do   func(t *testing.T, s *testSite)
		code string
	}{
		"the stream went back": {see: func(s Stream) Stream {
			return other{Stream: s, last: 2, state: func(s *bus.State) { s.Messages, s.Last = 2, 2 }}
		}, code: faultRollback},
		"the stream was written anew": {see: func(s Stream) Stream { return other{Stream: s, alter: true} }, code: faultFork},
		"events were deleted": {see: func(s Stream) Stream {
			return other{Stream: s, state: func(s *bus.State) { s.Messages--; s.Deleted++ }}
		}, code: faultStream},
		"the tail was cut": {see: func(s Stream) Stream {
			return other{Stream: s, state: func(s *bus.State) { s.Messages, s.Last = 2, 2 }}
		}, code: faultRollback},
		"the log was lost": {do: func(t *testing.T, s *testSite) {
			if err := os.RemoveAll(s.layout.AuditLog()); err != nil {
				t.Fatal(err)
			}
		}, code: faultRollback},
		"the log was changed": {do: func(t *testing.T, s *testSite) {
			edit(t, filepath.Join(s.layout.AuditLog(), "entries.log"), func(b []byte) []byte {
				b[len(b)/2] ^= 1
				return b
			})
			for _, name := range []string{"jobs", "hashes", "offsets"} { // so that the log looks at all of it
				if err := os.Remove(filepath.Join(s.layout.AuditLog(), name)); err != nil {
					t.Fatal(err)
				}
			}
		}, code: faultLog},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			a := s.audit(nil)
			j := s.propose("a")
			s.sealed(j.last)
			a.stop(t)
			before, _, _ := s.audits()
			if c.do != nil {
				c.do(t, s)
			}
			a = s.audit(c.see)
			a.until(t, "the fault", func(ready bool, reason string) bool { return !ready && strings.Contains(reason, "fault "+c.code) })
			s.heard("closed dispatch", func(p any) bool {
				h, ok := p.(*events.AuditSealed)
				return ok && h.Dispatch == dispatchClosed && (h.Size == before[len(before)-1].Size || c.code == faultStream)
			})
			a.stop(t)
		})
	}
}

// broken is a line that can break, with another stream behind it afterwards.
type broken struct {
	Stream
	mu     *sync.Mutex
	notify *func(bool)
	alter  *bool
}

func (b broken) Notify(f func(bool)) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if *b.notify == nil {
		*b.notify = f
	}
	return b.Stream.Notify(f)
}

func (b broken) Read(ctx context.Context, from uint64, filter string, limit int) ([]events.Stored, error) {
	b.mu.Lock()
	alter := *b.alter
	b.mu.Unlock()
	return other{Stream: b.Stream, alter: alter}.Read(ctx, from, filter, limit)
}

// TestOtherStreamAfterReconnect: a bus that comes back with another history of the same
// length is found by the last event that was sealed before.
func TestOtherStreamAfterReconnect(t *testing.T) {
	s := newSite(t)
	var notify func(bool)
	alter := false
	line := broken{mu: &sync.Mutex{}, notify: &notify, alter: &alter}
	a := s.audit(func(in Stream) Stream { line.Stream = in; return line })
	j := s.propose("a")
	s.sealed(j.last)
	a.until(t, "readiness", isReady)
	say := func(connected, altered bool) {
		line.mu.Lock()
		alter = altered
		f := notify
		line.mu.Unlock()
		f(connected)
	}
	say(false, false)
	say(true, false)
	j = s.propose("b")
	s.sealed(j.last)
	a.until(t, "readiness", isReady)
	say(false, true)
	say(true, true)
	a.until(t, "the fault", func(ready bool, reason string) bool { return !ready && strings.Contains(reason, faultFork) })
}

func TestRevokedCheckpointKeySealsNothing(t *testing.T) {
	s := newSite(t)
	root := s.key("root")
	file := s.trust()
	file.Version, file.CheckpointKeys = 2, nil
	filter := events.Filter("trust", events.TrustID)
	last, _, err := s.conn("reader").Last(t.Context(), filter)
	if err != nil {
		t.Fatal(err)
	}
	m, err := events.New(s.plan.Origin, events.For("trust.published", events.SiteScope, events.TrustID, "root"), events.ID{Actor: "root", Session: "eeeeeeeeeeeeeeeeeeee", N: 1}, time.Now(), last.Seq, file)
	if err != nil {
		t.Fatal(err)
	}
	m.Sign(s.plan.Origin, string(root.Public()), root.Sign)
	if _, err := s.conn(s.plan.Person).AppendRaw(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	a := s.audit(nil)
	a.until(t, "the fault", func(ready bool, reason string) bool { return !ready && strings.Contains(reason, faultKey) })
	sealed, _, _ := s.audits()
	for _, h := range sealed {
		if h.Dispatch == dispatchOpen {
			t.Errorf("a head was published: %+v", h)
		}
	}
}

// TestVerifyBesideLoad: a verification beside a busy auditor finds nothing wrong.
func TestVerifyBesideLoad(t *testing.T) {
	s := newSite(t)
	a := s.audit(nil)
	a.until(t, "readiness", isReady)
	s.conn("reader")
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				s.approve(s.propose(fmt.Sprintf("job%d", i)))
			}
		}
	}()
	for range 10 {
		if r := s.verify(); r.ExitCode() != 0 {
			t.Errorf("verify: %s %+v", verdicts(r), r)
			break
		}
	}
	close(stop)
	<-done
}
