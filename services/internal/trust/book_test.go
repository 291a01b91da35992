package trust_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/trust"
)

// refused wants a violation with a code that names the event.
func refused(t *testing.T, b *trust.Book, st events.Stored, code string) {
	t.Helper()
	_, err := b.Open(st)
	var v *trust.Violation
	if !errors.As(err, &v) || v.Code != code || v.Seq != st.Seq || v.Detail == "" {
		t.Errorf("event %d on %s: %v, want code %s", st.Seq, st.Subject, err, code)
	}
}

func TestBelievesWhatTheRightActorSigned(t *testing.T) {
	w := newWorld(t)
	b := w.trusted()
	for _, st := range []events.Stored{
		w.say("job.proposed", "default", "proposer", proposal()),
		w.say("job.approved", "default", "gate", events.JobApproved{Basis: "policy"}),
		w.say("job.approved", "default", "p1", events.JobApproved{Basis: "person"}),
		w.say("job.denied", "default", "gate", events.JobDenied{Basis: "policy"}),
		w.say("job.denied", "default", "p1", events.JobDenied{Basis: "person"}),
		w.say("job.started", "gpu", "worker", events.JobStarted{}),
		w.say("worker.started", "gpu", "worker", events.WorkerStarted{}),
		w.say("policy.published", "site", "p1", events.PolicyPublished{}),
	} {
		w.open(b, st)
	}
}

func TestEveryForgeryHasItsCode(t *testing.T) {
	w := newWorld(t)
	b := w.trusted()
	gate, person, stranger := w.signers["gate"], w.signers["p1"], signer(t)
	yes := func(basis string) events.JobApproved { return events.JobApproved{Basis: basis} }
	for what, c := range map[string]struct {
		st   events.Stored
		code string
	}{
		"an actor nobody enrolled":        {w.store("job.proposed", "default", "j1", "nobody", stranger, proposal()), trust.CodeUnknownActor},
		"a key nobody enrolled":           {w.store("job.approved", "default", "j1", "p1", stranger, yes("person")), trust.CodeWrongKey},
		"the key of another actor":        {w.store("job.approved", "default", "j1", "p1", gate, yes("person")), trust.CodeWrongKey},
		"the root key for a person":       {w.store("job.approved", "default", "j1", "p1", w.root, yes("person")), trust.CodeWrongKey},
		"an actor without a signing key":  {w.store("job.approved", "default", "j1", "reader", signer(t), yes("person")), trust.CodeWrongKey},
		"a role without the right":        {w.say("job.approved", "default", "proposer", yes("person")), trust.CodeNoRight},
		"a reader that publishes":         {w.say("job.proposed", "default", "reader", proposal()), trust.CodeNoRight},
		"a gate that claims to be human":  {w.say("job.approved", "default", "gate", yes("person")), trust.CodeWrongBasis},
		"a gate without a basis":          {w.say("job.approved", "default", "gate", yes("")), trust.CodeWrongBasis},
		"a person that claims the policy": {w.say("job.approved", "default", "p1", yes("policy")), trust.CodeWrongBasis},
		"a denial in another's name":      {w.say("job.denied", "default", "gate", events.JobDenied{Basis: "person"}), trust.CodeWrongBasis},
		"a worker in another's pool":      {w.say("job.started", "other", "worker", events.JobStarted{}), trust.CodeWrongPool},
		"a worker that joins another":     {w.say("worker.started", "other", "worker", events.WorkerStarted{}), trust.CodeWrongPool},
		"a person with a trust file":      {w.store("trust.published", "site", "main", "p1", person, events.TrustPublished{Version: 2, Origin: origin}), trust.CodeNoRight},
		"a person in the root's place":    {w.store("trust.published", "site", "main", "root", person, events.TrustPublished{Version: 2, Origin: origin}), trust.CodeWrongKey},
		"the root where nobody looks":     {w.store("trust.published", "site", "other", "root", w.root, events.TrustPublished{Version: 2, Origin: origin}), trust.CodeMalformed},
		"the root with another matter":    {w.store("policy.published", "site", "main", "root", w.root, events.PolicyPublished{}), trust.CodeUnknownActor},
	} {
		t.Run(what, func(t *testing.T) { refused(t, b, c.st, c.code) })
	}
}

