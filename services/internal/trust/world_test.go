package trust_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/trust"
)

const origin = "site-test"

// world is a site without a bus: real keys, and events stored one after the
// other.
type world struct {
	t       testing.TB
	seq     uint64
	version int
	root    *keys.Signer
	signers map[string]*keys.Signer
	actors  []events.Actor
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, root: signer(t), signers: map[string]*keys.Signer{}}
	w.enrol("proposer", nil, events.RoleProposer)
	w.enrol("gate", nil, events.RoleGate)
	w.enrol("p1", nil, events.RolePerson, events.RoleAdmin)
	w.enrol("worker", []string{"default", "gpu"}, events.RoleWorker)
	w.enrol("auditor", nil, events.RoleAuditor)
	w.enrol("reader", nil, events.RoleReader)
	return w
}

func signer(t testing.TB) *keys.Signer {
	s, err := keys.GenerateSigner()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) enrol(name string, pools []string, roles ...events.Role) {
	w.signers[name] = signer(w.t)
	w.actors = append(w.actors, events.Actor{Actor: name, Name: name, Roles: roles, Sign: string(w.signers[name].Public()), Pools: pools})
}

// book is an empty book of this site.
func (w *world) book() *trust.Book { return trust.New(origin, w.root.Public()) }

// trusted is a book with the site's first trust file.
func (w *world) trusted() *trust.Book {
	b := w.book()
	w.open(b, w.trust())
	return b
}

// trust stores the next trust file, after a change.
func (w *world) trust(change ...func(*events.TrustPublished)) events.Stored {
	w.version++
	p := events.TrustPublished{Version: w.version, Origin: origin, Actors: w.actors}
	for _, f := range change {
		f(&p)
	}
	return w.store("trust.published", "site", "main", "root", w.root, p)
}

// store makes the next stored event.
func (w *world) store(k events.Kind, scope, id, actor string, key *keys.Signer, payload any, forge ...func(*events.Message)) events.Stored {
	w.t.Helper()
	w.seq++
	s := events.For(k, scope, id, actor)
	m, err := events.New(origin, s, events.ID{Actor: actor, Session: hex.EncodeToString(make([]byte, 10)), N: w.seq}, time.Unix(1, 0), 0, payload)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range forge {
		f(&m)
	}
	m.Sign(origin, string(key.Public()), key.Sign)
	return w.stored(m)
}

func (w *world) stored(m events.Message) events.Stored {
	return events.Stored{Seq: w.seq, Time: time.Unix(int64(w.seq), 0), Subject: m.Subject.String(), Header: m.Header, Data: m.Data}
}

// say stores an event that its actor has signed.
func (w *world) say(k events.Kind, scope, actor string, payload any) events.Stored {
	return w.store(k, scope, "j1", actor, w.signers[actor], payload)
}

func (w *world) open(b *trust.Book, st events.Stored) events.Event {
	w.t.Helper()
	e, err := b.Open(st)
	if err != nil {
		w.t.Fatalf("event %d on %s: %v", st.Seq, st.Subject, err)
	}
	return e
}

func proposal() events.JobProposed {
	return events.JobProposed{Argv: []string{"true"}, Cwd: "/", Pool: "default", TimeoutS: 1, MaxAttempts: 1, ExpiresS: 1}
}
