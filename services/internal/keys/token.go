package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// TokenPrefix starts every bearer token, so that redaction and secret scanners
// can find one that went astray.
const TokenPrefix = "bmt_"

// NewToken returns a new bearer token: [TokenPrefix] and 32 random bytes in
// base64url.
func NewToken() string {
	var random [32]byte
	rand.Read(random[:]) // never fails, see crypto/rand
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
}

// TokenDigest returns the SHA-256 of a token in lower-case hex. It is what
// configuration and logs may hold: a token has 256 random bits, so that its
// digest cannot be reversed by guessing, and looking a caller up by digest leaks
// no prefix of a token through its timing.
func TokenDigest(tok string) string {
	sum := sha256.Sum256([]byte(tok))
	return hex.EncodeToString(sum[:])
}
