package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Headers of a stored event: CloudEvents 1.0 binary mode, the writer's
// expectation and the signature.
const (
	HeaderSpecVersion  = "ce-specversion"
	HeaderID           = "ce-id"
	HeaderType         = "ce-type"
	HeaderSource       = "ce-source"
	HeaderTime         = "ce-time"
	HeaderDataSchema   = "ce-dataschema"
	HeaderTraceparent  = "traceparent"
	HeaderSignature    = "bm-sig"
	HeaderExpect       = "Nats-Expected-Last-Subject-Sequence"
	HeaderExpectFilter = "Nats-Expected-Last-Subject-Sequence-Subject"

	typePrefix   = "banksman."
	schemaPrefix = "urn:banksman:schema:"
)

// ID names an event once: the actor, the session (80 random bits of one
// process, 20 hexadecimal digits) and a counter from 1 without holes.
type ID struct {
	Actor   string
	Session string
	N       uint64
}

func (i ID) String() string { return fmt.Sprintf("%s.%s.%d", i.Actor, i.Session, i.N) }

var sessionPattern = regexp.MustCompile(`^[0-9a-f]{20}$`)

// ParseID reads a ce-id.
func ParseID(text string) (ID, error) {
	t := strings.Split(text, ".")
	if len(t) != 3 || !namePattern.MatchString(t[0]) || !sessionPattern.MatchString(t[1]) {
		return ID{}, &Malformed{What: HeaderID, Why: "want <actor>.<20 hex digits>.<n>"}
	}
	n, err := strconv.ParseUint(t[2], 10, 64)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != t[2] {
		return ID{}, &Malformed{What: HeaderID, Why: "the counter is not a decimal number from 1"}
	}
	return ID{Actor: t[0], Session: t[1], N: n}, nil
}

// Message is an event on its way to the stream.
type Message struct {
	Subject Subject
	Expect  uint64 // last sequence seen under Subject.Filter(), 0 for none
	Header  map[string][]string
	Data    []byte
}

// New makes the message of a payload: its subject, headers and bytes, not yet
// signed. The claimed time is the writer's; the stream's own time counts.
func New(origin string, s Subject, id ID, claimed time.Time, expect uint64, payload any) (Message, error) {
	data, err := Encode(payload)
	if err != nil {
		return Message{}, err
	}
	d, ok := currentOf(derefType(payload))
	if !ok || d.Kind != s.Kind() {
		return Message{}, fmt.Errorf("make %s: %T is not its payload", s.Kind(), payload)
	}
	if err := s.Valid(); err != nil {
		return Message{}, err
	}
	if id.Actor != s.Actor {
		return Message{}, fmt.Errorf("make %s: id names actor %q, the subject %q", s.Kind(), id.Actor, s.Actor)
	}
	return Message{Subject: s, Expect: expect, Data: data, Header: map[string][]string{
		HeaderSpecVersion:  {"1.0"},
		HeaderID:           {id.String()},
		HeaderType:         {typePrefix + string(s.Kind())},
		HeaderSource:       {Source(origin, s.Actor)},
		HeaderTime:         {claimed.UTC().Format(time.RFC3339Nano)},
		HeaderDataSchema:   {SchemaURI(d.Kind, d.Version)},
		HeaderExpect:       {strconv.FormatUint(expect, 10)},
		HeaderExpectFilter: {s.Filter()},
	}}, nil
}

// Source is the ce-source of an actor of a site.
func Source(origin, actor string) string { return "urn:banksman:" + origin + ":" + actor }

// SchemaURI is the ce-dataschema of a kind at a version.
func SchemaURI(k Kind, version int) string {
	return fmt.Sprintf("%s%s:v%d", schemaPrefix, k, version)
}

// Sign puts the signature on. The signer gets the signing text and returns the
// 64 bytes of RFC 8032; key is its public key's text.
func (m *Message) Sign(origin, key string, sign func(text []byte) []byte) {
	text := SigningText(origin, m.Subject.String(), CEDigest(m.Header), m.Expect, sha256.Sum256(m.Data), len(m.Data))
	m.Header[HeaderSignature] = []string{Signature{Key: key, Sig: sign(text)}.String()}
}

// Stored is a message exactly as the stream returned it.
type Stored struct {
	Seq     uint64
	Time    time.Time // the stream's time, set when it was stored
	Subject string
	Header  map[string][]string
	Data    []byte
}

