package keys

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func newTestSigner(t testing.TB) *Signer {
	t.Helper()
	s, err := GenerateSigner()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func answer(text string) func(string) ([]byte, error) {
	return func(string) ([]byte, error) { return []byte(text), nil }
}

func TestSignerRoundTrip(t *testing.T) {
	s := newTestSigner(t)
	path := filepath.Join(folder(t), "keys", "sign")
	if err := WriteSigner(path, s, nil); err != nil {
		t.Fatal(err)
	}
	wantMode(t, path, 0o600)
	wantErr(t, WriteSigner(path, newTestSigner(t), nil), ErrExists)
	loaded, err := LoadSigner(path, func(string) ([]byte, error) {
		t.Error("asked for the passphrase of a plain file")
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	msg := []byte("banksman-event/v1\nsome text\n")
	sig := loaded.Sign(msg)
	if loaded.Public() != s.Public() || !bytes.Equal(sig, s.Sign(msg)) {
		t.Error("the loaded key is another one")
	}
	if !s.Public().Verify(msg, sig) {
		t.Error("the signature does not verify")
	}
	if s.Public().Verify(append(msg, '!'), sig) || s.Public().Verify(msg, sig[1:]) || newTestSigner(t).Public().Verify(msg, sig) {
		t.Error("a wrong message, signature or key verifies")
	}
}

func TestSealedSignerRoundTrip(t *testing.T) {
	s := newTestSigner(t)
	path := filepath.Join(folder(t), "sign")
	if err := WriteSigner(path, s, []byte("correct horse"), WorkFactor(4)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(text, []byte("-----BEGIN AGE ENCRYPTED FILE-----\n")) {
		t.Errorf("the file starts with %.40q", text)
	}
	var prompts []string
	loaded, err := LoadSigner(path, func(prompt string) ([]byte, error) {
		prompts = append(prompts, prompt)
		return []byte("correct horse"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Public() != s.Public() {
		t.Error("the loaded key is another one")
	}
	if len(prompts) != 1 || !strings.Contains(prompts[0], path) {
		t.Errorf("prompts are %q, want one that names the file", prompts)
	}
}

func TestSealedSignerRefusals(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "sign")
	if err := WriteSigner(path, newTestSigner(t), []byte("correct horse"), WorkFactor(4)); err != nil {
		t.Fatal(err)
	}
	_, err := LoadSigner(path, answer("wrong horse"))
	wantErr(t, err, ErrWrongPassphrase, path)
	if strings.Contains(err.Error(), "horse") {
		t.Errorf("the error holds the passphrase: %v", err)
	}
	_, err = LoadSigner(path, answer(""))
	wantErr(t, err, ErrWrongPassphrase)
	_, err = LoadSigner(path, nil)
	wantErr(t, err, ErrNeedsPassphrase, path)
	_, err = LoadSigner(path, func(string) ([]byte, error) { return nil, ErrNoTerminal })
	wantErr(t, err, ErrNeedsPassphrase)
	wantErr(t, err, ErrNoTerminal)
	own := errors.New("own reason")
	_, err = LoadSigner(path, func(string) ([]byte, error) { return nil, own })
	wantErr(t, err, own)

	text, _ := os.ReadFile(path)
	_, err = LoadSigner(mustWrite(t, filepath.Join(dir, "cut"), string(text[:len(text)/2]), 0o600), answer("correct horse"))
	wantErr(t, err, ErrDamaged)
	os.Chmod(path, 0o640)
	_, err = LoadSigner(path, func(string) ([]byte, error) {
		t.Error("asked for the passphrase of an exposed file")
		return nil, nil
	})
	wantErr(t, err, ErrExposed, "chmod 600")

	wantErr(t, WriteSigner(filepath.Join(dir, "empty"), newTestSigner(t), []byte{}), ErrEmptyPassphrase)
	for _, factor := range []int{-1, 0, 21, 64} {
		if err := WriteSigner(filepath.Join(dir, "factor"), newTestSigner(t), []byte("x"), WorkFactor(factor)); err == nil {
			t.Errorf("work factor %d is accepted", factor)
		}
	}
	if err := WriteSigner(filepath.Join(dir, "zero"), &Signer{}, nil); err == nil {
		t.Error("the zero signer is written")
	}
	wantAlone(t, dir, "cut", "sign")
}

// The file is what public tools expect, and what they write is accepted.
func TestSignerFileIsPKCS8(t *testing.T) {
	s := newTestSigner(t)
	text, err := signerText(s)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("no PEM in a file of %d bytes", len(text))
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if NewPublicKey(parsed.(ed25519.PrivateKey).Public().(ed25519.PublicKey)) != s.Public() {
		t.Error("the file holds another key")
	}
}

func FuzzParseSigner(f *testing.F) {
	text, err := signerText(newTestSigner(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseSigner(text)
		if err != nil {
			return
		}
		again, err := signerText(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parseSigner(again)
		if err != nil || back.Public() != s.Public() {
			t.Fatalf("not stable: %v", err)
		}
		if !s.Public().Verify([]byte("x"), s.Sign([]byte("x"))) {
			t.Fatal("a parsed key does not fit its public half")
		}
	})
}
