package keys

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/nats-io/nkeys"
)

// Login answers the log-in challenge of a NATS server with a user nkey. Make one
// with [GenerateLogin] or [LoadLogin]; the zero Login refuses every challenge.
type Login struct {
	pair   hidden[nkeys.KeyPair]
	public string
}

// GenerateLogin makes a new log-in key.
func GenerateLogin() (*Login, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("keys: generate a log-in key: %w", err)
	}
	return newLogin(pair)
}

func newLogin(pair nkeys.KeyPair) (*Login, error) {
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("keys: derive a public log-in key: %w", err)
	}
	return &Login{pair: hide(pair), public: public}, nil
}

// Public returns the user's public nkey, 56 characters starting with U.
func (l *Login) Public() string { return l.public }

// A nats-server makes its nonce from 11 random bytes and sends their base64url
// text without padding.
const (
	nonceRaw_bytes  = 11
	nonceText_bytes = 15
)

// SignNonce signs a log-in challenge. It has the type that nats.Nkey wants.
//
// The server chooses what is signed here. A server that was taken over could
// send the signing text of a forged event and would receive a signature under
// this actor's key, so everything but the exact text form of a nonce is refused
// ([ErrOddNonce]). No other text that this system signs is 15 characters of the
// base64url alphabet: all of them contain a line end.
func (l *Login) SignNonce(nonce []byte) ([]byte, error) {
	if !isNonce(nonce) {
		return nil, fmt.Errorf("keys: log in with %s: %w: %d bytes instead of %d characters of base64url; "+
			"nothing was signed, find out which server this is", l.public, ErrOddNonce, len(nonce), nonceText_bytes)
	}
	if l.pair == nil {
		return nil, errors.New("keys: log in: there is no key; generate or load one")
	}
	signature, err := l.pair().Sign(nonce)
	if err != nil {
		return nil, fmt.Errorf("keys: log in with %s: %w", l.public, err)
	}
	return signature, nil
}

func isNonce(nonce []byte) bool {
	if len(nonce) != nonceText_bytes {
		return false
	}
	// The decoder skips line ends, but then fewer bytes come out.
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(nonce))
	return err == nil && len(raw) == nonceRaw_bytes
}

// Format shows the public key, whatever the verb.
func (l Login) Format(f fmt.State, _ rune) { io.WriteString(f, "login "+l.public) }

// LogValue shows the public key.
func (l Login) LogValue() slog.Value { return slog.StringValue("login " + l.public) }

// WriteLogin writes a log-in key to a new file, as a seed that the nats command
// line takes, too. It is not encrypted: alone it moves messages only, every event
// needs a signing key.
func WriteLogin(path string, l *Login) error {
	if l == nil || l.pair == nil {
		return fmt.Errorf("keys: write %s: there is no key to write", path)
	}
	seed, err := l.pair().Seed()
	if err != nil {
		return fmt.Errorf("keys: write %s: %w", path, err)
	}
	return WriteSecret(path, append(bytes.Clone(seed), '\n'))
}

// LoadLogin reads a log-in key.
func LoadLogin(path string) (*Login, error) {
	text, err := ReadSecret(path)
	if err != nil {
		return nil, err
	}
	login, err := parseLogin(text)
	if err != nil {
		return nil, damaged(path, err.Error())
	}
	return login, nil
}

func parseLogin(text []byte) (*Login, error) {
	seed := bytes.Clone(bytes.TrimSpace(text)) // the pair keeps it
	kind, _, err := nkeys.DecodeSeed(seed)
	if err != nil {
		return nil, errors.New("it is not an nkey seed")
	}
	if kind != nkeys.PrefixByteUser {
		return nil, errors.New("it is the seed of another kind than a user (SU...)")
	}
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return nil, errors.New("it is not an nkey seed")
	}
	return newLogin(pair)
}
