package events_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
)

// Whatever is read is written in a form that is read and written the same for
// ever; what a writer may publish is written back byte for byte.
func FuzzDecode(f *testing.F) {
	for i, d := range events.Catalog() {
		golden, err := goldenOf(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, golden)
		f.Add(i, append(golden[:len(golden)-1:len(golden)-1], `,"zz": [1, 2e1, null] , "\u0041":"\u00e9"}`...))
	}
	f.Add(0, []byte(`{"argv":null,"env":{"B":"1","A":"2"},"Argv":["x"]}`))
	f.Fuzz(func(t *testing.T, n int, data []byte) {
		all := events.Catalog()
		d := all[uint(n)%uint(len(all))]
		p, err := events.Decode(d, data)
		if _, canonical := events.DecodeCanonical(d, data); err != nil {
			if canonical == nil {
				t.Fatalf("only the strict reader reads %q", data)
			}
			return
		} else if canonical == nil {
			if b, err := events.Encode(p); err != nil || !bytes.Equal(b, data) {
				t.Fatalf("%q is written as %q (%v)", data, b, err)
			}
		}
		first, err := events.Encode(p)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", data, err)
		}
		again, err := events.Decode(d, first)
		if err != nil {
			t.Fatalf("%q was written and cannot be read: %v", first, err)
		}
		if second, err := events.Encode(again); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%q, then %q (%v)", first, second, err)
		}
	})
}

// Open answers with its two errors and never panics; what it reads can be made
// again from what it says.
func FuzzOpen(f *testing.F) {
	for _, d := range events.Catalog() {
		st := signed(f, filled(d).Interface(), events.For(d.Kind, "default", "x1", "somebody"), 3)
		f.Add(st.Subject, headerText(st.Header), st.Data)
	}
	f.Add("bm.job.default.j1.expired.gate", "ce-id: a\nce-id: b\n\n:", []byte("{}"))
	f.Fuzz(func(t *testing.T, subject, header string, data []byte) {
		st := events.Stored{Seq: 9, Subject: subject, Header: parseHeader(header), Data: data}
		e, err := events.Open(testOrigin, st)
		var malformed *events.Malformed
		var unknown *events.UnknownKind
		switch {
		case errors.As(err, &malformed):
			return
		case errors.As(err, &unknown):
			if e.Payload != nil || len(e.Text) == 0 {
				t.Fatalf("unknown kind %s was read as %+v", e.Kind, e)
			}
			return
		case err != nil:
			t.Fatalf("untyped error %v", err)
		}
		for name, want := range map[string]string{
			events.HeaderID:           e.ID.String(),
			events.HeaderDataSchema:   events.SchemaURI(e.Kind, e.Version),
			events.HeaderSource:       events.Source(testOrigin, e.Subject.Actor),
			events.HeaderExpectFilter: e.Subject.Filter(),
			events.HeaderSignature:    e.Signature.String(),
		} {
			if got := st.Header[name]; !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %q was read as %q", name, got, want)
			}
		}
		if _, err := events.New(testOrigin, e.Subject, e.ID, e.Claimed, e.Expect, e.Payload); err != nil {
			t.Errorf("what was read cannot be made: %v", err)
		}
	})
}

func headerText(h map[string][]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			b.WriteString(name + ": " + v + "\n")
		}
	}
	return b.String()
}

func parseHeader(text string) map[string][]string {
	h := map[string][]string{}
	for line := range strings.SplitSeq(text, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h[name] = append(h[name], value)
		}
	}
	return h
}

func FuzzParseSubject(f *testing.F) {
	for _, s := range []string{"bm.job.default.j1.proposed.proposer", "bm.job..j1.proposed.p", "bml.job.a.b.c.d", "bm.job.a.b.c.d\n", "bm.job.*.b.>.d", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := events.ParseSubject(text)
		if err != nil {
			return
		}
		if s.String() != text || s.Valid() != nil || strings.ContainsAny(text, "*> \t\r\n") {
			t.Errorf("%q was read as %+v", text, s)
		}
		if again := events.For(s.Kind(), s.Scope, s.ID, s.Actor); again != s {
			t.Errorf("%q: its kind leads to %+v", text, again)
		}
	})
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"gate." + testSession + ".1", "gate." + testSession + ".01", "gate." + testSession + ".0", "a.b.c", "gate." + testSession + ".18446744073709551616"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := events.ParseID(text); err == nil && (id.String() != text || id.N == 0) {
			t.Errorf("%q was read as %+v", text, id)
		}
	})
}

func FuzzParseSignature(f *testing.F) {
	key, _ := testKey()
	good := events.Signature{Key: key, Sig: bytes.Repeat([]byte{7}, 64)}.String()
	for _, s := range []string{good, good + "\n", good + "=", "ed25519: ", strings.Replace(good, " ", "  ", 1)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := events.ParseSignature(text); err == nil && (s.String() != text || len(s.Sig) != 64) {
			t.Errorf("%q was read as %+v", text, s)
		}
	})
}

// The suggestion in a refusal would do.
func FuzzCheckName(f *testing.F) {
	for _, s := range []string{"default", "Mein Rechner", "", "-x", "é", strings.Repeat("a", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := events.CheckName("pool", name)
		if err == nil {
			return
		}
		if _, rest, ok := strings.Cut(err.Error(), "digit; \""); ok {
			fix := strings.TrimSuffix(rest, "\" would do")
			if events.CheckName("pool", fix) != nil {
				t.Errorf("%q is refused, and so is the suggestion %q", name, fix)
			}
		}
	})
}

// A message's time is written in UTC, whatever the writer's zone.
func TestClaimedTimeIsUTC(t *testing.T) {
	st := expiredMessage(t)
	if got := st.Header[events.HeaderTime][0]; got != "2026-03-14T14:09:26.535Z" {
		t.Errorf("ce-time %q", got)
	}
	if e, err := events.Open(testOrigin, st); err != nil || e.Claimed.Location() != time.UTC {
		t.Errorf("read as %v (%v)", e.Claimed, err)
	}
}
