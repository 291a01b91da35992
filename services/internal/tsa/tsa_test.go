package tsa_test

import (
	"bytes"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/tsa"
)

const conf = `[req]
distinguished_name = dn
prompt = no
[dn]
CN = stamps
[root]
basicConstraints = critical, CA:TRUE
[stamps]
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = t
[t]
serial = ./serial
signer_digest = sha384
default_policy = 1.2.3.4.1
digests = sha256
clock_precision_digits = 3
ess_cert_id_alg = sha256
`

// bench is an authority made by openssl.
type bench struct {
	t   testing.TB
	dir string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	need.Program(t, "openssl")
	b := &bench{t, t.TempDir()}
	b.write("conf", []byte(conf))
	b.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=root", "-config", "conf", "-extensions", "root")
	b.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "tsa.key", "-out", "csr", "-config", "conf")
	b.openssl("x509", "-req", "-in", "csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "tsa.pem", "-extfile", "conf", "-extensions", "stamps")
	return b
}

func (b *bench) write(name string, content []byte) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), content, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) []byte {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return content
}

func (b *bench) openssl(args ...string) {
	b.t.Helper()
	cmd := exec.Command("openssl", args...)
	cmd.Dir = b.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("openssl %q: %v: %s", args, err, out)
	}
}

// answer has a request for some bytes stamped.
func (b *bench) answer(content []byte) (query, answer []byte) {
	b.t.Helper()
	query, err := tsa.Request(content)
	if err != nil {
		b.t.Fatal(err)
	}
	b.write("q", query)
	b.openssl("ts", "-reply", "-config", "conf", "-queryfile", "q", "-signer", "tsa.pem", "-inkey", "tsa.key", "-out", "r")
	return query, b.read("r")
}

func (b *bench) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(b.read("ca.pem"))
	return pool
}

// check is everything that is to be checked about an answer.
func check(content, query, answer []byte, roots *x509.CertPool) (*tsa.Stamp, error) {
	s, err := tsa.Parse(answer)
	if err == nil {
		err = s.Stamps(content)
	}
	if err == nil {
		err = s.Answers(query)
	}
	if err == nil {
		err = s.Trusted(roots)
	}
	return s, err
}

// TestEveryByteOfAStamp: a byte that is changed is found, or says nothing about the
// stamp, such as the text beside the status.
func TestEveryByteOfAStamp(t *testing.T) {
	b := newBench(t)
	content := []byte("a head\n1\nroot\n")
	query, answer := b.answer(content)
	roots := b.roots()
	good, err := check(content, query, answer, roots)
	if err != nil || good.TSA != "CN=stamps" || good.Policy != "1.2.3.4.1" || good.Time.IsZero() {
		t.Fatalf("%+v, %v", good, err)
	}
	found := 0
	for i := range answer {
		bad := bytes.Clone(answer)
		bad[i] ^= 1 << (i % 8)
		s, err := check(content, query, bad, roots)
		if err != nil {
			found++
		} else if !s.Time.Equal(good.Time) || s.Serial != good.Serial || s.Policy != good.Policy || s.TSA != good.TSA {
			t.Errorf("byte %d: %+v", i, s)
		}
	}
	if found < len(answer)*9/10 {
		t.Errorf("%d of %d changes were found", found, len(answer))
	}
	for i := range answer {
		if _, err := tsa.Parse(answer[:i]); err == nil {
			t.Errorf("cut to %d bytes it is a stamp", i)
		}
	}
}

func TestStampsOfOthers(t *testing.T) {
	b := newBench(t)
	content := []byte("a head")
	query, answer := b.answer(content)
	again, _ := b.answer(content)
	s, err := tsa.Parse(answer)
	if err != nil {
		t.Fatal(err)
	}
	if s.Answers(query) != nil || s.Answers(again) == nil {
		t.Error("the nonce does not tell two requests apart")
	}
	if s.Stamps([]byte("another head")) == nil {
		t.Error("it stamps other bytes")
	}
	if s.Trusted(newBench(t).roots()) == nil || s.Trusted(x509.NewCertPool()) == nil {
		t.Error("a stranger's root vouches for it")
	}
	b.openssl("ts", "-reply", "-config", "conf", "-queryfile", "conf", "-signer", "tsa.pem", "-inkey", "tsa.key", "-out", "refused")
	if _, err := tsa.Parse(b.read("refused")); err == nil {
		t.Error("a refusal is a stamp")
	}
}

// TestShelf: what was asked for is kept once, and only its own answer is taken.
func TestShelf(t *testing.T) {
	b := newBench(t)
	shelf := tsa.Shelf(filepath.Join(t.TempDir(), "stamps"))
	if list, err := shelf.List(); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	first, err := shelf.Prepare(7, []byte("a head of seven"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := shelf.Prepare(7, []byte("the same with a cosignature"))
	if err != nil || !bytes.Equal(again.Request, first.Request) || !bytes.Equal(again.Checkpoint, first.Checkpoint) {
		t.Errorf("%+v, %v", again, err)
	}
	_, foreign := b.answer([]byte("a head of eight"))
	if _, _, err := shelf.Put(foreign); err == nil {
		t.Error("the stamp of a head that nobody asked about was taken")
	}
	_, other := b.answer([]byte("a head of seven"))
	if _, _, err := shelf.Put(other); err == nil {
		t.Error("the answer to another request was taken")
	}
	b.write("q", first.Request)
	b.openssl("ts", "-reply", "-config", "conf", "-queryfile", "q", "-signer", "tsa.pem", "-inkey", "tsa.key", "-out", "r")
	for range 2 {
		if held, _, err := shelf.Put(b.read("r")); err != nil || held.Size != 7 {
			t.Errorf("%+v, %v", held, err)
		}
	}
	if list, err := shelf.List(); err != nil || len(list) != 1 || !bytes.Equal(list[0].Answer, b.read("r")) {
		t.Errorf("%+v, %v", list, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0x30, 0x05, 0x30, 0x03, 0x02, 0x01, 0x02})
	if _, err := exec.LookPath("openssl"); err == nil {
		_, answer := newBench(f).answer([]byte("a head"))
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := tsa.Parse(b); err == nil && s.TSA == "" {
			t.Error("a stamp of nobody")
		}
	})
}
