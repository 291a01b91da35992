package keys

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newTestCA(t testing.TB) *CA {
	t.Helper()
	ca, err := NewCA("site one")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func parseCert(t testing.TB, text []byte) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode(text)
	if block == nil || len(rest) > 0 {
		t.Fatal("not exactly one PEM block")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// writeBus issues a bus certificate and writes it as init does.
func writeBus(t testing.TB, ca *CA, hosts ...string) (certfile, keyfile string) {
	t.Helper()
	certPEM, keyPEM, err := ca.IssueServer(hosts, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t)
	certfile, keyfile = filepath.Join(dir, "bus.crt"), filepath.Join(dir, "bus.key")
	if err := WritePublic(certfile, certPEM); err != nil {
		t.Fatal(err)
	}
	if err := WriteSecret(keyfile, keyPEM); err != nil {
		t.Fatal(err)
	}
	wantMode(t, certfile, 0o644)
	wantMode(t, keyfile, 0o600)
	return certfile, keyfile
}

// greet is a TLS server over loopback that says hello to whoever it accepts.
func greet(t testing.TB, config *tls.Config) (address string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "hello") // performs the handshake; a failed one is the client's to report
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return listener.Addr().String()
}

func hear(address, name string, config *tls.Config) (string, error) {
	config = config.Clone()
	config.ServerName = name
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	said, err := io.ReadAll(conn)
	return string(said), err
}

func TestHandshakeOverLoopback(t *testing.T) {
	ca := newTestCA(t)
	config, err := ServerTLS(writeBus(t, ca, "bus.example", "BM_bus-1", "*.pool.example", "192.0.2.7", "2001:db8::7", "localhost"))
	if err != nil {
		t.Fatal(err)
	}
	address := greet(t, config)
	client := ClientTLS(ca.CertPEM())
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "bus.example", "bm_bus-1", "w7.pool.example", "192.0.2.7", "2001:db8::7"} {
		if said, err := hear(address, name, client); err != nil || said != "hello" {
			t.Errorf("as %s: %q, %v", name, said, err)
		}
	}
	for _, name := range []string{"other.example", "pool.example", "192.0.2.8"} {
		if _, err := hear(address, name, client); err == nil {
			t.Errorf("the certificate is good for %s", name)
		}
	}
	for name, stranger := range map[string]*tls.Config{
		"another CA": ClientTLS(newTestCA(t).CertPEM()),
		"no CA":      ClientTLS(nil),
		"rubbish":    ClientTLS([]byte("rubbish")),
		"the system": {},
	} {
		if _, err := hear(address, "localhost", stranger); err == nil {
			t.Errorf("a client that trusts %s is satisfied", name)
		}
	}
	old := client.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, err := hear(address, "localhost", old); err == nil {
		t.Error("TLS 1.2 is accepted")
	}
}

func TestIssuedCertificate(t *testing.T) {
	ca := newTestCA(t)
	certPEM, _, err := ca.IssueServer(nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	leaf := parseCert(t, certPEM)
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("usage %d: %v", usage, err)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}}); err == nil {
		t.Error("the certificate is good for other uses")
	}
	if leaf.IsCA || leaf.SerialNumber.Sign() <= 0 {
		t.Error("the leaf is an authority, or has no serial number")
	}
	if left := time.Until(leaf.NotAfter); left > time.Hour || left < 50*time.Minute {
		t.Errorf("it is valid for %s", left)
	}
	if root := parseCert(t, ca.CertPEM()); !root.IsCA || !root.MaxPathLenZero || root.NotAfter.Year() != time.Now().Year()+10 {
		t.Errorf("CA: %v, path %v, until %s", root.IsCA, root.MaxPathLenZero, root.NotAfter)
	}
	long, _, err := ca.IssueServer(nil, 20*365*24*time.Hour)
	if err != nil || !parseCert(t, long).NotAfter.Equal(ca.NotAfter()) {
		t.Errorf("it outlives its CA, or %v", err)
	}
}

func TestIssueServerRefusals(t *testing.T) {
	ca := newTestCA(t)
	for _, host := range []string{"", " ", "a b", "bus:4222", "nats://bus", "[::1]", "fe80::1%eth0", "-x", "x-", "a..b", ".a", "a.", "*", "a.*", "*.", "ü.example", "a\x00b", strings.Repeat("a.", 127) + "aa"} {
		if _, _, err := ca.IssueServer([]string{host}, time.Hour); err == nil {
			t.Errorf("the host %q is accepted", host)
		}
	}
	for _, ttl := range []time.Duration{0, -time.Hour} {
		if _, _, err := ca.IssueServer(nil, ttl); err == nil {
			t.Errorf("a validity of %s is accepted", ttl)
		}
	}
	if _, _, err := (&CA{}).IssueServer(nil, time.Hour); err == nil {
		t.Error("the zero CA issues")
	}
	ca.certificate.NotAfter = time.Now().Add(-time.Second)
	if _, _, err := ca.IssueServer(nil, time.Hour); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired CA: %v", err)
	}
}