// Root may be enrolled under its own name; that gives it no more than its own
// kind.
func TestRootInTheTrustFileMayPublishNothingElse(t *testing.T) {
	w := newWorld(t)
	w.actors = append(w.actors, events.Actor{Actor: "root", Roles: []events.Role{events.RoleRoot}, Sign: string(w.root.Public())})
	b := w.trusted()
	refused(t, b, w.store("policy.published", "site", "main", "root", w.root, events.PolicyPublished{}), trust.CodeNoRight)
}

func TestSignatureBindsEveryPart(t *testing.T) {
	w := newWorld(t)
	b := w.trusted()
	good := w.say("job.proposed", "default", "proposer", proposal())
	w.open(b, good)
	for what, spoil := range map[string]struct {
		do   func(*events.Stored)
		code string
	}{
		"payload": {func(st *events.Stored) { st.Data = []byte(strings.Replace(string(st.Data), "true", "evil", 1)) }, trust.CodeBadSignature},
		"subject": {func(st *events.Stored) {
			st.Subject = strings.Replace(st.Subject, ".j1.", ".j2.", 1)
			st.Header[events.HeaderExpectFilter] = []string{events.Filter("job", "j2")}
		}, trust.CodeBadSignature},
		"time":     {func(st *events.Stored) { st.Header[events.HeaderTime] = []string{"2030-01-01T00:00:00Z"} }, trust.CodeBadSignature},
		"id":       {func(st *events.Stored) { st.Header[events.HeaderID] = []string{"proposer.00000000000000000000.9"} }, trust.CodeBadSignature},
		"position": {func(st *events.Stored) { st.Header[events.HeaderExpect] = []string{"7"} }, trust.CodeBadSignature},
		"origin":   {func(st *events.Stored) { st.Header[events.HeaderSource] = []string{events.Source("other", "proposer")} }, trust.CodeMalformed},
		"extra":    {func(st *events.Stored) { st.Header["ce-extra"] = []string{"x"} }, trust.CodeBadSignature},
		"none":     {func(st *events.Stored) { delete(st.Header, events.HeaderSignature) }, trust.CodeMalformed},
		"zeroes": {func(st *events.Stored) {
			st.Header[events.HeaderSignature] = []string{events.Signature{Key: string(w.signers["proposer"].Public()), Sig: make([]byte, 64)}.String()}
		}, trust.CodeBadSignature},
	} {
		t.Run(what, func(t *testing.T) {
			st := good
			st.Header = map[string][]string{}
			for k, v := range good.Header {
				st.Header[k] = v
			}
			spoil.do(&st)
			refused(t, b, st, spoil.code)
		})
	}
}

// An event of another site with the same keys and names is no event of this.
func TestOtherSite(t *testing.T) {
	w := newWorld(t)
	w.trusted()
	st := w.say("job.proposed", "default", "proposer", proposal())
	other := trust.New("site-other", w.root.Public())
	refused(t, other, st, trust.CodeMalformed)
}

func TestEventIsJudgedByTheFileInForceThen(t *testing.T) {
	w := newWorld(t)
	b := w.book()
	early := w.say("job.proposed", "default", "proposer", proposal())
	refused(t, b, early, trust.CodeNoTrust)
	w.open(b, w.trust())
	refused(t, b, early, trust.CodeNoTrust) // also with a file known since

	before := w.say("job.denied", "default", "p1", events.JobDenied{Basis: "person"})
	soon := w.store("job.denied", "default", "j1", "p2", signer(t), events.JobDenied{Basis: "person"})
	_, known := w.signers["p2"]
	if known {
		t.Fatal("p2 is enrolled already")
	}
	w.actors = w.actors[:0:0]
	w.enrol("p2", nil, events.RolePerson)
	w.open(b, w.trust()) // p1 is revoked, p2 is new
	after := w.say("job.denied", "default", "p1", events.JobDenied{Basis: "person"})
	w.open(b, before)
	refused(t, b, soon, trust.CodeUnknownActor)
	refused(t, b, after, trust.CodeUnknownActor)
	w.open(b, w.say("job.denied", "default", "p2", events.JobDenied{Basis: "person"}))
}

