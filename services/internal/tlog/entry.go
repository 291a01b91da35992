package tlog

import (
	"encoding/hex"
	"strconv"
	"time"
)

// Hash is a SHA-256 digest. The zero Hash stands for "none": nobody knows an input
// that has it.
type Hash = [32]byte

// Kind says what an entry is about.
type Kind string

// The kinds of entry. A reader that meets another kind must refuse it.
const (
	KindEvent   Kind = "event"   // one record of the stream
	KindGenesis Kind = "genesis" // leaf 0: which log of which stream this is
	KindGap     Kind = "gap"     // sequences that the stream did not hold any more
	KindEpoch   Kind = "epoch"   // leaf 0 of a log that goes on where another one ended
	KindState   Kind = "state"   // where each job's newest event lies, at fixed leaf counts
)

// formatTag opens every entry; another grammar gets another number.
const formatTag = "banksman-entry/v1"

// maxEntry_bytes is what the uint16 frame of an entry bundle can carry.
const maxEntry_bytes = 1<<16 - 1

// maxToken_bytes bounds the fields that a publisher chooses.
const maxToken_bytes = 256

// Entry is one leaf of the log in parsed form. On disk it is ASCII lines in fixed
// order, each a key, a space and its values, ended by LF; "-" stands for none:
//
//	banksman-entry/v1 event          banksman-entry/v1 genesis    banksman-entry/v1 gap
//	prev <sha256>                    prev <64 zeros>              prev <sha256>
//	seq <n>                          origin <token>               from <n>
//	time <ns since 1970>             stream <token>               to <n>
//	subject <escaped>                created <ns since 1970>
//	id <token|->                     config <sha256>
//	expect <n|->
//	meta <sha256>
//	headers <sha256|->
//	payload <sha256> <bytes>
//	job <token|-> <leaf|->
//	actor <token|-> <token|->
//
//	banksman-entry/v1 epoch
//	prev, origin, stream, created and config as in a genesis
//	old <origin> <leaves> <root, hex>
//	through <n>
//	why <token>
//
//	banksman-entry/v1 state
//	prev <sha256>
//	size <leaves before this one>
//	seq <n, as in the event or to in the gap before>
//	jobs <n>
//	root <sha256, hex>    of the [Directory]
//
// Numbers are decimal without leading zeros, digests lower-case hex. A subject keeps
// the bytes 0x21 to 0x7e except "%"; every other byte is "%" and two upper-case hex
// digits, so that no record can produce an entry that does not parse.
type Entry struct {
	Kind Kind
	Prev Hash // SHA-256 of the previous entry's bytes; zero in the genesis

	// event
	Seq           uint64
	Time          time.Time // stream time, UTC
	Subject       string
	ID            string // "" = none
	Expect        string // expected last sequence as signed by the actor, "" = none
	Meta          Hash   // SHA-256 of the ce block
	Headers       Hash   // SHA-256 of the header block, zero = no headers
	Payload       Hash
	Payload_bytes int64
	Job           string // "" = belongs to no job
	JobPrev       int64  // leaf of the job's previous event, -1 = none
	Actor, Sig    string // "" = none

	// genesis
	Origin, Stream string
	Created        time.Time // of the stream, UTC
	Config         Hash      // SHA-256 of the stream's configuration

	// epoch, beside what a genesis says
	Old Before

	// gap
	From, To uint64

	// state, beside Seq
	Size, Jobs int64
	Root       Hash // of the [Directory] of the leaves before
}

// Before says where a log goes on: behind the last head of another one. Records up to
// Through lie in that log; those of them that are carried follow the first leaf, in
// order, each exactly as it lies there but for its links.
type Before struct {
	Origin  string
	Size    int64
	Root    Hash
	Through uint64
	Why     string // a token
}

// Genesis says which log this is. It becomes leaf 0.
type Genesis struct {
	Origin  string    // first line of every checkpoint, unique for ever
	Stream  string    // name of the stream
	Created time.Time // creation time of the stream
	Config  Hash      // SHA-256 of the stream's configuration
	Old     Before    // zero for the first log of a stream
}

// entry is leaf 0.
func (g *Genesis) entry() Entry {
	e := Entry{Kind: KindGenesis, Origin: g.Origin, Stream: g.Stream, Created: g.Created, Config: g.Config, Old: g.Old}
	if g.Old != (Before{}) {
		e.Kind = KindEpoch
	}
	return e
}

// begins says whether the entry can be leaf 0, and no other.
func (e *Entry) begins() bool { return e.Kind == KindGenesis || e.Kind == KindEpoch }