// Event is a stored message that could be read. Whether it may be believed is
// the trust file's matter: Signature and Text are what to check.
type Event struct {
	Seq     uint64
	Time    time.Time // the stream's time
	Claimed time.Time // the writer's time, signed
	Subject Subject
	Kind    Kind
	Version int
	ID      ID
	Expect  uint64
	Digest  string // of the payload, hexadecimal SHA-256
	Payload any    // pointer to the catalogue's type

	Signature Signature
	Text      []byte // what the signature is over
}

// Malformed says which part of a stored message cannot be read.
type Malformed struct {
	What string
	Why  string
}

func (e *Malformed) Error() string { return "event malformed: " + e.What + ": " + e.Why }

// UnknownKind is a well-formed event that this version cannot interpret. The
// thing it is about becomes unreadable to this reader, never wrong.
type UnknownKind struct {
	Kind   Kind
	Schema string
}

func (e *UnknownKind) Error() string {
	return fmt.Sprintf("event %s with schema %q is not known to this version; use a newer banksman to read it", e.Kind, e.Schema)
}

// Header values that an event has exactly once.
func one(h map[string][]string, name string) (string, error) {
	v := h[name]
	if len(v) != 1 {
		return "", &Malformed{What: name, Why: fmt.Sprintf("want one value, got %d", len(v))}
	}
	return v[0], nil
}

// Open reads a stored message. The error is *Malformed or *UnknownKind; with
// *UnknownKind the event is complete except for Payload.
func Open(origin string, st Stored) (Event, error) {
	s, err := ParseSubject(st.Subject)
	if err != nil {
		return Event{}, &Malformed{What: "subject", Why: err.Error()}
	}
	e := Event{Seq: st.Seq, Time: st.Time, Subject: s, Kind: s.Kind(), Digest: Digest(st.Data)}
	if err := e.readHeaders(origin, st); err != nil {
		return e, err
	}
	schema, err := one(st.Header, HeaderDataSchema)
	if err != nil {
		return e, err
	}
	version, ok := strings.CutPrefix(schema, schemaPrefix+string(e.Kind)+":v")
	if !ok {
		return e, &Malformed{What: HeaderDataSchema, Why: fmt.Sprintf("%q does not belong to %s", schema, e.Kind)}
	}
	e.Version, err = strconv.Atoi(version)
	if err != nil || e.Version < 1 || SchemaURI(e.Kind, e.Version) != schema {
		return e, &Malformed{What: HeaderDataSchema, Why: "the version is not a decimal number from 1"}
	}
	d, known := Find(e.Kind, e.Version)
	if !known {
		return e, &UnknownKind{Kind: e.Kind, Schema: schema}
	}
	if e.Payload, err = Decode(d, st.Data); err != nil {
		return e, &Malformed{What: "payload", Why: err.Error()}
	}
	return e, nil
}

// readHeaders fills what the headers say and checks them against the subject.
func (e *Event) readHeaders(origin string, st Stored) error {
	want := map[string]string{
		HeaderSpecVersion:  "1.0",
		HeaderType:         typePrefix + string(e.Kind),
		HeaderSource:       Source(origin, e.Subject.Actor),
		HeaderExpectFilter: e.Subject.Filter(),
	}
	for name, value := range want {
		got, err := one(st.Header, name)
		if err != nil {
			return err
		}
		if got != value {
			return &Malformed{What: name, Why: fmt.Sprintf("%q, want %q", got, value)}
		}
	}
	text := map[string]string{}
	for _, name := range []string{HeaderID, HeaderTime, HeaderExpect, HeaderSignature} {
		v, err := one(st.Header, name)
		if err != nil {
			return err
		}
		text[name] = v
	}
	var err error
	if e.ID, err = ParseID(text[HeaderID]); err != nil {
		return err
	}
	if e.ID.Actor != e.Subject.Actor {
		return &Malformed{What: HeaderID, Why: "names another actor than the subject"}
	}
	if e.Claimed, err = time.Parse(time.RFC3339Nano, text[HeaderTime]); err != nil {
		return &Malformed{What: HeaderTime, Why: "want RFC 3339"}
	}
	e.Expect, err = strconv.ParseUint(text[HeaderExpect], 10, 64)
	if err != nil || strconv.FormatUint(e.Expect, 10) != text[HeaderExpect] {
		return &Malformed{What: HeaderExpect, Why: "want a decimal number"}
	}
	if e.Signature, err = ParseSignature(text[HeaderSignature]); err != nil {
		return err
	}
	e.Text = SigningText(origin, st.Subject, CEDigest(st.Header), e.Expect, sha256.Sum256(st.Data), len(st.Data))
	return nil
}

// CEDigestHex is CEDigest as text.
func CEDigestHex(header map[string][]string) string {
	d := CEDigest(header)
	return hex.EncodeToString(d[:])
}
