package keys

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Signer signs events for one actor. Make one with [GenerateSigner] or
// [LoadSigner]; the zero Signer has no key and makes no signatures.
type Signer struct {
	private hidden[ed25519.PrivateKey]
	public  PublicKey
}

// GenerateSigner makes a new signing key.
func GenerateSigner() (*Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("keys: generate a signing key: %w", err)
	}
	return newSigner(private), nil
}

func newSigner(private ed25519.PrivateKey) *Signer {
	return &Signer{private: hide(private), public: NewPublicKey(private.Public().(ed25519.PublicKey))}
}

// Public returns the public half; it is empty for the zero Signer.
func (s *Signer) Public() PublicKey { return s.public }

// Sign returns the 64 byte signature over msg, nil for the zero Signer. The
// caller separates domains: msg starts with a text that says what it is.
func (s *Signer) Sign(msg []byte) []byte {
	if s.private == nil {
		return nil
	}
	return ed25519.Sign(s.private(), msg)
}

// Format shows the public key, whatever the verb.
func (s Signer) Format(f fmt.State, _ rune) { io.WriteString(f, "signer "+string(s.public)) }

// LogValue shows the public key.
func (s Signer) LogValue() slog.Value { return slog.StringValue("signer " + string(s.public)) }

// WriteSigner writes a signing key to a new file. A nil passphrase leaves it
// plain, for roles that start without a person. With a passphrase the file is an
// armored age file with a scrypt recipient. An empty passphrase that is not nil
// is refused ([ErrEmptyPassphrase]), so that a failed prompt cannot lead to an
// unprotected key.
func WriteSigner(path string, s *Signer, passphrase []byte, options ...SealOption) error {
	text, err := signerText(s)
	if err != nil {
		return fmt.Errorf("keys: write %s: %w", path, err)
	}
	if passphrase != nil {
		if text, err = seal(text, passphrase, options); err != nil {
			return fmt.Errorf("keys: write %s: %w", path, err)
		}
	}
	return WriteSecret(path, text)
}

// LoadSigner reads a signing key. Only when the file is encrypted, ask is called,
// once, with a prompt that names the file; a nil ask, or one without a terminal,
// leads to [ErrNeedsPassphrase]. A passphrase that does not fit is
// [ErrWrongPassphrase]; whether to ask again is the caller's decision.
func LoadSigner(path string, ask func(prompt string) ([]byte, error)) (*Signer, error) {
	text, err := ReadSecret(path)
	if err != nil {
		return nil, err
	}
	if sealed(text) {
		if text, err = openSealed(path, text, ask); err != nil {
			return nil, err
		}
	}
	signer, err := parseSigner(text)
	if err != nil {
		return nil, damaged(path, err.Error())
	}
	return signer, nil
}

const privateBlock = "PRIVATE KEY" // RFC 7468 section 10

// signerText returns PKCS #8 in PEM, after a line for whoever finds the file.
func signerText(s *Signer) ([]byte, error) {
	if s == nil || s.private == nil {
		return nil, errors.New("there is no key to write")
	}
	der, err := x509.MarshalPKCS8PrivateKey(s.private())
	if err != nil {
		return nil, err
	}
	text := []byte("banksman signing key, keep it secret; its public half is " + string(s.public) + "\n")
	return append(text, pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der})...), nil
}

func parseSigner(text []byte) (*Signer, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != privateBlock {
		return nil, errors.New("there is no private key in it")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("something follows the private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the private key is not PKCS #8")
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("the private key is not an Ed25519 key")
	}
	return newSigner(private), nil
}