func TestCARoundTrip(t *testing.T) {
	ca := newTestCA(t)
	path := filepath.Join(folder(t), "ca", "ca.pem")
	if err := WriteCA(path, ca); err != nil {
		t.Fatal(err)
	}
	wantMode(t, path, 0o600)
	wantErr(t, WriteCA(path, newTestCA(t)), ErrExists)
	loaded, err := LoadCA(path)
	if err != nil {
		t.Fatal(err)
	}
	config, err := ServerTLS(writeBus(t, loaded))
	if err != nil {
		t.Fatal(err)
	}
	if said, err := hear(greet(t, config), "localhost", ClientTLS(ca.CertPEM())); err != nil || said != "hello" {
		t.Errorf("what the loaded CA issued: %q, %v", said, err)
	}
	os.Chmod(path, 0o644)
	_, err = LoadCA(path)
	wantErr(t, err, ErrExposed, "chmod 600")

	dir := filepath.Dir(path)
	own, _ := privatePEM(ca.key())
	other, _ := privatePEM(newTestCA(t).key())
	leaf, leafKey, _ := ca.IssueServer(nil, time.Hour)
	for name, text := range map[string]string{
		"empty": "", "certificate": string(ca.CertPEM()), "key": string(own), "swapped": string(own) + string(ca.CertPEM()),
		"foreign": string(ca.CertPEM()) + string(other), "leaf": string(leaf) + string(leafKey),
		"more": string(ca.CertPEM()) + string(own) + "more",
	} {
		_, err := LoadCA(mustWrite(t, filepath.Join(dir, name), text, 0o600))
		wantErr(t, err, ErrDamaged)
	}
	if err := WriteCA(filepath.Join(dir, "zero"), &CA{}); err == nil {
		t.Error("the zero CA is written")
	}
}

func TestServerTLSRefusals(t *testing.T) {
	ca := newTestCA(t)
	certfile, keyfile := writeBus(t, ca)
	_, otherKey := writeBus(t, ca)
	_, err := ServerTLS(certfile, otherKey)
	wantErr(t, err, ErrDamaged, certfile, otherKey)
	_, err = ServerTLS(certfile+"x", keyfile)
	wantErr(t, err, os.ErrNotExist)
	os.Chmod(keyfile, 0o644)
	_, err = ServerTLS(certfile, keyfile)
	wantErr(t, err, ErrExposed, "chmod 600 "+keyfile)
}

func TestReadCACert(t *testing.T) {
	ca := newTestCA(t)
	path := mustWrite(t, filepath.Join(folder(t), "ca.crt"), string(ca.CertPEM()), 0o644)
	if text, err := ReadCACert(path); err != nil || string(text) != string(ca.CertPEM()) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	_, err := ReadCACert(mustWrite(t, path, "rubbish", 0o644))
	wantErr(t, err, ErrDamaged, path)
	_, err = ReadCACert(path + "x")
	wantErr(t, err, os.ErrNotExist)
}

func FuzzParseCA(f *testing.F) {
	ca := newTestCA(f)
	private, _ := privatePEM(ca.key())
	f.Add(append(ca.CertPEM(), private...))
	f.Add(ca.CertPEM())
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ca, err := parseCA(text)
		if err == nil && !ca.key().PublicKey.Equal(ca.certificate.PublicKey) {
			t.Error("the halves do not fit")
		}
	})
}

func FuzzIssueHost(f *testing.F) {
	for _, host := range []string{"bus.example", "*.a", "a_b", "::ffff:127.0.0.1", "1.2.3", "x:1", "A", ""} {
		f.Add(host)
	}
	ca := newTestCA(f)
	f.Fuzz(func(t *testing.T, host string) {
		certPEM, _, err := ca.IssueServer([]string{host}, time.Hour)
		if err != nil {
			return
		}
		leaf := parseCert(t, certPEM)
		if net.ParseIP(host) == nil {
			host = strings.Replace(host, "*.", "any.", 1)
		}
		if err := leaf.VerifyHostname(host); err != nil {
			t.Errorf("accepted, but of no use: %v", err)
		}
	})
}
