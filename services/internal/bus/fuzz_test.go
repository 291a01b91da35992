package bus

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/events"
)

// FuzzReadAck: an acknowledgement is a sequence or an error, never both or
// neither.
func FuzzReadAck(f *testing.F) {
	for _, seed := range []string{
		`{"stream":"BANKSMAN","seq":7}`, `{"stream":"BANKSMAN","seq":7,"duplicate":true}`, `{"stream":"OTHER","seq":1}`,
		`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 61"},"stream":"BANKSMAN","seq":0}`,
		`{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`,
		`{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`,
		`{"error":{"code":503,"err_code":10008,"description":"x"}}`, `{}`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	m := events.Message{Subject: events.For("job.started", "default", "j", "w"), Expect: 3}
	f.Fuzz(func(t *testing.T, data []byte) {
		seq, err := readAck(m, data)
		if (seq == 0) == (err == nil) {
			t.Errorf("%q: %d, %v", data, seq, err)
		}
	})
}

func TestRefusals(t *testing.T) {
	m := events.Message{Subject: events.For("job.started", "default", "j", "w"), Expect: 3}
	read := func(text string) error { _, err := readAck(m, []byte(text)); return err }
	var conflict *Conflict
	if err := read(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 61"}}`); !errors.As(err, &conflict) || conflict.Last != 61 {
		t.Error(err)
	}
	if err := read(`{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`); !errors.As(err, &conflict) || conflict.Last != 0 {
		t.Error(err)
	}
	if err := read(`{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	if err := read(`{"stream":"BANKSMAN","seq":7,"duplicate":true}`); !errors.Is(err, ErrDuplicate) {
		t.Error(err)
	}
	if err := read(`{"error":{"code":503,"err_code":10008,"description":"not now"}}`); !transient(err) {
		t.Error(err)
	}
}

// FuzzDelivery: an acknowledgement subject is read or refused.
func FuzzDelivery(f *testing.F) {
	for _, seed := range []string{
		"$JS.ACK.BANKSMAN.gate.1.7.9.1700000000000000000.3", "$JS.ACK._.hash.BANKSMAN.gate.2.7.9.1700000000000000000.3.rnd",
		"$JS.ACK.BANKSMAN.gate", "", "........", "$JS.ACK.a.b.-1.x.1.1.1",
	} {
		f.Add(seed)
	}
	c := &Conn{log: slog.New(slog.DiscardHandler)}
	f.Fuzz(func(t *testing.T, reply string) {
		d, err := c.delivery(&nats.Msg{Subject: "bm.x", Reply: reply})
		if (d == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", reply, d, err)
		}
	})
}

// FuzzReadStored: headers that a writer stored under the server's names never
// replace what the server says.
func FuzzReadStored(f *testing.F) {
	f.Add("5", "bm.job.default.x.approved.p7k2")
	f.Fuzz(func(t *testing.T, seq, subject string) {
		m := &nats.Msg{Header: nats.Header{
			headerStream: {"BANKSMAN"}, headerSubject: {subject, "bm.real"}, headerSequence: {seq, "9"},
			headerTime: {"yesterday", "2026-01-02T03:04:05Z"},
		}}
		st, err := readStored(m, addedToGet)
		if err != nil || st.Seq != 9 || st.Subject != "bm.real" {
			t.Fatalf("%+v, %v", st, err)
		}
		if st.Header[headerSubject][0] != subject || len(st.Header[headerSubject]) != 1 {
			t.Error("the writer's own header is gone")
		}
	})
}