// Encode is the inverse of [ParseEntry]: Encode(ParseEntry(b)) is b for every b that
// parses.
func (e *Entry) Encode() []byte {
	return e.append(make([]byte, 0, 768))
}

func (e *Entry) append(b []byte) []byte {
	b = append(b, formatTag...)
	b = append(b, ' ')
	b = append(b, e.Kind...)
	b = appendHash(append(b, "\nprev "...), e.Prev)
	switch e.Kind {
	case KindEvent:
		b = e.appendEvent(b)
	case KindGenesis, KindEpoch:
		b = append(append(b, "\norigin "...), e.Origin...)
		b = append(append(b, "\nstream "...), e.Stream...)
		b = strconv.AppendInt(append(b, "\ncreated "...), e.Created.UnixNano(), 10)
		b = appendHash(append(b, "\nconfig "...), e.Config)
		if e.Kind == KindEpoch {
			b = e.Old.append(b)
		}
	case KindGap:
		b = strconv.AppendUint(append(b, "\nfrom "...), e.From, 10)
		b = strconv.AppendUint(append(b, "\nto "...), e.To, 10)
	case KindState:
		b = strconv.AppendInt(append(b, "\nsize "...), e.Size, 10)
		b = strconv.AppendUint(append(b, "\nseq "...), e.Seq, 10)
		b = strconv.AppendInt(append(b, "\njobs "...), e.Jobs, 10)
		b = appendHash(append(b, "\nroot "...), e.Root)
	}
	return append(b, '\n')
}

func (o *Before) append(b []byte) []byte {
	b = append(append(b, "\nold "...), o.Origin...)
	b = strconv.AppendInt(append(b, ' '), o.Size, 10)
	b = appendHash(append(b, ' '), o.Root)
	b = strconv.AppendUint(append(b, "\nthrough "...), o.Through, 10)
	return append(append(b, "\nwhy "...), o.Why...)
}

func (e *Entry) appendEvent(b []byte) []byte {
	b = strconv.AppendUint(append(b, "\nseq "...), e.Seq, 10)
	b = strconv.AppendInt(append(b, "\ntime "...), e.Time.UnixNano(), 10)
	b = appendSubject(append(b, "\nsubject "...), e.Subject)
	b = appendToken(append(b, "\nid "...), e.ID)
	b = appendToken(append(b, "\nexpect "...), e.Expect)
	b = appendHash(append(b, "\nmeta "...), e.Meta)
	b = append(b, "\nheaders "...)
	if e.Headers == (Hash{}) {
		b = append(b, '-')
	} else {
		b = appendHash(b, e.Headers)
	}
	b = appendHash(append(b, "\npayload "...), e.Payload)
	b = strconv.AppendInt(append(b, ' '), e.Payload_bytes, 10)
	b = appendToken(append(b, "\njob "...), e.Job)
	b = append(b, ' ')
	if e.JobPrev < 0 {
		b = append(b, '-')
	} else {
		b = strconv.AppendInt(b, e.JobPrev, 10)
	}
	b = appendToken(append(b, "\nactor "...), e.Actor)
	return appendToken(append(b, ' '), e.Sig)
}

// LastSeq returns the stream sequence up to which the log is complete after e, or
// false if e says nothing about sequences.
func (e *Entry) LastSeq() (uint64, bool) {
	switch e.Kind {
	case KindEvent, KindState:
		return e.Seq, true
	case KindGap:
		return e.To, true
	}
	return 0, false
}

func appendHash(b []byte, h Hash) []byte { return hex.AppendEncode(b, h[:]) }

func appendToken(b []byte, s string) []byte {
	if s == "" {
		return append(b, '-')
	}
	return append(b, s...)
}

const upperHex = "0123456789ABCDEF"

// plainSubject reports whether c stands for itself in a subject line.
func plainSubject(c byte) bool { return c > 0x20 && c < 0x7f && c != '%' }

func appendSubject(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; plainSubject(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return b
}

// isToken reports whether s may stand in a token field and mean itself.
func isToken(s string) bool {
	if s == "" || s == "-" || len(s) > maxToken_bytes {
		return false
	}
	for i := range len(s) {
		if s[i] <= 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// tokenOrNone keeps a publisher from stopping the log: what cannot stand in an entry
// is left out of it, deterministically, and stays visible in the raw headers, whose
// digest the entry does hold.
func tokenOrNone(s string) string {
	if isToken(s) {
		return s
	}
	return ""
}
