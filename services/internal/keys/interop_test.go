package keys

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/banksman/banksman/services/internal/lab/need"
)

func TestOpensslReadsASigner(t *testing.T) {
	program := need.Program(t, "openssl")
	s := newTestSigner(t)
	path := filepath.Join(folder(t), "sign")
	if err := WriteSigner(path, s, nil); err != nil {
		t.Fatal(err)
	}
	der, err := exec.CommandContext(t.Context(), program, "pkey", "-in", path, "-pubout", "-outform", "DER").Output()
	if err != nil || len(der) < 32 {
		t.Fatalf("%d bytes, %v", len(der), err)
	}
	if got := NewPublicKey(der[len(der)-32:]); got != s.Public() {
		t.Errorf("openssl sees %s, want %s", got, s.Public())
	}
}

func TestOpensslAcceptsTheBusCertificate(t *testing.T) {
	program := need.Program(t, "openssl")
	ca := newTestCA(t)
	certfile, _ := writeBus(t, ca, "bus.example")
	root := mustWrite(t, filepath.Join(filepath.Dir(certfile), "ca.crt"), string(ca.CertPEM()), 0o644)
	out, err := exec.CommandContext(t.Context(), program, "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", "bus.example", "-CAfile", root, certfile).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// ageFile encrypts content without armor, as the age program does by itself.
func ageFile(t *testing.T, content []byte, recipient age.Recipient) []byte {
	t.Helper()
	var out bytes.Buffer
	writer, err := age.Encrypt(&out, recipient)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestFilesOfTheAgeProgram(t *testing.T) {
	s := newTestSigner(t)
	text, err := signerText(s)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder(t), "sign")
	recipient, err := age.NewScryptRecipient("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	recipient.SetWorkFactor(4)
	file := ageFile(t, text, recipient)
	loaded, err := LoadSigner(mustWrite(t, path, string(file), 0o600), answer("correct horse"))
	if err != nil || loaded.Public() != s.Public() {
		t.Errorf("without armor: %v", err)
	}

	// A file cannot make its reader spend any amount of memory.
	head, tail, _ := strings.Cut(string(file), " 4\n")
	_, err = LoadSigner(mustWrite(t, path, head+" 21\n"+tail, 0o600), answer("correct horse"))
	wantErr(t, err, ErrDamaged, "work factor")

	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	_, err = LoadSigner(mustWrite(t, path, string(ageFile(t, text, identity.Recipient())), 0o600), answer("correct horse"))
	wantErr(t, err, ErrDamaged, "decrypt it with age first")

	_, err = LoadSigner(mustWrite(t, path, string(ageFile(t, []byte("no key"), recipient)), 0o600), answer("correct horse"))
	wantErr(t, err, ErrDamaged, "no private key")
}

// Without an option the cost is the full one; a forgotten test value would not
// be seen otherwise.
func TestDefaultWorkFactor(t *testing.T) {
	text, err := seal([]byte("x"), []byte("correct horse"), nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(armor.NewReader(bytes.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(plain[:100])) // age-encryption.org/v1 -> scrypt SALT LOGN
	if len(fields) < 5 || fields[2] != "scrypt" || fields[4] != "18" {
		t.Errorf("the file starts with %q", fields[:min(5, len(fields))])
	}
}
