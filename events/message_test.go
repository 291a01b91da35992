package events_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
)

const (
	testOrigin  = "example-7f3a"
	testSession = "0123456789abcdef0123"
)

// testKey is a key that everybody knows, so that signed bytes can be golden.
func testKey() (text string, key ed25519.PrivateKey) {
	key = ed25519.NewKeyFromSeed([]byte("this seed is public, for tests!!"))
	return "ed25519:" + base64.RawURLEncoding.EncodeToString(key.Public().(ed25519.PublicKey)), key
}

// signed is the one message whose bytes the golden signature pins.
func signed(t testing.TB, payload any, s events.Subject, expect uint64) events.Stored {
	t.Helper()
	claimed := time.Date(2026, 3, 14, 15, 9, 26, 535_000_000, time.FixedZone("", 3600))
	m, err := events.New(testOrigin, s, events.ID{Actor: s.Actor, Session: testSession, N: 7}, claimed, expect, payload)
	if err != nil {
		t.Fatal(err)
	}
	text, key := testKey()
	m.Sign(testOrigin, text, func(b []byte) []byte { return ed25519.Sign(key, b) })
	return events.Stored{Seq: expect + 1, Time: claimed, Subject: m.Subject.String(), Header: m.Header, Data: m.Data}
}

func expiredMessage(t testing.TB) events.Stored {
	return signed(t, &events.JobExpired{Proposal: events.Digest(nil), What: "request"}, events.For("job.expired", "default", "j1", "gate"), 41)
}

// verifies says whether a stored message is read and its signature holds.
func verifies(st events.Stored) bool {
	e, err := events.Open(testOrigin, st)
	if err != nil {
		return false
	}
	text, key := testKey()
	return e.Signature.Key == text && ed25519.Verify(key.Public().(ed25519.PublicKey), e.Text, e.Signature.Sig)
}

// The text under every signature is the same for ever: a changed line here
// means that no stored event verifies any more.
func TestSigningTextIsGolden(t *testing.T) {
	st := expiredMessage(t)
	e, err := events.Open(testOrigin, st)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, name := range slices.Sorted(maps.Keys(st.Header)) {
		got.WriteString(name + ": " + strings.Join(st.Header[name], "|") + "\n")
	}
	got.WriteString("\n" + string(st.Data) + "\n\n" + string(e.Text))
	want, err := os.ReadFile("testdata/signed.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("testdata/signed.txt differs; it may never change\n got:\n%s\nwant:\n%s", got.String(), want)
	}
	if !verifies(st) {
		t.Error("the golden message does not verify")
	}
}

