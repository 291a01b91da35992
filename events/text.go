package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// The family "text" is about words of people that are kept beside the stream, so
// that they can be erased. Its events' id is the digest of such a text.
var textKinds = []Def{
	define[TextErased]("text.erased", 1, "an admin had ordered that a kept text be erased; its digest stays in the log"),
}

// TextErased orders that a text be deleted for good, wherever events quote it. The
// subject's id is the digest, so that the order can be read from the log's entry alone.
type TextErased struct {
	// Reason is why, for people. It is not erasable itself.
	Reason string `json:"reason"`
	// Basis is the legal ground, such as "GDPR Art. 17(1)(a)".
	Basis string `json:"basis,omitempty"`

	Extra Extra `json:",embed"`
}

// Text refers to a text that is kept beside the stream. It stands in an event in the
// place of the text itself, and whoever quotes the text quotes the reference. A kept
// text begins with 128 random bits; the digest covers both, so that once they are
// deleted not even a short text can be guessed and checked.
type Text struct {
	Digest string // SHA-256 of nonce and text, 64 hexadecimal digits
	Bytes  int    // of the text
}

// TextNonceBytes is the length of the nonce before a kept text.
const TextNonceBytes = 16

// KeepText makes what is kept of a text, and the reference to it. The nonce is random.
func KeepText(nonce [TextNonceBytes]byte, text string) (Text, []byte) {
	kept := append(nonce[:], text...)
	return Text{Digest: Digest(kept), Bytes: len(text)}, kept
}

const (
	textBefore = "[text sha256:"
	textAfter  = " bytes]"
)

// String is the reference as it stands in events, "[text sha256:... 42 bytes]".
func (t Text) String() string { return textBefore + t.Digest + " " + strconv.Itoa(t.Bytes) + textAfter }

// ParseText reads a reference that is a whole string.
func ParseText(s string) (Text, bool) {
	body, before := strings.CutPrefix(s, textBefore)
	body, after := strings.CutSuffix(body, textAfter)
	digest, number, ok := strings.Cut(body, " ")
	n, err := strconv.Atoi(number)
	t := Text{Digest: digest, Bytes: n}
	return t, before && after && ok && err == nil && isDigest(digest) && t.String() == s
}

// LooksLikeText says whether a string holds what may be taken for a reference. What
// agents send must not.
func LooksLikeText(s string) bool { return strings.Contains(s, textBefore) }

func isDigest(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size && strings.ToLower(s) == s
}

// Open returns the text of what was kept; it must be what the reference names.
func (t Text) Open(kept []byte) (string, error) {
	if Digest(kept) != t.Digest || len(kept) != TextNonceBytes+t.Bytes {
		return "", fmt.Errorf("the kept text of %d bytes is not the one with digest %s", len(kept), t.Digest)
	}
	return string(kept[TextNonceBytes:]), nil
}

// TextsOf lists the kept texts that a payload names. Only members that people's words
// stand in count; the same characters elsewhere mean nothing.
func TextsOf(payload any) []Text {
	var words string
	switch p := payload.(type) {
	case *JobProposed:
		words = p.Reason
	case *JobDenied:
		words = p.Ruling.Reason
	case *JobCancelled:
		words = p.Reason
	case *JobRevoked:
		words = p.Reason
	case *AskCancelRequested:
		words = p.Reason
	case *AskRevokeRequested:
		words = p.Reason
	case *AskCommented:
		words = p.Text
	case *AskBarred:
		words = p.Reason
	case *AskWaived:
		words = p.Reason
	case *GrantGiven:
		words = p.Reason
	case *GrantRevoked:
		words = p.Reason
	case *AskUnbarred:
		words = p.Reason
	}
	if t, ok := ParseText(words); ok {
		return []Text{t}
	}
	return nil
}
