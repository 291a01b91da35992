package jobs_test

import (
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/trust"
)

const origin = "site-test"

// history is one job's stored events, as honest and other writers left them.
type history struct {
	t       testing.TB
	book    *trust.Book
	signers map[string]*keys.Signer
	seq     uint64
	last    uint64
	list    []events.Stored
}

func newHistory(t testing.TB) *history {
	h := &history{t: t, signers: map[string]*keys.Signer{}}
	file := events.TrustPublished{Version: 1, Origin: origin}
	for name, role := range map[string]events.Role{"proposer": events.RoleProposer, "gate": events.RoleGate, "worker": events.RoleWorker, "root": events.RoleRoot} {
		s, err := keys.GenerateSigner()
		if err != nil {
			t.Fatal(err)
		}
		h.signers[name] = s
		if role != events.RoleRoot {
			file.Actors = append(file.Actors, events.Actor{Actor: name, Roles: []events.Role{role}, Sign: string(s.Public())})
		}
	}
	h.book = trust.New(origin, h.signers["root"].Public())
	st := h.event("trust.published", "site", "main", "root", file)
	if _, err := h.book.Open(st); err != nil {
		t.Fatal(err)
	}
	return h
}

// event makes a stored event; change may spoil it before or after it is signed.
func (h *history) event(k events.Kind, scope, id, actor string, payload any, before ...func(*events.Message)) events.Stored {
	h.t.Helper()
	h.seq++
	m, err := events.New(origin, events.For(k, scope, id, actor), events.ID{Actor: actor, Session: hex.EncodeToString(make([]byte, 10)), N: h.seq}, time.Unix(1, 0), h.last, payload)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range before {
		f(&m)
	}
	m.Sign(origin, string(h.signers[actor].Public()), h.signers[actor].Sign)
	return events.Stored{Seq: h.seq, Time: time.Unix(int64(h.seq), 0).UTC(), Subject: m.Subject.String(), Header: m.Header, Data: m.Data}
}

// add stores an event of the job.
func (h *history) add(k events.Kind, actor string, payload any, before ...func(*events.Message)) *events.Stored {
	st := h.event(k, "default", "j1", actor, payload, before...)
	h.list, h.last = append(h.list, st), st.Seq
	return &h.list[len(h.list)-1]
}

func (h *history) propose() string {
	p := events.JobProposed{Argv: []string{"true"}, Cwd: "/", Pool: "default", TimeoutS: 1, MaxAttempts: 1, ExpiresS: 100}
	return events.Digest(h.add("job.proposed", "proposer", p).Data)
}

func (h *history) deny(proposal string) events.JobDenied {
	return events.JobDenied{Proposal: proposal, Basis: "policy", Ruling: events.Ruling{Code: "rule", Reason: "no"}}
}

func (h *history) fold(findings int) (lifecycle.Job, []jobs.Finding) {
	h.t.Helper()
	j, found := jobs.Fold(h.book, h.list)
	if len(found) != findings {
		h.t.Fatalf("%d findings, want %d: %+v", len(found), findings, found)
	}
	if j.LastSeq != h.last {
		h.t.Errorf("the job stands at %d, its last event is %d: nobody could append to it", j.LastSeq, h.last)
	}
	return j, found
}

func TestFoldOfHonestEvents(t *testing.T) {
	h := newHistory(t)
	h.add("job.denied", "gate", h.deny(h.propose()))
	if j, _ := h.fold(0); j.ID != "j1" || j.Status != lifecycle.Denied || j.DeniedBy != "gate" || j.Tainted || j.Unreadable {
		t.Errorf("%+v", j)
	}
}

func TestForgeryTaintsAndChangesNothing(t *testing.T) {
	h := newHistory(t)
	digest := h.propose()
	st := h.add("job.denied", "gate", h.deny(digest))
	st.Data = append(slices.Clone(st.Data), ' ') // the signature is over other bytes
	j, found := h.fold(1)
	if j.Status != lifecycle.Proposed || !j.Tainted || j.TaintCode != trust.CodeBadSignature || j.TaintSeq != st.Seq {
		t.Errorf("%+v", j)
	}
	if f := found[0]; f.Code != trust.CodeBadSignature || f.Seq != st.Seq || !f.Taints || f.Detail == "" {
		t.Errorf("%+v", f)
	}
	h.add("job.denied", "gate", h.deny(digest)) // it may still be denied
	if j, _ := h.fold(1); j.Status != lifecycle.Denied {
		t.Errorf("%+v", j)
	}
}

func TestForgedBeginning(t *testing.T) {
	h := newHistory(t)
	h.propose()
	h.list[0].Header[events.HeaderSignature] = nil
	j, found := h.fold(1)
	if j.Proposal != nil || j.Status != lifecycle.None || !j.Tainted || found[0].Code != trust.CodeMalformed {
		t.Errorf("%+v, %+v", j, found)
	}
}

func TestMalformedAndWithoutRight(t *testing.T) {
	h := newHistory(t)
	digest := h.propose()
	h.add("job.denied", "gate", h.deny(digest)).Header[events.HeaderExpect] = []string{"x"}
	h.add("job.denied", "worker", h.deny(digest))
	j, found := h.fold(2)
	if found[0].Code != trust.CodeMalformed || found[1].Code != trust.CodeNoRight || j.TaintCode != trust.CodeMalformed || j.Status != lifecycle.Proposed {
		t.Errorf("%+v, %+v", j, found)
	}
}

// A slow writer is refused and reported; the job goes on.
func TestRefusalOfTheFoldIsAFinding(t *testing.T) {
	h := newHistory(t)
	digest := h.propose()
	h.add("job.denied", "gate", h.deny(digest))
	h.add("job.denied", "gate", h.deny(digest))
	j, found := h.fold(1)
	if found[0].Code != lifecycle.CodeIllegal || found[0].Taints || j.Tainted || j.Status != lifecycle.Denied {
		t.Errorf("%+v, %+v", j, found)
	}
	h.add("job.denied", "gate", h.deny("another")) // names another proposal: no slowness does that
	if j, found := h.fold(2); found[1].Code != lifecycle.CodeOtherProposal || !found[1].Taints || !j.Tainted {
		t.Errorf("%+v, %+v", j, found)
	}
}

func TestNewerVersionMakesUnreadable(t *testing.T) {
	h := newHistory(t)
	digest := h.propose()
	st := h.add("job.denied", "gate", h.deny(digest), func(m *events.Message) {
		m.Header[events.HeaderDataSchema] = []string{events.SchemaURI("job.denied", 9)}
	})
	j, _ := h.fold(0)
	if !j.Unreadable || j.Tainted || j.Status != lifecycle.Proposed || !j.UpdatedAt.Equal(st.Time) {
		t.Errorf("%+v", j)
	}
	// What follows may be right for all this reader knows: it does not taint.
	h.add("job.denied", "gate", h.deny("another"))
	if j, found := h.fold(1); j.Tainted || found[0].Taints {
		t.Errorf("%+v, %+v", j, found)
	}
}
