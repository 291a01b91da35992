package tlog

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"pgregory.net/rapid"
)

// goldenEvent pins the format: every log ever written depends on it.
const goldenEvent = `banksman-entry/v1 event
prev 0000000000000000000000000000000000000000000000000000000000000000
seq 7
time 1790000000000000007
subject bm.job.ci.j%251.started.w1%20%C3%A9
id w1.s.7
expect -
meta 0000000000000000000000000000000000000000000000000000000000000000
headers 9f57b315806e2ced8ade81c5a299e7ee00f421038cfd3ffc9fa8b4b7e9af1bcc
payload 239f59ed55e737c77147cf55ad0c1b030b6d7ee748a7426952f9b852d5a935e5 7
job j1 -
actor UKEY -
`

func goldenRecord() (Record, Meta) {
	return Record{
			Seq: 7, Time: time.Unix(1_790_000_000, 7), Subject: "bm.job.ci.j%1.started.w1 é",
			Header: map[string][]string{"b": {"2", "3"}, "a": {""}}, Payload: []byte("payload"),
		}, Meta{
			ID: "w1.s.7", Expect: "07", Job: "j1", ActorKey: "UKEY", ActorSig: "has space",
		}
}

func TestGoldenEntry(t *testing.T) {
	rec, m := goldenRecord()
	block := []byte("\x00\x00\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x00" +
		"\x00\x00\x00\x01b\x00\x00\x00\x02\x00\x00\x00\x012\x00\x00\x00\x013")
	if got := AppendHeaderBlock(nil, rec.Header); !bytes.Equal(got, block) {
		t.Errorf("header block %q", got)
	}
	e := entryOf(&rec, &m, block, Hash{}, -1)
	if got := string(e.Encode()); got != goldenEvent {
		t.Errorf("got\n%s\nwant\n%s", got, goldenEvent)
	}
}

func TestParseEntryRefuses(t *testing.T) {
	if _, err := ParseEntry([]byte(goldenEvent)); err != nil {
		t.Fatal(err)
	}
	swap := func(old, new string) string { return strings.Replace(goldenEvent, old, new, 1) }
	zeros := strings.Repeat("0", 64)
	for name, text := range map[string]string{
		"nothing":                    "",
		"another version":            swap("/v1", "/v2"),
		"unknown kind":               swap(" event", " state"),
		"no last newline":            goldenEvent[:len(goldenEvent)-1],
		"a line more":                goldenEvent + "\n",
		"carriage returns":           strings.ReplaceAll(goldenEvent, "\n", "\r\n"),
		"two spaces":                 swap("seq 7", "seq  7"),
		"leading zero":               swap("seq 7", "seq 07"),
		"sign":                       swap("seq 7", "seq +7"),
		"sequence zero":              swap("seq 7", "seq 0"),
		"sequence beyond 64 bits":    swap("seq 7", "seq 18446744073709551616"),
		"time beyond 63 bits":        swap("time 1790000000000000007", "time 9223372036854775808"),
		"upper-case digest":          swap("payload 239f", "payload 239F"),
		"short digest":               swap("payload 239f", "payload 239"),
		"lower-case escape":          swap("%C3", "%c3"),
		"needless escape":            swap("started", "%73tarted"),
		"broken escape":              swap("%A9", "%A"),
		"empty subject":              swap("subject bm.job.ci.j%251.started.w1%20%C3%A9", "subject "),
		"empty id":                   swap("id w1.s.7", "id "),
		"id with a space":            swap("id w1.s.7", "id w1 7"),
		"id too long":                swap("id w1.s.7", "id "+strings.Repeat("x", maxToken_bytes+1)),
		"expect is no number":        swap("expect -", "expect x"),
		"headers of zeros":           swap("9f57b315806e2ced8ade81c5a299e7ee00f421038cfd3ffc9fa8b4b7e9af1bcc", zeros),
		"negative length":            swap(" 7\njob", " -7\njob"),
		"enormous payload":           swap(" 7\njob", " 99999999999\njob"),
		"back link without job":      swap("job j1 -", "job - 3"),
		"order":                      swap("seq 7\ntime 1790000000000000007", "time 1790000000000000007\nseq 7"),
		"a genesis with a link":      "banksman-entry/v1 genesis\nprev 01" + zeros[2:] + "\norigin o\nstream s\ncreated 1\nconfig " + zeros + "\n",
		"a genesis without a stream": "banksman-entry/v1 genesis\nprev " + zeros + "\norigin o\nstream -\ncreated 1\nconfig " + zeros + "\n",
		"a gap that ends first":      "banksman-entry/v1 gap\nprev " + zeros + "\nfrom 5\nto 4\n",
		"a gap from zero":            "banksman-entry/v1 gap\nprev " + zeros + "\nfrom 0\nto 4\n",
	} {
		if _, err := ParseEntry([]byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoRecordStopsTheLog logs records with every kind of junk a publisher can send.
func TestNoRecordStopsTheLog(t *testing.T) {
	junk := rapid.OneOf(rapid.String(), rapid.StringMatching(`[!-~]{0,300}`), rapid.SampledFrom([]string{"", "-", "a b", "\n", "é", "18446744073709551616"}))
	rapid.Check(t, func(t *rapid.T) {
		rec := Record{
			Seq:     rapid.Uint64Min(1).Draw(t, "seq"),
			Time:    time.Unix(0, rapid.Int64Min(0).Draw(t, "time")).UTC(),
			Subject: rapid.StringN(1, 50, 200).Draw(t, "subject"),
			Header:  rapid.MapOf(junk, rapid.SliceOf(junk)).Draw(t, "header"),
			Payload: rapid.SliceOf(rapid.Byte()).Draw(t, "payload"),
		}
		m := Meta{ID: junk.Draw(t, "id"), Expect: junk.Draw(t, "expect"), Job: junk.Draw(t, "job"), ActorKey: junk.Draw(t, "key"), ActorSig: junk.Draw(t, "sig")}
		block := AppendHeaderBlock(nil, rec.Header)
		if err := checkRecord(&rec, block); err != nil {
			t.Fatal(err)
		}
		e := entryOf(&rec, &m, block, Hash{9}, -1)
		got, err := ParseEntry(e.Encode())
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("%v\ngot  %+v\nwant %+v", err, got, e)
		}
		header, err := ParseHeaderBlock(block)
		if err != nil || len(header) != len(rec.Header) || !bytes.Equal(AppendHeaderBlock(nil, header), block) {
			t.Fatalf("headers: %v", err)
		}
		again, payload, rest, err := CutFrame(AppendFrame(nil, block, rec.Payload))
		if err != nil || len(rest) > 0 || !bytes.Equal(again, block) || !bytes.Equal(payload, rec.Payload) {
			t.Fatalf("frame: %v", err)
		}
		if matchesFrame(&e, again, payload) != nil {
			t.Fatal("the frame does not match its entry")
		}
	})
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte(goldenEvent))
	g := genesis()
	e := Entry{Kind: KindGenesis, Origin: g.Origin, Stream: g.Stream, Created: g.Created, Config: g.Config}
	f.Add(e.Encode())
	e = Entry{Kind: KindGap, Prev: Hash{1}, From: 3, To: 9}
	f.Add(e.Encode())
	for seq := uint64(1); seq < 12; seq++ {
		rec, m := record(seq)
		e := entryOf(&rec, &m, AppendHeaderBlock(nil, rec.Header), Hash{2}, int64(seq))
		f.Add(e.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEntry(b)
		if err != nil {
			return
		}
		if got := e.Encode(); !bytes.Equal(got, b) {
			t.Fatalf("%q parses and becomes %q", b, got)
		}
		again, err := ParseEntry(b)
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%q parses in two ways", b)
		}
	})
}