// Whoever moves, re-dates or edits a signed event breaks its signature.
func TestASignatureBindsEverything(t *testing.T) {
	edit := map[string]func(*events.Stored){
		"another job":       func(st *events.Stored) { move(st, ".j1.", ".j2.") },
		"another scope":     func(st *events.Stored) { move(st, ".default.", ".other.") },
		"another verb":      func(st *events.Stored) { move(st, ".expired.", ".declined.") },
		"another actor":     func(st *events.Stored) { move(st, ".gate", ".mate") },
		"another origin":    func(st *events.Stored) { move(st, testOrigin, "example-0000") },
		"another position":  func(st *events.Stored) { st.Header[events.HeaderExpect] = []string{"42"} },
		"another time":      func(st *events.Stored) { st.Header[events.HeaderTime] = []string{"2026-03-14T14:09:27Z"} },
		"another counter":   func(st *events.Stored) { move(st, testSession+".7", testSession+".8") },
		"another session":   func(st *events.Stored) { move(st, testSession, strings.Repeat("0", 20)) },
		"added attribute":   func(st *events.Stored) { st.Header["ce-subject"] = []string{"x"} },
		"doubled attribute": func(st *events.Stored) { st.Header[events.HeaderTime] = append(st.Header[events.HeaderTime], "x") },
		"payload cut":       func(st *events.Stored) { st.Data = st.Data[:len(st.Data)-1] },
		"payload longer":    func(st *events.Stored) { st.Data = append(st.Data, ' ') },
	}
	original := expiredMessage(t)
	for i := range original.Data {
		edit[fmt.Sprint("payload byte ", i)] = func(st *events.Stored) { st.Data[i] ^= 1 }
	}
	for name := range original.Header {
		if name == events.HeaderTraceparent {
			continue
		}
		edit["without "+name] = func(st *events.Stored) { delete(st.Header, name) }
		edit["last byte of "+name] = func(st *events.Stored) {
			v := []byte(st.Header[name][0])
			v[len(v)-1] ^= 1
			st.Header[name] = []string{string(v)}
		}
	}
	for what, change := range edit {
		st := expiredMessage(t)
		change(&st)
		if reflect.DeepEqual(st, original) {
			t.Errorf("%s: nothing was changed", what)
		}
		if verifies(st) {
			t.Errorf("%s: the signature still holds", what)
		}
	}
	st := expiredMessage(t)
	st.Header[events.HeaderTraceparent] = []string{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	if !verifies(st) {
		t.Error("a trace context, which anybody on the way may add, breaks the signature")
	}
}

// move replaces text everywhere in the subject and the headers.
func move(st *events.Stored, from, to string) {
	st.Subject = strings.ReplaceAll(st.Subject, from, to)
	for name, values := range st.Header {
		if name != events.HeaderSignature {
			st.Header[name] = []string{strings.ReplaceAll(values[0], from, to)}
		}
	}
}

// What New makes, Open reads, for every kind.
func TestOpenReadsWhatNewMakes(t *testing.T) {
	for _, d := range events.Catalog() {
		payload := filled(d).Interface()
		s := events.For(d.Kind, "default", "x1", "somebody")
		st := signed(t, payload, s, 3)
		e, err := events.Open(testOrigin, st)
		if err != nil {
			t.Fatal(err)
		}
		if e.Subject != s || e.Kind != d.Kind || e.Version != d.Version || e.Expect != 3 || e.ID.N != 7 ||
			e.Digest != events.Digest(st.Data) || !e.Claimed.Equal(st.Time) || !reflect.DeepEqual(e.Payload, payload) {
			t.Errorf("%s was read as %+v", d.Kind, e)
		}
		if !verifies(st) {
			t.Errorf("%s does not verify", d.Kind)
		}
	}
}

// A newer version's event is complete but for its payload.
func TestOpenOfAnUnknownKind(t *testing.T) {
	later := expiredMessage(t)
	later.Header[events.HeaderDataSchema] = []string{events.SchemaURI("job.expired", 2)}
	invented := expiredMessage(t)
	move(&invented, "expired", "invented")
	for name, st := range map[string]events.Stored{"version": later, "kind": invented} {
		e, err := events.Open(testOrigin, st)
		unknown, ok := err.(*events.UnknownKind)
		if !ok || e.Payload != nil || e.Subject.ID != "j1" || e.ID.N != 7 || len(e.Text) == 0 || unknown.Kind != e.Kind {
			t.Errorf("%s: got %+v, %v", name, e, err)
		}
		if !strings.Contains(err.Error(), "newer banksman") {
			t.Errorf("%s: %q does not say what to do", name, err)
		}
	}
}

func TestNewRefusesWhatDoesNotFit(t *testing.T) {
	payload := &events.JobExpired{}
	id := events.ID{Actor: "gate", Session: testSession, N: 1}
	for name, tc := range map[string]struct {
		subject events.Subject
		id      events.ID
		payload any
	}{
		"other payload": {events.For("job.denied", "default", "j1", "gate"), id, payload},
		"no payload":    {events.For("job.expired", "default", "j1", "gate"), id, nil},
		"foreign type":  {events.For("job.expired", "default", "j1", "gate"), id, &struct{}{}},
		"bad scope":     {events.For("job.expired", "De fault", "j1", "gate"), id, payload},
		"bad id":        {events.For("job.expired", "default", "a.b", "gate"), id, payload},
		"other actor":   {events.For("job.expired", "default", "j1", "worker"), id, payload},
	} {
		if m, err := events.New(testOrigin, tc.subject, tc.id, time.Unix(0, 0), 0, tc.payload); err == nil {
			t.Errorf("%s: made %+v", name, m)
		}
	}
}

// Every form has one spelling; what is close to it is refused, and the error
// names the part that cannot be read.
func TestOneSpelling(t *testing.T) {
	set := func(name, value string) func(*events.Stored) {
		return func(st *events.Stored) { st.Header[name] = []string{value} }
	}
	const schema = "urn:banksman:schema:job.expired:"
	for name, tc := range map[string]struct {
		what   string
		change func(*events.Stored)
	}{
		"expect, leading 0":    {events.HeaderExpect, set(events.HeaderExpect, "041")},
		"expect, sign":         {events.HeaderExpect, set(events.HeaderExpect, "+41")},
		"expect, too large":    {events.HeaderExpect, set(events.HeaderExpect, "18446744073709551616")},
		"filter":               {events.HeaderExpectFilter, set(events.HeaderExpectFilter, "bm.job.default.j1.>")},
		"spec version":         {events.HeaderSpecVersion, set(events.HeaderSpecVersion, "1.0.2")},
		"type":                 {events.HeaderType, set(events.HeaderType, "banksman.job.denied")},
		"source":               {events.HeaderSource, set(events.HeaderSource, events.Source(testOrigin, "mate"))},
		"version, leading 0":   {events.HeaderDataSchema, set(events.HeaderDataSchema, schema+"v01")},
		"version, sign":        {events.HeaderDataSchema, set(events.HeaderDataSchema, schema+"v+1")},
		"version 0":            {events.HeaderDataSchema, set(events.HeaderDataSchema, schema+"v0")},
		"version, negative":    {events.HeaderDataSchema, set(events.HeaderDataSchema, schema+"v-1")},
		"no version":           {events.HeaderDataSchema, set(events.HeaderDataSchema, schema)},
		"schema of another":    {events.HeaderDataSchema, set(events.HeaderDataSchema, events.SchemaURI("job.denied", 1))},
		"schema missing":       {events.HeaderDataSchema, func(st *events.Stored) { delete(st.Header, events.HeaderDataSchema) }},
		"id of another":        {events.HeaderID, set(events.HeaderID, "mate."+testSession+".7")},
		"id with four parts":   {events.HeaderID, set(events.HeaderID, "gate."+testSession+".7.1")},
		"id, odd actor":        {events.HeaderID, set(events.HeaderID, "Gate."+testSession+".7")},
		"id, short session":    {events.HeaderID, set(events.HeaderID, "gate.0123.7")},
		"id, counter 0":        {events.HeaderID, set(events.HeaderID, "gate."+testSession+".0")},
		"id, counter 07":       {events.HeaderID, set(events.HeaderID, "gate."+testSession+".07")},
		"id twice":             {events.HeaderID, func(st *events.Stored) { st.Header[events.HeaderID] = append(st.Header[events.HeaderID], "x") }},
		"time":                 {events.HeaderTime, set(events.HeaderTime, "yesterday")},
		"signature, line end":  {events.HeaderSignature, func(st *events.Stored) { st.Header[events.HeaderSignature][0] += "\n" }},
		"signature, padding":   {events.HeaderSignature, func(st *events.Stored) { st.Header[events.HeaderSignature][0] += "=" }},
		"signature, short":     {events.HeaderSignature, set(events.HeaderSignature, "ed25519:abc AAAA")},
		"signature, 2 spaces":  {events.HeaderSignature, func(st *events.Stored) { respell(st, " ", "  ") }},
		"signature, other key": {events.HeaderSignature, func(st *events.Stored) { respell(st, "ed25519:", "rsa:") }},
		"payload":              {"payload", func(st *events.Stored) { st.Data = []byte(`{"proposal":1}`) }},
		"subject, short":       {"subject", func(st *events.Stored) { st.Subject = "bm.job.default.j1.expired" }},
		"subject, other space": {"subject", func(st *events.Stored) { st.Subject = "bml.job.default.j1.expired.gate" }},
		"subject, family":      {"subject", func(st *events.Stored) { st.Subject = "bm.Job.default.j1.expired.gate" }},
		"subject, verb":        {"subject", func(st *events.Stored) { st.Subject = "bm.job.default.j1.Expired.gate" }},
		"subject, wildcard":    {"subject", func(st *events.Stored) { st.Subject = "bm.job.*.j1.expired.gate" }},
		"empty":                {"subject", func(st *events.Stored) { *st = events.Stored{} }},
	} {
		st := expiredMessage(t)
		tc.change(&st)
		_, err := events.Open(testOrigin, st)
		if malformed, ok := err.(*events.Malformed); !ok || malformed.What != tc.what || malformed.Why == "" {
			t.Errorf("%s: got %v, want malformed: %s", name, err, tc.what)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, text := range []string{"", "Gate." + testSession + ".1", "." + testSession + ".1", "gate.0123.1", "gate." + testSession, "gate." + testSession + ".-1"} {
		if id, err := events.ParseID(text); err == nil {
			t.Errorf("%q was read as %+v", text, id)
		}
	}
}

// Text that is not UTF-8 cannot be stored, and the error says whose it is.
func TestWhatCannotBeEncoded(t *testing.T) {
	payload := &events.JobExpired{What: "\xff"}
	_, err := events.New(testOrigin, events.For("job.expired", "default", "j1", "gate"), events.ID{Actor: "gate", Session: testSession, N: 1}, time.Unix(0, 0), 0, payload)
	if err == nil || !strings.HasPrefix(err.Error(), "encode *events.JobExpired: ") {
		t.Errorf("got %v", err)
	}
}

// respell changes the spelling of the signature.
func respell(st *events.Stored, from, to string) {
	st.Header[events.HeaderSignature][0] = strings.Replace(st.Header[events.HeaderSignature][0], from, to, 1)
}
