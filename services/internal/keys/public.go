package keys

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
)

// PublicKey is an Ed25519 public key in text form: "ed25519:" and the 32 bytes of
// RFC 8032 section 5.1.2 in base64url without padding. There is exactly one text
// for a key, so texts may be compared and used as map keys.
type PublicKey string

const publicPrefix = "ed25519:"

// NewPublicKey returns the text form of a raw key, which it does not judge; see
// [PublicKey.Bytes].
func NewPublicKey(raw ed25519.PublicKey) PublicKey {
	return PublicKey(publicPrefix + base64.RawURLEncoding.EncodeToString(raw))
}

// Bytes returns the raw key. It refuses ([ErrBadPublicKey]) a text that is not
// in the one canonical form, an encoding whose y is not reduced (RFC 8032 section
// 5.1.3 demands that, crypto/ed25519 does not), and the points of small order:
// for those, signatures that verify can be made without any private key.
func (p PublicKey) Bytes() (ed25519.PublicKey, error) {
	text, ok := strings.CutPrefix(string(p), publicPrefix)
	if !ok {
		return nil, badPublicKey(p, "it does not start with "+publicPrefix)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") { // the decoder skips line ends
		return nil, badPublicKey(p, "the part after the colon is not base64url without padding")
	}
	if len(raw) != ed25519.PublicKeySize {
		return nil, badPublicKey(p, fmt.Sprintf("it has %d bytes instead of %d", len(raw), ed25519.PublicKeySize))
	}
	if !reduced(raw) {
		return nil, badPublicKey(p, "its y coordinate is not reduced")
	}
	if smallOrder(raw) {
		return nil, badPublicKey(p, "it is a point of small order")
	}
	return raw, nil
}

// Verify reports whether sig is a signature over msg by this key. A key that
// [PublicKey.Bytes] refuses verifies nothing.
func (p PublicKey) Verify(msg, sig []byte) bool {
	raw, err := p.Bytes()
	return err == nil && ed25519.Verify(raw, msg, sig)
}

// badPublicKey quotes at most the length of a well-formed key: the text may come
// from anywhere.
func badPublicKey(p PublicKey, reason string) error {
	text := string(p)
	if limit := len(publicPrefix) + 43; len(text) > limit {
		text = text[:limit] + "..."
	}
	return fmt.Errorf("keys: public key %q: %w: %s", text, ErrBadPublicKey, reason)
}

// reduced reports whether y, the lower 255 bits in little-endian order, is less
// than the field prime 2^255-19.
func reduced(raw []byte) bool {
	if raw[31]&0x7f != 0x7f || raw[0] < 0xed {
		return true
	}
	for _, b := range raw[1:31] {
		if b != 0xff {
			return true
		}
	}
	return false
}

// smallOrder reports whether an encoding is a point of order 1, 2, 4 or 8. The
// sign bit of x is ignored: of every y listed, both signs decode to such a point.
// With both signs these seven y are the fourteen encodings, canonical and not,
// of the eight torsion points, which the Community Cryptography Test Vectors
// (CCTV) for Ed25519 list, too. The two that are not reduced are already refused
// by reduced; they stand here so that this list is complete by itself.
func smallOrder(raw []byte) bool {
	y := [32]byte(raw)
	y[31] &= 0x7f
	switch y {
	case [32]byte{0: 1}, // the neutral element
		[32]byte{},    // order 4
		allOnes(0xec), // p-1, order 2
		allOnes(0xed), // p, that is 0
		allOnes(0xee), // p+1, that is 1
		[32]byte{ // order 8
			0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
			0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
		[32]byte{ // order 8, the negative of the one above
			0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
			0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a}:
		return true
	}
	return false
}

// allOnes returns 2^255-1 in little-endian order with another lowest byte.
func allOnes(lowest byte) [32]byte {
	var y [32]byte
	for i := range y {
		y[i] = 0xff
	}
	y[0], y[31] = lowest, 0x7f
	return y
}
