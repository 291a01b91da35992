package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// IssueServer issues a certificate for the bus. It is valid for localhost,
// 127.0.0.1, ::1 and the given host names and addresses, as a server and, since
// members of a cluster dial each other, as a client. It is valid for ttl, but
// never longer than the CA itself. The private key leaves the process only
// through keyPEM, which belongs in [WriteSecret].
func (ca *CA) IssueServer(hosts []string, ttl time.Duration) (certPEM, keyPEM []byte, err error) {
	now := time.Now()
	if ca.key == nil || ca.certificate == nil {
		return nil, nil, errors.New("keys: issue a server certificate: there is no CA; make or load one")
	}
	if now.After(ca.certificate.NotAfter) {
		return nil, nil, fmt.Errorf("keys: issue a server certificate: %s expired at %s; make a new one", ca.title(), ca.certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	if ttl <= 0 {
		return nil, nil, fmt.Errorf("keys: issue a server certificate: a validity of %s is over at once; choose a longer one", ttl)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "banksman bus", Organization: []string{"banksman"}},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(ttl),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if template.NotAfter.After(ca.certificate.NotAfter) {
		template.NotAfter = ca.certificate.NotAfter
	}
	for _, host := range slices.Concat([]string{"localhost", "127.0.0.1", "::1"}, hosts) {
		if err := addHost(template, host); err != nil {
			return nil, nil, err
		}
	}
	return ca.issue(template)
}

func (ca *CA) issue(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("keys: issue a server certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, &key.PublicKey, ca.key())
	if err != nil {
		return nil, nil, fmt.Errorf("keys: issue a server certificate: %w", err)
	}
	keyPEM, err = privatePEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("keys: issue a server certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}), keyPEM, nil
}

// hostName matches a lower-case DNS name, also with a wildcard as its first
// label. Underscores are no part of host names, but container names have them.
var hostName = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// addHost adds one name or address to a certificate, once.
func addHost(template *x509.Certificate, host string) error {
	if address, err := netip.ParseAddr(host); err == nil && address.Zone() == "" {
		ip := address.Unmap().AsSlice()
		for _, known := range template.IPAddresses {
			if known.Equal(ip) {
				return nil
			}
		}
		template.IPAddresses = append(template.IPAddresses, ip)
		return nil
	}
	name := strings.ToLower(host)
	if !hostName.MatchString(name) || len(name) > 253 {
		return fmt.Errorf("keys: issue a server certificate: %q is neither a host name nor an address; leave out scheme, port and brackets", host)
	}
	if !slices.Contains(template.DNSNames, name) {
		template.DNSNames = append(template.DNSNames, name)
	}
	return nil
}

// ServerTLS loads the certificate and the private key of the bus. It speaks TLS
// 1.3 only: both ends are of this site. The key file is held to the rules of
// every secret here; see [ReadSecret].
func ServerTLS(certfile, keyfile string) (*tls.Config, error) {
	certPEM, err := os.ReadFile(certfile)
	if err != nil {
		return nil, fmt.Errorf("keys: read certificate: %w", err)
	}
	keyPEM, err := ReadSecret(keyfile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("keys: use certificate %s with key %s: %w: %w", certfile, keyfile, ErrDamaged, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, nil
}

// ClientTLS returns the configuration for dialling the bus: TLS 1.3, and trust in
// the site's CA alone. If caPEM holds no certificate, nothing is trusted and every
// handshake fails; it never falls back to the system's authorities. Read the file
// with [ReadCACert] to hear of that earlier.
func ClientTLS(caPEM []byte) *tls.Config {
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(caPEM)
	return &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13}
}

// ReadCACert reads the public certificate of a CA for [ClientTLS], and refuses
// a file that holds none.
func ReadCACert(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("keys: read CA certificate: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return nil, damaged(path, "it holds no certificate in PEM; copy the site's ca.crt here")
	}
	return text, nil
}