func TestReplacedKey(t *testing.T) {
	w := newWorld(t)
	b := w.trusted()
	old := w.signers["proposer"]
	w.signers["proposer"] = signer(t)
	w.actors[0].Sign = string(w.signers["proposer"].Public())
	refused(t, b, w.say("job.proposed", "default", "proposer", proposal()), trust.CodeWrongKey)
	w.actors = append([]events.Actor(nil), w.actors...)
	w.open(b, w.trust())
	w.open(b, w.say("job.proposed", "default", "proposer", proposal()))
	refused(t, b, w.store("job.proposed", "default", "j1", "proposer", old, proposal()), trust.CodeRetiredKey)
}

// TestRotatedKey: the old key and the new one both count until the old one is retired.
func TestRotatedKey(t *testing.T) {
	w := newWorld(t)
	b := w.trusted()
	old, next := w.signers["proposer"], signer(t)
	amend := func(sign, before string) {
		w.actors = append([]events.Actor(nil), w.actors...)
		w.actors[0].Sign, w.actors[0].OldSign = sign, before
		w.open(b, w.trust())
	}
	say := func(key *keys.Signer) events.Stored {
		return w.store("job.proposed", "default", "j1", "proposer", key, proposal())
	}
	refused(t, b, say(next), trust.CodeWrongKey)
	amend(string(next.Public()), string(old.Public()))
	first := say(old)
	w.open(b, first)
	w.open(b, say(next))
	refused(t, b, say(signer(t)), trust.CodeWrongKey)
	amend(string(next.Public()), "")
	w.open(b, say(next))
	refused(t, b, say(old), trust.CodeRetiredKey)
	w.open(b, first) // where it stands, it stays believed
	amend(string(signer(t).Public()), "")
	refused(t, b, say(old), trust.CodeRetiredKey)
}

func TestTrustFilesFollowEachOther(t *testing.T) {
	w := newWorld(t)
	b := w.book()
	refused(t, b, w.trust(func(p *events.TrustPublished) { p.Version = 0 }), trust.CodeTrustVersion)
	w.version = 0
	first := w.trust()
	w.open(b, first)
	if got := b.Current(); got == nil || got.Version != 1 {
		t.Fatalf("current is %+v", got)
	}
	gap := w.trust(func(p *events.TrustPublished) { p.Version = 3 })
	refused(t, b, gap, trust.CodeTrustVersion)
	foreign := w.trust(func(p *events.TrustPublished) { p.Version, p.Origin = 2, "site-other" })
	refused(t, b, foreign, trust.CodeTrustVersion)
	w.version = 1
	second := w.trust()
	w.open(b, second)
	w.open(b, w.trust())
	again := second
	w.seq++
	again.Seq = w.seq
	refused(t, b, again, trust.CodeTrustVersion) // an old file stored once more takes nothing back

	// Showing a file twice changes nothing, and what was refused stays so.
	w.open(b, first)
	w.open(b, second)
	refused(t, b, gap, trust.CodeTrustVersion)
	refused(t, b, foreign, trust.CodeTrustVersion)
	if got := b.Current(); got.Version != 3 {
		t.Errorf("current is version %d, want 3", got.Version)
	}
}

// versionOf makes an event of a version that this banksman does not know.
func versionOf(k events.Kind) func(*events.Message) {
	return func(m *events.Message) { m.Header[events.HeaderDataSchema] = []string{events.SchemaURI(k, 99)} }
}

func TestNewerVersionIsJudgedAllTheSame(t *testing.T) {
	w := newWorld(t)
	b := w.trusted()
	var unknown *events.UnknownKind
	st := w.store("job.proposed", "default", "j1", "proposer", w.signers["proposer"], proposal(), versionOf("job.proposed"))
	if _, err := b.Open(st); !errors.As(err, &unknown) {
		t.Errorf("a believable event of a newer version: %v", err)
	}
	refused(t, b, w.store("job.proposed", "default", "j1", "proposer", signer(t), proposal(), versionOf("job.proposed")), trust.CodeWrongKey)
	refused(t, b, w.store("job.proposed", "default", "j1", "worker", w.signers["worker"], proposal(), versionOf("job.proposed")), trust.CodeNoRight)
}

