package witness

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/services/internal/keys"
)

// algCosignature is the signature type of an Ed25519 cosignature in a key's text.
const algCosignature = 0x04

// cosignature_bytes is the time in seconds and the signature.
const cosignature_bytes = 8 + ed25519.SignatureSize

// Verifier checks the cosignatures of one witness. It is a note.Verifier.
type Verifier struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

// ParseVerifier reads a witness's key: name, key id and base64, joined by "+".
func ParseVerifier(vkey string) (Verifier, error) {
	bad := func(why string) (Verifier, error) {
		return Verifier{}, fmt.Errorf("witness key %q: %s; want name+id+base64 of a cosignature key", vkey, why)
	}
	name, rest, ok := strings.Cut(vkey, "+")
	id, text, ok2 := strings.Cut(rest, "+")
	hash, err := strconv.ParseUint(id, 16, 32)
	if !ok || !ok2 || err != nil || len(id) != 8 || !goodName(name) {
		return bad("malformed")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || raw[0] != algCosignature {
		return bad("it is no Ed25519 cosignature key")
	}
	if _, err := keys.NewPublicKey(raw[1:]).Bytes(); err != nil {
		return bad(err.Error())
	}
	v := newVerifier(name, raw[1:])
	if v.hash != uint32(hash) {
		return bad("its id belongs to another key")
	}
	return v, nil
}

// logVerifier reads the key of a log. A key for which anybody can make signatures is
// refused, as those of actors and witnesses are.
func logVerifier(vkey string) (note.Verifier, error) {
	v, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(strings.SplitN(vkey, "+", 3)[2]) // which NewVerifier has read, too
	if err == nil {
		_, err = keys.NewPublicKey(raw[1:]).Bytes()
	}
	return v, err
}

func newVerifier(name string, key ed25519.PublicKey) Verifier {
	h := sha256.Sum256(append([]byte(name+"\n"+string(rune(algCosignature))), key...))
	return Verifier{name: name, hash: binary.BigEndian.Uint32(h[:]), key: key}
}

// goodName says whether a name may stand in a signature line.
func goodName(name string) bool {
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '+' })
}

// Name implements note.Verifier.
func (v Verifier) Name() string { return v.name }

// KeyHash implements note.Verifier.
func (v Verifier) KeyHash() uint32 { return v.hash }

// Verify implements note.Verifier.
func (v Verifier) Verify(head, sig []byte) bool {
	at, err := timeOf(sig)
	return err == nil && ed25519.Verify(v.key, cosigned(head, at), sig[8:])
}

// String is the key's text.
func (v Verifier) String() string {
	return fmt.Sprintf("%s+%08x+%s", v.name, v.hash, base64.StdEncoding.EncodeToString(append([]byte{algCosignature}, v.key...)))
}

// timeOf reads when a cosignature says that it was made.
func timeOf(sig []byte) (time.Time, error) {
	if len(sig) != cosignature_bytes {
		return time.Time{}, errors.New("a cosignature has 72 bytes")
	}
	s := binary.BigEndian.Uint64(sig)
	if s > math.MaxInt64 {
		return time.Time{}, errors.New("a cosignature's time does not fit")
	}
	return time.Unix(int64(s), 0), nil
}

// cosigned is the text that a cosignature is over.
func cosigned(head []byte, at time.Time) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", at.Unix()), head...)
}

// Signer cosigns.
type Signer struct {
	verifier Verifier
	sign     func(msg []byte) []byte
}

// NewSigner makes a witness of a key. No key may serve two names: the text that is
// signed does not hold the name.
func NewSigner(name string, public ed25519.PublicKey, sign func(msg []byte) []byte) (*Signer, error) {
	if !goodName(name) {
		return nil, fmt.Errorf("witness name %q: want up to 128 printable letters without space and plus", name)
	}
	return &Signer{verifier: newVerifier(name, public), sign: sign}, nil
}

// Verifier is the public half.
func (s *Signer) Verifier() Verifier { return s.verifier }

// line is one signature line of a note.
func (s *Signer) line(head []byte, at time.Time) string {
	b := binary.BigEndian.AppendUint32(nil, s.verifier.hash)
	b = binary.BigEndian.AppendUint64(b, uint64(at.Unix()))
	b = append(b, s.sign(cosigned(head, at))...)
	return "— " + s.verifier.name + " " + base64.StdEncoding.EncodeToString(b) + "\n"
}
