package tlog

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// Record is one message exactly as the broker stores it.
type Record struct {
	Seq     uint64
	Time    time.Time // stream time
	Subject string
	Header  map[string][]string
	Payload []byte
}

// Meta is what the caller reads out of a record's headers for the entry. A field that
// cannot stand in an entry (see [Entry]: more than 256 bytes, a space, a byte outside
// printable ASCII, the lone "-") is written as none: a stranger's message must not be
// able to stop the log.
type Meta struct {
	ID                 string   // "" = none
	Expect             string   // expected last sequence, decimal, "" = none
	CEDigest           [32]byte // SHA-256 of the ce block
	Job                string   // "" = belongs to no job
	ActorKey, ActorSig string   // "" = none
}

// maxPart_bytes bounds the headers and the payload of one record each; nats-server
// accepts no larger message.
const maxPart_bytes = 64 << 20

// frameHead_bytes is the length of the two lengths in front of a raw frame.
const frameHead_bytes = 8

// AppendHeaderBlock appends the stored form of headers, which is also what the entry's
// headers digest covers: for each key in bytewise order its length, the key, the number
// of values, and each value's length and bytes in the order they came; all numbers are
// uint32, big endian. No headers give no bytes.
func AppendHeaderBlock(dst []byte, h map[string][]string) []byte {
	if len(h) == 0 {
		return dst
	}
	var few [16]string // saves an allocation
	keys := few[:0]
	for k := range h {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		dst = appendText(dst, k)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(h[k])))
		for _, v := range h[k] {
			dst = appendText(dst, v)
		}
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(s))), s...)
}

// ParseHeaderBlock is the strict inverse of [AppendHeaderBlock].
func ParseHeaderBlock(b []byte) (map[string][]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	p := blockParser{rest: string(b)}
	h := make(map[string][]string, 8)
	single := make([]string, 0, 8) // backs the headers that have one value, which are most
	for last := ""; p.rest != ""; {
		key := p.text()
		if len(h) > 0 && key <= last {
			p.bad = true
		}
		n := p.number()
		if uint64(n)*4 > uint64(len(p.rest)) {
			p.bad = true
		}
		if p.bad {
			return nil, fmt.Errorf("%w: header block at key %d", ErrMalformed, len(h))
		}
		var values []string
		if n == 1 {
			single = append(single, p.text())
			values = single[len(single)-1 : len(single) : len(single)]
		} else {
			values = make([]string, n)
			for i := range values {
				values[i] = p.text()
			}
		}
		h[key], last = values, key
	}
	if p.bad {
		return nil, fmt.Errorf("%w: header block ends inside a value", ErrMalformed)
	}
	return h, nil
}

// blockParser takes numbers and texts off the front of a header block. Once one is
// short it is bad, and empty.
type blockParser struct {
	rest string
	bad  bool
}

func (p *blockParser) number() uint32 {
	if len(p.rest) < 4 {
		p.rest, p.bad = "", true
		return 0
	}
	n := uint32(p.rest[0])<<24 | uint32(p.rest[1])<<16 | uint32(p.rest[2])<<8 | uint32(p.rest[3])
	p.rest = p.rest[4:]
	return n
}

func (p *blockParser) text() string {
	n := uint64(p.number())
	if n > uint64(len(p.rest)) {
		p.rest, p.bad = "", true
		return ""
	}
	s := p.rest[:n]
	p.rest = p.rest[n:]
	return s
}

// HeaderDigest is the SHA-256 of the header block, or the zero Hash if there is none.
func HeaderDigest(h map[string][]string) Hash { return blockDigest(AppendHeaderBlock(nil, h)) }

func blockDigest(block []byte) Hash {
	if len(block) == 0 {
		return Hash{}
	}
	return sha256.Sum256(block)
}

// AppendFrame appends one frame of raw.log: the length of the header block and of the
// payload as uint32, big endian, then both.
func AppendFrame(dst, block, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(block)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	dst = append(dst, block...)
	return append(dst, payload...)
}

// CutFrame takes one frame off the front of b. The parts share b's memory. It fails
// with [ErrMalformed] if b is shorter than the frame says or a part is too long.
func CutFrame(b []byte) (block, payload, rest []byte, err error) {
	if len(b) < frameHead_bytes {
		return nil, nil, nil, fmt.Errorf("%w: raw frame of %d bytes", ErrMalformed, len(b))
	}
	nb, np, err := frameLengths(b)
	if err != nil {
		return nil, nil, nil, err
	}
	b = b[frameHead_bytes:]
	if nb+np > len(b) {
		return nil, nil, nil, fmt.Errorf("%w: raw frame wants %d bytes, has %d", ErrMalformed, nb+np, len(b))
	}
	return b[:nb:nb], b[nb : nb+np : nb+np], b[nb+np:], nil
}

func frameLengths(head []byte) (block, payload int, err error) {
	nb, np := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
	if nb > maxPart_bytes || np > maxPart_bytes {
		return 0, 0, fmt.Errorf("%w: raw frame of %d + %d bytes, each part has at most %d", ErrMalformed, nb, np, maxPart_bytes)
	}
	return int(nb), int(np), nil
}

// entryOf builds the entry of a record; block is the record's header block.
func entryOf(rec *Record, m *Meta, block []byte, prev Hash, jobPrev int64) Entry {
	expect := m.Expect
	if _, ok := parseDecimal(expect); !ok {
		expect = ""
	}
	return Entry{
		Kind: KindEvent, Prev: prev,
		Seq: rec.Seq, Time: rec.Time.UTC(), Subject: rec.Subject,
		ID: tokenOrNone(m.ID), Expect: expect, Meta: m.CEDigest,
		Headers: blockDigest(block), Payload: payloadDigest(rec.Payload), Payload_bytes: int64(len(rec.Payload)),
		Job: tokenOrNone(m.Job), JobPrev: jobPrev,
		Actor: tokenOrNone(m.ActorKey), Sig: tokenOrNone(m.ActorSig),
	}
}

// checkRecord refuses what no broker delivers and no entry can say.
func checkRecord(rec *Record, block []byte) error {
	switch {
	case rec.Seq == 0:
		return fmt.Errorf("%w: sequence 0", ErrRecord)
	case rec.Subject == "":
		return fmt.Errorf("%w: no subject", ErrRecord)
	case !fitsNanoseconds(rec.Time):
		return fmt.Errorf("%w: time %v lies outside 1970 to 2262", ErrRecord, rec.Time)
	case len(block) > maxPart_bytes || len(rec.Payload) > maxPart_bytes:
		return fmt.Errorf("%w: %d bytes of headers, %d of payload, at most %d each", ErrRecord, len(block), len(rec.Payload), maxPart_bytes)
	}
	return nil
}

func fitsNanoseconds(t time.Time) bool {
	return !t.Before(time.Unix(0, 0)) && !t.After(time.Unix(0, math.MaxInt64))
}

func payloadDigest(b []byte) Hash { return sha256.Sum256(b) }