// A reader that is too old for the trust file in force believes nothing after
// it by an older file: the key may be revoked.
func TestUnreadableTrustFileJudgesNothing(t *testing.T) {
	w := newWorld(t)
	b := w.trusted()
	before := w.say("job.proposed", "default", "proposer", proposal())
	file := func(forge ...func(*events.Message)) events.Stored {
		return w.store("trust.published", "site", "main", "root", w.root, events.TrustPublished{Version: 2, Origin: origin}, forge...)
	}
	var unknown *events.UnknownKind
	if _, err := b.Open(file(versionOf("trust.published"))); !errors.As(err, &unknown) || b.Current() != nil {
		t.Fatalf("%v, current %v", err, b.Current())
	}
	w.open(b, before)
	if e, err := b.Open(w.say("job.proposed", "default", "proposer", proposal())); !errors.As(err, &unknown) || unknown.Kind != "trust.published" || e.Payload != nil {
		t.Errorf("%+v, %v", e.Payload, err)
	}
	w.version = 2
	w.open(b, w.trust()) // version 3 can be read again
	w.open(b, w.say("job.proposed", "default", "proposer", proposal()))

	// Nobody but root can stop a reader that way.
	forged := w.store("trust.published", "site", "main", "root", signer(t), events.TrustPublished{Version: 4, Origin: origin}, versionOf("trust.published"))
	refused(t, b, forged, trust.CodeWrongKey)
	w.open(b, w.say("job.proposed", "default", "proposer", proposal()))
}

// A trust file that names a point of small order, or no key at all, gives its
// actor no voice, although signatures can be made for such points by anybody.
func TestWeakKeysNeverVerify(t *testing.T) {
	neutral := make([]byte, 32)
	neutral[0] = 1
	forged := make([]byte, 64) // R is the neutral element and S is zero: verifies for it with plain Ed25519
	forged[0] = 1
	for what, sign := range map[string]string{
		"neutral element": string(keys.NewPublicKey(neutral)),
		"order four":      string(keys.NewPublicKey(make([]byte, 32))),
		"no key":          "ed25519:",
		"not base64":      "ed25519:%%%",
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.actors = append(w.actors, events.Actor{Actor: "weak", Roles: []events.Role{events.RolePerson}, Sign: sign})
			b := w.trusted()
			st := w.store("job.approved", "default", "j1", "weak", signer(t), events.JobApproved{Basis: "person"})
			st.Header[events.HeaderSignature] = []string{sign + " " + base64.RawURLEncoding.EncodeToString(forged)}
			refused(t, b, st, trust.CodeBadSignature)
		})
	}
}

func TestEmptyKeyVerifiesNothing(t *testing.T) {
	w := newWorld(t)
	b := trust.New(origin, "")
	refused(t, b, w.trust(), trust.CodeWrongKey)
}

func FuzzOpen(f *testing.F) {
	w := newWorld(f)
	first := w.trust()
	st := w.say("job.proposed", "default", "proposer", proposal())
	f.Add(st.Subject, "ce-id", st.Header["ce-id"][0], st.Data)
	f.Add(first.Subject, "bm-sig", first.Header["bm-sig"][0], first.Data)
	f.Add("bm.trust.site.main.published.root", "ce-type", "banksman.trust.published", []byte("{}"))
	f.Add("", "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, subject, name, value string, data []byte) {
		b := trust.New(origin, w.root.Public())
		if _, err := b.Open(first); err != nil {
			t.Fatal(err)
		}
		forged := events.Stored{Seq: 9, Subject: subject, Header: map[string][]string{}, Data: data}
		for k, v := range st.Header {
			forged.Header[k] = v
		}
		forged.Header[name] = []string{value}
		_, err := b.Open(forged)
		var v *trust.Violation
		same := subject == st.Subject && string(data) == string(st.Data) && (st.Header[name] != nil && st.Header[name][0] == value || !strings.HasPrefix(name, "ce-") && name != events.HeaderSignature && name != events.HeaderExpect && name != events.HeaderExpectFilter)
		if !same && !errors.As(err, &v) {
			t.Errorf("what nobody signed was opened with %v", err)
		}
	})
}
