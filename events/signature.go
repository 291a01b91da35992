package events

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// signatureDomain separates event signatures from every other use of a key.
// No log-in nonce and no checkpoint begins like this.
const signatureDomain = "banksman-event/v1"

// Signature is what the bm-sig header holds.
type Signature struct {
	Key string // the signer's public key, "ed25519:" and base64url
	Sig []byte // 64 bytes, RFC 8032
}

// String is the header's value: the key, a space, the signature in base64url
// without padding.
func (s Signature) String() string {
	return s.Key + " " + base64.RawURLEncoding.EncodeToString(s.Sig)
}

// ParseSignature reads a bm-sig header.
func ParseSignature(text string) (Signature, error) {
	key, sig, ok := strings.Cut(text, " ")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sig)
	if !ok || err != nil || len(raw) != 64 || !strings.HasPrefix(key, "ed25519:") {
		return Signature{}, &Malformed{What: HeaderSignature, Why: "want \"ed25519:<key> <64 bytes in base64url>\""}
	}
	out := Signature{Key: key, Sig: raw}
	if out.String() != text { // base64 readers skip line ends
		return Signature{}, &Malformed{What: HeaderSignature, Why: "the signature is not in its one form"}
	}
	return out, nil
}

// SigningText is what an actor signs: one line a fact, in fixed order.
//
// It holds digests only, so a signature stays checkable after the payload was
// erased, and it holds the expected sequence, so an event is good at one
// position only.
func SigningText(origin, subject string, ce [sha256.Size]byte, expect uint64, payload [sha256.Size]byte, payloadBytes int) []byte {
	return fmt.Appendf(nil, "%s\norigin %s\nsubject %s\nce %s\nexpect %d\npayload %s %d\n",
		signatureDomain, origin, subject, hex.EncodeToString(ce[:]), expect,
		hex.EncodeToString(payload[:]), payloadBytes)
}

// CEDigest is the SHA-256 of the CloudEvents block: every ce-* header, sorted
// by name, each as "name: value" and a line feed.
func CEDigest(header map[string][]string) [sha256.Size]byte {
	var lines []string
	for name, values := range header {
		if strings.HasPrefix(name, "ce-") {
			for _, v := range values {
				lines = append(lines, name+": "+v+"\n")
			}
		}
	}
	slices.Sort(lines)
	return sha256.Sum256([]byte(strings.Join(lines, "")))
}