func FuzzCutFrame(f *testing.F) {
	for seq := uint64(1); seq < 6; seq++ {
		rec, _ := record(seq)
		f.Add(AppendFrame(nil, AppendHeaderBlock(nil, rec.Header), rec.Payload))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		block, payload, rest, err := CutFrame(b)
		s := newScanner(nil, bytes.NewReader(b), 0, 0, 0, int64(len(b)))
		block2, payload2, err2 := s.nextFrame()
		if (err == nil) != (err2 == nil) || !bytes.Equal(block, block2) || !bytes.Equal(payload, payload2) {
			t.Fatalf("%q: cut %v, scanned %v", b, err, err2)
		}
		if err != nil {
			return
		}
		if got := append(AppendFrame(nil, block, payload), rest...); !bytes.Equal(got, b) {
			t.Fatalf("%q becomes %q", b, got)
		}
		if h, err := ParseHeaderBlock(block); err == nil && !bytes.Equal(AppendHeaderBlock(nil, h), block) {
			t.Fatalf("header block %q parses and becomes another", block)
		}
	})
}

func FuzzParseHeaderBlock(f *testing.F) {
	for seq := uint64(1); seq < 6; seq++ {
		rec, _ := record(seq)
		f.Add(AppendHeaderBlock(nil, rec.Header))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeaderBlock(b)
		if err == nil && !bytes.Equal(AppendHeaderBlock(nil, h), b) {
			t.Fatalf("%q parses and becomes another", b)
		}
	})
}

func FuzzParseCheckpoint(f *testing.F) {
	signer, verifiers := keys(f, testOrigin)
	text := headText(testOrigin, 40, Hash{1})
	good, err := signHead(text, signer)
	must(f, err)
	f.Add(good)
	f.Add([]byte(text))
	f.Fuzz(func(t *testing.T, b []byte) {
		origin, cp, err := ParseCheckpoint(b)
		if err != nil {
			if _, _, err := OpenCheckpoint(b, verifiers); err == nil {
				t.Fatalf("%q opens but does not parse", b)
			}
			return
		}
		if !bytes.HasPrefix(b, []byte(headText(origin, cp.Size, cp.Root)+"\n")) {
			t.Fatalf("%q is not canonical", b)
		}
		if _, _, err := OpenCheckpoint(b, verifiers); err == nil && !bytes.HasPrefix(b, []byte(text)) {
			t.Fatalf("%q opens but was never signed", b)
		}
	})
}

func TestCheckpointNeedsItsKey(t *testing.T) {
	signer, verifiers := keys(t, testOrigin)
	b, err := signHead(headText(testOrigin, 3, Hash{1}), signer)
	must(t, err)
	if _, _, err := OpenCheckpoint(b, nil); err == nil {
		t.Error("opened without any key")
	}
	_, others := keys(t, "stranger.example.org")
	var unverified *note.UnverifiedNoteError
	if _, _, err := OpenCheckpoint(b, others); !errors.As(err, &unverified) {
		t.Errorf("opened with a stranger's key: %v", err)
	}
	if _, _, err := OpenCheckpoint(b, verifiers); err != nil {
		t.Error(err)
	}
	extended, err := signHead(headText(testOrigin, 3, Hash{1})+"extension\n", signer)
	must(t, err)
	if _, _, err := OpenCheckpoint(extended, verifiers); !errors.Is(err, ErrMalformed) {
		t.Errorf("extension line: %v", err)
	}
}
