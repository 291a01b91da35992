package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

const (
	caYears          = 10
	clockSkew        = 5 * time.Minute // a host whose clock is behind accepts a new certificate, too
	certificateBlock = "CERTIFICATE"
)

// CA is the certificate authority of one site. It signs the bus certificate and
// nothing else; clients trust it instead of the system's authorities.
type CA struct {
	key         hidden[*ecdsa.PrivateKey]
	certificate *x509.Certificate
}

// NewCA makes a certificate authority that is valid for ten years. The name is
// shown by tools that display certificates.
func NewCA(name string) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("keys: make CA %q: %w", name, err)
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name, Organization: []string{"banksman"}},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.AddDate(caYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // it signs no further authorities
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("keys: make CA %q: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("keys: make CA %q: %w", name, err)
	}
	return &CA{key: hide(key), certificate: certificate}, nil
}

// CertPEM returns the certificate, which is public: clients need it.
func (ca *CA) CertPEM() []byte {
	if ca.certificate == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: ca.certificate.Raw})
}

// NotAfter returns the moment at which the CA, and all it has issued, expires.
func (ca *CA) NotAfter() time.Time {
	if ca.certificate == nil {
		return time.Time{}
	}
	return ca.certificate.NotAfter
}

// Format shows the name, whatever the verb.
func (ca CA) Format(f fmt.State, _ rune) { io.WriteString(f, ca.title()) }

// LogValue shows the name.
func (ca CA) LogValue() slog.Value { return slog.StringValue(ca.title()) }

func (ca CA) title() string {
	if ca.certificate == nil {
		return "no CA"
	}
	return "CA " + ca.certificate.Subject.CommonName
}

// WriteCA writes certificate and private key of a CA to one new secret file. The
// part that clients need is [CA.CertPEM], to be written with [WritePublic].
func WriteCA(path string, ca *CA) error {
	if ca == nil || ca.key == nil || ca.certificate == nil {
		return fmt.Errorf("keys: write %s: there is no CA to write", path)
	}
	private, err := privatePEM(ca.key())
	if err != nil {
		return fmt.Errorf("keys: write %s: %w", path, err)
	}
	return WriteSecret(path, append(ca.CertPEM(), private...))
}

func privatePEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}), nil
}

// LoadCA reads a file that [WriteCA] wrote.
func LoadCA(path string) (*CA, error) {
	text, err := ReadSecret(path)
	if err != nil {
		return nil, err
	}
	ca, err := parseCA(text)
	if err != nil {
		return nil, damaged(path, err.Error())
	}
	return ca, nil
}

func parseCA(text []byte) (*CA, error) {
	first, rest := pem.Decode(text)
	second, rest := pem.Decode(rest)
	if first == nil || second == nil || first.Type != certificateBlock || second.Type != privateBlock {
		return nil, errors.New("it is not a certificate followed by its private key")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("something follows the private key")
	}
	certificate, err := x509.ParseCertificate(first.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the certificate: %w", err)
	}
	if !certificate.BasicConstraintsValid || !certificate.IsCA {
		return nil, errors.New("the certificate is not one of an authority")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(second.Bytes)
	if err != nil {
		return nil, errors.New("the private key is not PKCS #8")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, errors.New("certificate and private key do not belong together")
	}
	return &CA{key: hide(key), certificate: certificate}, nil
}
